#include "client/commands/python_program.h"

#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <streambuf>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

// Raises a signal when something is written.
class RaisesSignal : public std::streambuf {
 public:
  explicit RaisesSignal(int signal) : signal_(signal) {}

 private:
  std::streamsize xsputn(const char*, std::streamsize size) override {
    raise(signal_);
    return size;
  }

  const int signal_;
};

class PythonProgramTest : public testing::Test {
 protected:
  PythonProgramTest() {
    directory_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    unsetenv("LENGTHWISE_PYTHON");
    for (const char* name : {"XDG_CACHE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"}) unsetenv(name);
    setenv("HOME", directory_.c_str(), 1);
  }

  // Writes a stand-in for Python.
  std::string Script(const std::string& path, const std::string& commands) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << commands;
    chmod(path.c_str(), 0755);
    return path;
  }

  int Run(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const auto code = RunPython(arguments, {.server = "127.0.0.1:7", .token_file = "/t"}, out, err);
    EXPECT_TRUE(code.ok()) << code.status();
    out_ += out.str();
    err_ += err.str();
    return code.value_or(-1);
  }

  std::string directory_, out_, err_;
};

TEST_F(PythonProgramTest, MissingEnvironmentNamesTheCommandToRun) {
  const auto python = FindPython();
  EXPECT_TRUE(absl::IsNotFound(python.status()));
  EXPECT_EQ(python.status().message(),
            "the Python environment is missing (looked for " + directory_ +
                "/.cache/lengthwise/python); run deploy/install.sh, or set LENGTHWISE_PYTHON to a "
                "Python with the package lengthwise");
  setenv("LENGTHWISE_PYTHON", (directory_ + "/nothing").c_str(), 1);
  std::ostringstream nothing;
  const auto started = RunPython({}, {}, nothing, nothing);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("run deploy/install.sh"));
}

TEST_F(PythonProgramTest, PythonWithoutThePackageGetsAdvice) {
  const std::string python =
      Script(directory_ + "/python", "echo \"$0: No module named lengthwise\" >&2; exit 1\n");
  setenv("LENGTHWISE_PYTHON", python.c_str(), 1);
  std::ostringstream out, err;
  const auto code = RunPython({}, {}, out, err);
  EXPECT_EQ(code.status().message(),
            python +
                " has no package lengthwise; set LENGTHWISE_PYTHON to a Python with the "
                "package lengthwise, or run deploy/install.sh");
  EXPECT_EQ(err.str(), "");
}

TEST_F(PythonProgramTest, VariableOverridesCachedEnvironment) {
  const std::string cached =
      Script(directory_ + "/.cache/lengthwise/python/bin/python", "exit 0\n");
  EXPECT_EQ(FindPython().value(), cached);
  setenv("XDG_CACHE_HOME", (directory_ + "/elsewhere").c_str(), 1);
  EXPECT_TRUE(absl::IsNotFound(FindPython().status()));
  const std::string other =
      Script(directory_ + "/elsewhere/lengthwise/python/bin/python", "exit 0\n");
  EXPECT_EQ(FindPython().value(), other);
  setenv("LENGTHWISE_PYTHON", "/some/python", 1);
  EXPECT_EQ(FindPython().value(), "/some/python");
}

TEST_F(PythonProgramTest, ActiveEnvironmentWithThePackageIsUsed) {
  const std::string directory = directory_ + "/active";
  // Has the package if the file is there. Asked with -I, so not by the user's settings.
  const std::string active =
      Script(directory + "/bin/python3", "[ \"$1\" = -I ] && [ -e \"$0.package\" ]\n");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    setenv(name, directory.c_str(), 1);
    EXPECT_TRUE(absl::IsNotFound(FindPython().status()));
    std::ofstream(active + ".package") << "";
    EXPECT_EQ(FindPython().value(), active);
    std::filesystem::remove(active + ".package");
    setenv(name, (directory_ + "/nothing").c_str(), 1);
    EXPECT_TRUE(absl::IsNotFound(FindPython().status()));
    setenv(name, "", 1);
  }
  setenv("VIRTUAL_ENV", directory.c_str(), 1);
  std::ofstream(active + ".package") << "";
  const std::string cached =
      Script(directory_ + "/.cache/lengthwise/python/bin/python", "exit 0\n");
  EXPECT_EQ(FindPython().value(), cached);
  unsetenv("VIRTUAL_ENV");
}

