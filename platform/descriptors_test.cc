#include "platform/descriptors.h"

#include <sys/wait.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

// Runs `check` in a child process and returns whether it was true.
template <typename Check>
bool IsTrueInAChild(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PrepareFilesTest, NoFileTakesAStandardStreamsNumber) {
  EXPECT_TRUE(IsTrueInAChild([] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    PrepareFiles();
    const Descriptor file(open("/dev/null", O_RDONLY));
    char byte = 0;
    // Output that is lost is an error; a line of the log is not.
    return file.get() > STDERR_FILENO && read(STDIN_FILENO, &byte, 1) == 0 &&
           write(STDOUT_FILENO, "x", 1) == -1 && write(STDERR_FILENO, "x", 1) == 1;
  }));
}

TEST(PrepareFilesTest, OpenStreamsStayAsTheyAre) {
  EXPECT_TRUE(IsTrueInAChild([] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return false;
    PrepareFiles();
    char byte = 0;
    return write(STDERR_FILENO, "x", 1) == 1 && read(ends[0], &byte, 1) == 1;
  }));
}

TEST(PrepareFilesTest, FileBeyondTheLimitIsAnError) {
  const std::string path = testing::TempDir() + "/large";
  EXPECT_TRUE(IsTrueInAChild([&path] {
    const rlimit limit = {1, 1};
    setrlimit(RLIMIT_FSIZE, &limit);
    PrepareFiles();
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    return write(file.get(), "x", 1) == 1 && write(file.get(), "y", 1) == -1 && errno == EFBIG;
  }));
}

}  // namespace
}  // namespace lengthwise::platform
