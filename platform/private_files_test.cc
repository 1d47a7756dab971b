#include "platform/private_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class PrivateFilesTest : public testing::Test {
 protected:
  PrivateFilesTest()
      : above_(
            (std::filesystem::path(testing::TempDir()).lexically_normal() /
             ("it's " + std::string(testing::UnitTest::GetInstance()->current_test_info()->name())))
                .string()),
        directory_(above_ + "/data"),
        file_(directory_ + "/tokens") {
    std::filesystem::remove_all(above_);
    std::filesystem::create_directories(directory_);
    Chmod(above_, 0755);
    Chmod(directory_, 0700);
    std::ofstream(file_) << "content";
    Chmod(file_, 0600);
  }

  static void Chmod(const std::string& path, mode_t mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
  }
  std::string Read() { return ReadPrivateFile(directory_, "tokens").value_or(""); }
  // Returns why the file is refused. The command in the message must fix the problem.
  std::string RefusalThatItsCommandMends() {
    const absl::Status status = ReadPrivateFile(directory_, "tokens").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    const std::string message(status.message());
    const size_t begin = message.find('`') + 1;
    const std::string command = message.substr(begin, message.find('`', begin) - begin);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(Read(), "content") << command;
    return message;
  }

  const std::string above_;
  const std::string directory_;
  const std::string file_;
};

TEST_F(PrivateFilesTest, ReadsAFileThatOnlyItsOwnerCanChange) {
  EXPECT_EQ(Read(), "content");
  EXPECT_TRUE(CheckPrivateDirectory(directory_).ok());
  EXPECT_EQ(CheckPrivateDirectory(directory_ + "/none").code(), absl::StatusCode::kNotFound);
}

TEST_F(PrivateFilesTest, RefusesADirectoryThatOthersMayWriteTo) {
  Chmod(directory_, 0777);
  EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("other users may write to " + directory_));
  // Others can add files to a sticky directory.
  Chmod(directory_, 01777);
  EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("mode 1777"));
}

TEST_F(PrivateFilesTest, RefusesADirectoryThatOthersMayReplace) {
  Chmod(above_, 0777);
  EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("other users may write to " + above_ + " "));
  // In a sticky directory, users cannot rename each other's files.
  Chmod(above_, 01777);
  EXPECT_EQ(Read(), "content");
}

TEST_F(PrivateFilesTest, FollowsLinksThatOthersCannotReplace) {
  const std::string elsewhere = above_ + "/elsewhere";
  std::filesystem::create_directories(elsewhere);
  const std::string link = elsewhere + "/link";
  std::filesystem::create_symlink("../data", link);
  EXPECT_EQ(ReadPrivateFile(link, "tokens").value_or(""), "content");
  EXPECT_EQ(ReadPrivateFile(link + "/../data/.", "tokens").value_or(""), "content");
  Chmod(elsewhere, 0777);
  EXPECT_EQ(ReadPrivateFile(link, "tokens").status().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::create_symlink("circle", above_ + "/circle");
  EXPECT_FALSE(CheckPrivateDirectory(above_ + "/circle").ok());
}

TEST_F(PrivateFilesTest, RefusesAFileThatOthersMayOpen) {
  for (const mode_t mode : {0666, 0644, 0620}) {
    Chmod(file_, mode);
    EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("other users may open " + file_));
  }
}

TEST_F(PrivateFilesTest, OthersMayReadATrustedFile) {
  Chmod(file_, 0644);
  const std::string link = above_ + "/link";
  std::filesystem::create_symlink(file_, link);
  EXPECT_EQ(ReadTrustedFile(link).value_or(""), "content");
  Chmod(file_, 0664);
  EXPECT_THAT(std::string(ReadTrustedFile(link).status().message()),
              HasSubstr("other users may write to " + file_));
  Chmod(file_, 0644);
  Chmod(directory_, 0777);
  EXPECT_EQ(ReadTrustedFile(link).status().code(), absl::StatusCode::kFailedPrecondition);
  Chmod(directory_, 0700);
  std::filesystem::remove(file_);
  EXPECT_EQ(ReadTrustedFile(link).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PrivateFilesTest, RefusesLinksAndNonFiles) {
  std::filesystem::rename(file_, above_ + "/moved");
  std::filesystem::create_symlink("../moved", file_);
  EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("is a symbolic link"));
  std::filesystem::remove(file_);
  // Does not wait for a pipe without a writer.
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(ReadPrivateFile(directory_, "tokens").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(PrivateFilesTest, RefusesFilesOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  for (const std::string& path : {above_, directory_, file_}) {
    ASSERT_EQ(chown(path.c_str(), kNobody, -1), 0);
    EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr(path + " belongs to the user nobody"));
  }
  ASSERT_EQ(chown(directory_.c_str(), -1, kNobody), 0);
  Chmod(directory_, 0770);
  EXPECT_THAT(RefusalThatItsCommandMends(), HasSubstr("mode 0770"));
  // In a sticky directory, another user can change the target of a link of theirs.
  Chmod(above_, 01777);
  const std::string link = above_ + "/link";
  std::filesystem::create_symlink(directory_, link);
  EXPECT_EQ(ReadPrivateFile(link, "tokens").value_or(""), "content");
  ASSERT_EQ(lchown(link.c_str(), kNobody, -1), 0);
  EXPECT_FALSE(ReadPrivateFile(link, "tokens").ok());
}

}  // namespace
}  // namespace lengthwise::platform
