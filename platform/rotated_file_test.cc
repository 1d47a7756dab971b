#include "platform/rotated_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::platform {
namespace {

class RotatedFileTest : public testing::Test {
 protected:
  RotatedFileTest()
      : directory_(testing::TempDir() + "/" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  std::string Contents(const std::string& name) {
    return ReadFile(absl::StrCat(directory_, "/", name)).value_or("nothing");
  }

  const std::string directory_;
};

TEST_F(RotatedFileTest, KeepsTheNewestPartsOfBoundedSize) {
  const RotatedFile file = {.path = directory_ + "/log", .max_bytes = 10, .files = 3};
  for (int line = 1; line <= 7; ++line) {
    ASSERT_TRUE(AppendLines(file, absl::StrCat("line", line, "\n")).ok());
  }
  ASSERT_TRUE(AppendLines(file, "longer than a whole file\n").ok());
  EXPECT_EQ(Contents("log"), "longer than a whole file\n");
  EXPECT_EQ(Contents("log.1"), "line7\n");
  EXPECT_EQ(Contents("log.2"), "line6\n");
  EXPECT_THAT(ListDirectory(directory_).value(), testing::ElementsAre("log", "log.1", "log.2"));
  struct stat status;
  ASSERT_EQ(stat(file.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(RotatedFileTest, ContinuesAfterExternalRotation) {
  const RotatedFile file = {.path = directory_ + "/log"};
  ASSERT_TRUE(AppendLines(file, "before\n").ok());
  std::filesystem::rename(file.path, file.path + ".moved");
  ASSERT_TRUE(AppendLines(file, "after\n").ok());
  EXPECT_EQ(Contents("log"), "after\n");
}

TEST_F(RotatedFileTest, LosesNothingOfSeveralWriters) {
  const RotatedFile file = {.path = directory_ + "/log", .max_bytes = 500, .files = 1000};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&] {
      for (int line = 0; line < 250; ++line) EXPECT_TRUE(AppendLines(file, "0123456789\n").ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  size_t lines = 0;
  const std::vector<std::string> names = ListDirectory(directory_).value();
  for (const std::string& name : names) {
    const std::string contents = Contents(name);
    for (absl::string_view line : absl::StrSplit(contents, '\n', absl::SkipEmpty())) {
      EXPECT_EQ(line, "0123456789");
      ++lines;
    }
  }
  EXPECT_EQ(lines, 1000u);
}

TEST_F(RotatedFileTest, WritesToDevicesAndNeverRenamesThem) {
  for (int line = 0; line < 3; ++line) {
    EXPECT_TRUE(AppendLines({.path = "/dev/null", .max_bytes = 1}, "line\n").ok());
  }
  EXPECT_EQ(AppendLines({.path = "/dev/full"}, "line\n").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(AppendLines({.path = directory_ + "/none/log"}, "line\n").code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lengthwise::platform
