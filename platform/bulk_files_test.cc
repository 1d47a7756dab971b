#include "platform/bulk_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::platform {
namespace {

class BulkFilesTest : public testing::Test {
 protected:
  BulkFilesTest()
      : directory_(testing::TempDir() + "/bulk_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }

  const std::string directory_;
};

TEST_F(BulkFilesTest, CopiesBytesAndShowsThemOnTheWay) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i);  // more than a chunk
  std::string seen;
  ASSERT_EQ(CopyFile(Write("a", text), Path("b"),
                     [&](absl::string_view part) { seen.append(part.data(), part.size()); }),
            absl::OkStatus());
  EXPECT_EQ(*ReadFile(Path("b")), text);
  EXPECT_EQ(seen, text);
  EXPECT_FALSE(CopyFile(Path("a"), Path("b")).ok()) << "an existing file is kept";
  EXPECT_TRUE(absl::IsNotFound(CopyFile(Path("none"), Path("c"))));
  EXPECT_FALSE(std::filesystem::exists(Path("c"))) << "an empty copy would be taken for the file";
}

TEST_F(BulkFilesTest, LinkOutlivesTheFirstName) {
  ASSERT_EQ(LinkOrCopyFile(Write("a", "text"), Path("b")), absl::OkStatus());
  std::filesystem::remove(Path("a"));
  EXPECT_EQ(*ReadFile(Path("b")), "text");
  const absl::Status missing = LinkOrCopyFile(Path("a"), Path("c"));
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr(Path("a")));
}

TEST_F(BulkFilesTest, MovesADirectoryOntoAnEmptyOneOnly) {
  std::filesystem::create_directories(Path("from"));
  Write("from/file", "text");
  std::filesystem::create_directories(Path("empty"));
  ASSERT_EQ(SyncFileSystem(Path("from")), absl::OkStatus());
  ASSERT_EQ(MoveDirectory(Path("from"), Path("empty")), absl::OkStatus());
  EXPECT_EQ(*ReadFile(Path("empty/file")), "text");
  std::filesystem::create_directories(Path("other"));
  EXPECT_FALSE(MoveDirectory(Path("other"), Path("empty")).ok());
  EXPECT_EQ(*ReadFile(Path("empty/file")), "text");
}

TEST_F(BulkFilesTest, TellsWhatIsFree) {
  EXPECT_GT(*FreeBytes(directory_), 0);
  EXPECT_FALSE(FreeBytes(Path("none")).ok());
}

}  // namespace
}  // namespace lengthwise::platform