TEST_F(PythonProgramTest, SettingsOfOtherProgramsDoNotReachIt) {
  const char* const names[] = {"MPLBACKEND",       "MATPLOTLIBRC",   "MPLCONFIGDIR",
                               "PYTHONPATH",       "PYTHONHOME",     "PYTHONUSERBASE",
                               "PYTHONSTARTUP",    "PYTHONWARNINGS", "PYTHONOPTIMIZE",
                               "PYTHONIOENCODING", "PYTHONUTF8",     "PYTHONDONTWRITEBYTECODE"};
  std::string print = "echo \"";
  for (const char* name : names) {
    setenv(name, "mine", 1);
    print += std::string("[$") + name + "]";
  }
  print += "\"\n";
  Script(directory_ + "/.cache/lengthwise/python/bin/python", print);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(out_, "[agg][][mine][][][][][][][][1][mine]\n");
  // A Python that the user names may find its packages by them.
  out_.clear();
  setenv("LENGTHWISE_PYTHON", Script(directory_ + "/python", print).c_str(), 1);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(out_, "[agg][][mine][mine][mine][mine][][][][][1][mine]\n");
  for (const char* name : names) unsetenv(name);
}

TEST_F(PythonProgramTest, ForwardsArgumentsOutputAndExitCode) {
  setenv("LENGTHWISE_PYTHON",
         Script(directory_ + "/python", "echo \"$@\"; echo wrong >&2; exit 3\n").c_str(), 1);
  EXPECT_EQ(Run({"results", "e 1"}), 3);
  EXPECT_EQ(out_, "-m lengthwise results e 1\n");
  EXPECT_EQ(err_, "wrong\n");
}

TEST_F(PythonProgramTest, OnlyTheChannelsSettingsReachIt) {
  setenv("LENGTHWISE_TOKEN_FILE", "/mine", 1);
  setenv("LENGTHWISE_TLS_CA", "/ca", 1);
  setenv("LENGTHWISE_PYTHON",
         Script(directory_ + "/python",
                "echo \"$LENGTHWISE_SERVER $LENGTHWISE_TOKEN_FILE [$LENGTHWISE_TLS_CA] "
                "[${LENGTHWISE_CONFIG-unset}]\"\n")
             .c_str(),
         1);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(out_, "127.0.0.1:7 /t [] []\n");
}

TEST_F(PythonProgramTest, PassesThePathOfThisProgram) {
  setenv("LENGTHWISE_CLIENT_BINARY", "/mine", 1);
  setenv("LENGTHWISE_PYTHON",
         Script(directory_ + "/python", "echo \"$LENGTHWISE_CLIENT_BINARY\"\n").c_str(), 1);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(out_, std::filesystem::read_symlink("/proc/self/exe").string() + "\n");
}

TEST_F(PythonProgramTest, ForwardsSignalsForCleanup) {
  setenv(
      "LENGTHWISE_PYTHON",
      Script(
          directory_ + "/python",
          "trap 'echo cleaned up >&2; exit 130' TERM\necho ready\nwhile :; do sleep 0.01; done\n")
          .c_str(),
      1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RaisesSignal at_output(signal);
    std::ostream out(&at_output);
    std::ostringstream err;
    const auto code = RunPython({}, {.server = "127.0.0.1:7"}, out, err);
    EXPECT_EQ(code.value_or(-1), 130);
    EXPECT_EQ(err.str(), "cleaned up\n");
  }
  // A program that does not handle the signal is ended by it.
  setenv("LENGTHWISE_PYTHON", Script(directory_ + "/other", "echo ready\nexec sleep 600\n").c_str(),
         1);
  RaisesSignal at_output(SIGINT);
  std::ostream out(&at_output);
  std::ostringstream err;
  const auto code = RunPython({}, {.server = "127.0.0.1:7"}, out, err);
  EXPECT_EQ(code.value_or(-1), 130);
}

TEST_F(PythonProgramTest, PassesMegabytesOfOutput) {
  setenv("LENGTHWISE_PYTHON",
         Script(directory_ + "/python", "head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2\n")
             .c_str(),
         1);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(out_.size(), 3'000'000u);
  EXPECT_EQ(err_.size(), 200'000u);
}

TEST_F(PythonProgramTest, KilledProcessIsAnError) {
  setenv("LENGTHWISE_PYTHON", Script(directory_ + "/python", "kill -9 $$\n").c_str(), 1);
  std::ostringstream nothing;
  const auto killed = RunPython({}, {}, nothing, nothing);
  EXPECT_THAT(std::string(killed.status().message()), HasSubstr("signal 9"));
}

}  // namespace
}  // namespace lengthwise::client
