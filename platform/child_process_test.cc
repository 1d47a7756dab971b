#include "platform/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using ::testing::HasSubstr;

ChildProcess::Options Shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}};
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Waits up to 30 s until every process with the pipe's write end has exited. False on timeout.
bool ReachesEnd(int read_end) {
  char byte;
  while (true) {
    pollfd wait_for = {.fd = read_end, .events = POLLIN};
    if (poll(&wait_for, 1, 30'000) <= 0) return false;
    if (read(read_end, &byte, 1) == 0) return true;
  }
}

TEST(ChildProcessTest, ReportsTheExitCode) {
  auto child = ChildProcess::Start(Shell("exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto exit = (*child)->WaitFor(absl::Seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 3);
  EXPECT_FALSE(exit->ok());
  EXPECT_EQ(exit->ToString(), "exited with code 3");
}

TEST(ChildProcessTest, NamesAMissingProgram) {
  const auto child = ChildProcess::Start({.arguments = {"/nowhere/program"}});
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(child.status().message(), HasSubstr("/nowhere/program"));
}

TEST(ChildProcessTest, AppendsBothOutputsToTheFile) {
  const std::string path = testing::TempDir() + "/child_output";
  unlink(path.c_str());
  for (const char* script : {"echo first; echo error >&2", "echo second"}) {
    ChildProcess::Options options = Shell(script);
    options.output_file = path;
    auto child = ChildProcess::Start(options);
    ASSERT_TRUE(child.ok()) << child.status();
    ASSERT_TRUE((*child)->WaitFor(absl::Seconds(30)).has_value());
  }
  EXPECT_EQ(TextOf(path), "first\nerror\nsecond\n");
}

TEST(ChildProcessTest, RunReturnsTheOutput) {
  const auto output = ChildProcess::Run(
      {"/bin/sh", "-c", "echo first; echo error >&2; head -c 100000 /dev/zero; exit 3"},
      absl::InfiniteDuration());
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->text, "first\nerror\n" + std::string(100'000, '\0'));
  EXPECT_EQ(output->exit, (ChildProcess::Exit{.code = 3}));
}

TEST(ChildProcessTest, RunKillsAProgramOnTimeout) {
  const auto output = ChildProcess::Run({"/bin/sleep", "600"}, absl::Milliseconds(1));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->exit, std::nullopt);
}

TEST(ChildProcessTest, RunNamesAMissingProgram) {
  const auto output = ChildProcess::Run({"/nowhere/program"}, absl::InfiniteDuration());
  EXPECT_EQ(output.status().code(), absl::StatusCode::kNotFound);
}

TEST(ChildProcessTest, OutputAndErrorHaveSeparateDescriptors) {
  ChildProcess::Options options = Shell("echo out; echo error >&2");
  std::vector<std::string> paths;
  for (int* descriptor : {&options.output_descriptor, &options.error_descriptor}) {
    paths.push_back(testing::TempDir() + "/child_descriptor" + std::to_string(paths.size()));
    *descriptor = open(paths.back().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_GE(*descriptor, 0);
  }
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE((*child)->WaitFor(absl::Seconds(30)).has_value());
  EXPECT_EQ(TextOf(paths[0]), "out\n");
  EXPECT_EQ(TextOf(paths[1]), "error\n");
  close(options.output_descriptor);
  close(options.error_descriptor);
}

TEST(ChildProcessTest, PassesTheEnvironment) {
  ChildProcess::Options options = Shell("echo $GREETING");
  options.environment = {{"GREETING", "hello"}};
  options.output_file = testing::TempDir() + "/child_environment";
  unlink(options.output_file.c_str());
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE((*child)->WaitFor(absl::Seconds(30)).has_value());
  EXPECT_EQ(TextOf(options.output_file), "hello\n");
}

TEST(ChildProcessTest, TerminatesPolitelyFirst) {
  ChildProcess::Options options =
      Shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  options.output_file = testing::TempDir() + "/child_polite";
  unlink(options.output_file.c_str());
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  while (TextOf(options.output_file).empty())
    ASSERT_FALSE((*child)->WaitFor(absl::Milliseconds(5)));
  EXPECT_EQ((*child)->Terminate(absl::Seconds(30)).code, 7);
}

TEST(ChildProcessTest, KillsAProcessThatIgnoresSigterm) {
  ChildProcess::Options options = Shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  options.output_file = testing::TempDir() + "/child_stubborn";
  unlink(options.output_file.c_str());
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  while (TextOf(options.output_file).empty())
    ASSERT_FALSE((*child)->WaitFor(absl::Milliseconds(5)));
  const auto exit = (*child)->Terminate(absl::Milliseconds(50));
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.ToString(), "was killed by signal 9 (Killed)");
}

TEST(ChildProcessTest, DestructorLeavesNoZombie) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start({.arguments = {"/bin/sleep", "600"}});
    ASSERT_TRUE(child.ok()) << child.status();
    pid = (*child)->pid();
    EXPECT_EQ((*child)->Poll(), std::nullopt);
    EXPECT_EQ(getpgid(pid), pid);  // Ctrl-C at the parent's terminal does not reach it
  }
  EXPECT_EQ(kill(pid, 0), -1);  // not even as a zombie
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, DiesWithItsKilledParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // the grandchild inherits it, so its exit closes the write end
  const pid_t parent = fork();
  if (parent == 0) {
    close(ends[0]);
    auto grandchild = ChildProcess::Start({.arguments = {"/bin/sleep", "600"}});
    const char started = grandchild.ok() ? 'y' : 'n';
    [[maybe_unused]] const ssize_t written = write(ends[1], &started, 1);
    while (true) pause();
  }
  close(ends[1]);
  char started = 0;
  ASSERT_EQ(read(ends[0], &started, 1), 1);
  EXPECT_EQ(started, 'y');
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  EXPECT_TRUE(ReachesEnd(ends[0])) << "the grandchild lives on";
  close(ends[0]);
}

}  // namespace
}  // namespace lengthwise::platform
