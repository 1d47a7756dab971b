#include "client/display/user_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

namespace fs = std::filesystem;

class UserFileTest : public testing::Test {
 protected:
  UserFileTest()
      : directory_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  int Files() const {
    int files = 0;
    for ([[maybe_unused]] const auto& file : fs::directory_iterator(directory_)) ++files;
    return files;
  }

  const std::string directory_;
};

TEST_F(UserFileTest, NewFileHasDefaultPermissions) {
  const mode_t before = umask(027);
  EXPECT_TRUE(WriteForUser(Path("a.html"), "text").ok());
  umask(before);
  EXPECT_EQ(platform::ReadFile(Path("a.html")).value(), "text");
  EXPECT_EQ(fs::status(Path("a.html")).permissions(), fs::perms(0640));
  EXPECT_EQ(Files(), 1);
}

TEST_F(UserFileTest, ReplacedFileKeepsPermissionsAndLinks) {
  std::ofstream(Path("a.html")) << "before";
  fs::permissions(Path("a.html"), fs::perms(0600));
  fs::create_symlink("a.html", Path("link.html"));
  EXPECT_TRUE(CheckWritable(Path("link.html")).ok());
  EXPECT_TRUE(WriteForUser(Path("link.html"), "after").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link.html")));
  EXPECT_EQ(platform::ReadFile(Path("a.html")).value(), "after");
  EXPECT_EQ(fs::status(Path("a.html")).permissions(), fs::perms(0600));
}

TEST_F(UserFileTest, FailedWriteKeepsTheOldFile) {
  std::ofstream(Path("a.html")) << "before";
  // Limits files to one page, which simulates a full disk.
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteForUser(Path("a.html"), std::string(1 << 20, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(status, absl::FailedPreconditionError(absl::StrCat(
                        "cannot write ", Path("a.html"),
                        ": File too large; raise the limit of file sizes, `ulimit -f`")));
  EXPECT_EQ(platform::ReadFile(Path("a.html")).value(), "before");
  EXPECT_EQ(Files(), 1);
}

TEST_F(UserFileTest, ChecksInAdvanceAndAdvises) {
  const std::string nowhere = Path("nowhere/a.html");
  const absl::Status missing = absl::FailedPreconditionError(
      absl::StrCat("cannot write ", nowhere,
                   ": No such file or directory; make its directory, or name another file"));
  EXPECT_EQ(CheckWritable(nowhere), missing);
  EXPECT_EQ(WriteForUser(nowhere, "text"), missing);
  const absl::Status is_directory = absl::FailedPreconditionError(
      absl::StrCat("cannot write ", directory_, ": Is a directory; name a file in it"));
  EXPECT_EQ(CheckWritable(directory_), is_directory);
  EXPECT_EQ(WriteForUser(directory_, "text"), is_directory);
  EXPECT_EQ(WriteForUser("/dev/full", "text"),
            absl::FailedPreconditionError(
                "cannot write /dev/full: No space left on device; free some space"));
  EXPECT_TRUE(WriteForUser("/dev/null", "text").ok());
}

}  // namespace
}  // namespace lengthwise::client
