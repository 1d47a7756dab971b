#include "platform/temporary_file.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(TemporaryFile, ReadsBackItsBytesAndHasNoName) {
  const std::string directory = testing::TempDir() + "/nameless";
  std::filesystem::create_directories(directory);
  const auto file = TemporaryFile::Create(directory);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::string long_text(3 << 20, 'x');
  long_text[1 << 20] = 'y';
  ASSERT_TRUE((*file)->Write(0, "first").ok());
  ASSERT_TRUE((*file)->Write(5, long_text).ok());
  EXPECT_EQ(*(*file)->Read(0, 5), "first");
  EXPECT_EQ(*(*file)->Read(5, static_cast<int64_t>(long_text.size())), long_text);
  EXPECT_TRUE(absl::IsDataLoss((*file)->Read(5, 4 << 20).status()));
}

TEST(TemporaryFile, NeedsItsDirectory) {
  EXPECT_TRUE(absl::IsNotFound(TemporaryFile::Create(testing::TempDir() + "/none").status()));
}

}  // namespace
}  // namespace lengthwise::platform
