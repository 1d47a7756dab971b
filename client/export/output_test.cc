#include "client/export/output.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Output::Kind kFile = Output::Kind::kFile;
constexpr Output::Kind kDirectory = Output::Kind::kDirectory;

class OutputTest : public testing::Test {
 protected:
  OutputTest()
      : directory_(testing::TempDir() + "/output_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::vector<std::string> Names() const { return platform::ListDirectory(directory_).value(); }
  std::string Text(const std::string& name) const {
    return platform::ReadFile(Path(name)).value_or("none");
  }

  // Writes `text` as a file, or into "data.txt" of a directory with a manifest.
  absl::Status Write(const std::string& name, Output::Kind kind, const std::string& text,
                     bool replace = false) const {
    auto output = Output::Create(Path(name), kind, replace);
    if (!output.ok()) return output.status();
    absl::Status status = (*output)->Write(kind == kFile ? "" : "data.txt", text);
    if (status.ok() && kind == kDirectory) status = (*output)->Write(Output::kManifest, "{}");
    if (status.ok()) status = (*output)->Commit();
    return status;
  }

  const std::string directory_;
};

TEST_F(OutputTest, AppearsWhenItIsWhole) {
  {
    auto output = Output::Create(Path("a.json"), kFile, false);
    ASSERT_TRUE(output.ok()) << output.status();
    auto file = (*output)->Open();
    ASSERT_EQ((*file)->Append("{}"), absl::OkStatus());
    ASSERT_EQ((*file)->Close(), absl::OkStatus());
    EXPECT_FALSE(fs::exists(Path("a.json")));
    ASSERT_EQ((*output)->Commit(), absl::OkStatus());
  }
  EXPECT_THAT(Names(), ElementsAre("a.json"));
  EXPECT_EQ(Text("a.json"), "{}");
}

TEST_F(OutputTest, CanBeStoppedWithinALargeFile) {
  auto output = Output::Create(Path("model"), kFile, false);
  ASSERT_TRUE(output.ok()) << output.status();
  bool stop = false;
  (*output)->set_stop([&stop] { return stop; });
  auto file = (*output)->Open();
  EXPECT_EQ((*file)->Append(std::string(2 << 20, 'x')), absl::OkStatus());
  stop = true;
  EXPECT_TRUE(absl::IsCancelled((*file)->Append(std::string(2 << 20, 'x'))));
}

TEST_F(OutputTest, LeavesNothingWithoutACommit) {
  for (const Output::Kind kind : {kFile, kDirectory}) {
    auto output = Output::Create(Path("x"), kind, false);
    ASSERT_TRUE(output.ok()) << output.status();
    auto file = (*output)->Open(kind == kFile ? "" : "deep/er.txt");
    ASSERT_EQ((*file)->Append("half"), absl::OkStatus());
  }
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(OutputTest, WhatIsThereIsReplacedOnlyWhenAsked) {
  for (const Output::Kind kind : {kFile, kDirectory}) {
    const std::string name = kind == kFile ? "file" : "directory";
    const std::string data = kind == kFile ? name : name + "/data.txt";
    ASSERT_EQ(Write(name, kind, "first"), absl::OkStatus());
    const absl::Status refused = Write(name, kind, "second");
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("is there already"), HasSubstr("--force"), HasSubstr("-o PATH")));
    EXPECT_EQ(Text(data), "first");
    ASSERT_EQ(Write(name, kind, "third", /*replace=*/true), absl::OkStatus());
    EXPECT_EQ(Text(data), "third");
  }
  EXPECT_THAT(Names(), ElementsAre("directory", "file"));
}

TEST_F(OutputTest, ADirectoryOfOtherFilesIsNeverReplaced) {
  fs::create_directories(Path("home"));
  ASSERT_EQ(platform::WriteFileAtomically(Path("home/thesis.tex"), "years"), absl::OkStatus());
  EXPECT_THAT(std::string(Write("home", kDirectory, "x", /*replace=*/true).message()),
              HasSubstr("has files that are not an export's"));
  EXPECT_EQ(Text("home/thesis.tex"), "years");
  fs::create_directories(Path("empty"));
  EXPECT_EQ(Write("empty", kDirectory, "x"), absl::OkStatus());
  EXPECT_THAT(std::string(Write("empty", kFile, "x", /*replace=*/true).message()),
              HasSubstr("is a directory, and this export is one file"));
}

TEST_F(OutputTest, ALinkLeadsToWhatIsReplaced) {
  ASSERT_EQ(Write("target", kFile, "first"), absl::OkStatus());
  fs::create_symlink("target", Path("link"));
  ASSERT_EQ(Write("link", kFile, "second", /*replace=*/true), absl::OkStatus());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Text("target"), "second");
}

TEST_F(OutputTest, FilesHaveThePermissionsOfNewFiles) {
  const mode_t before = umask(027);
  EXPECT_EQ(Write("a", kFile, "x"), absl::OkStatus());
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(Path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(OutputTest, SaysWhatToDoWhereNothingCanBeWritten) {
  const auto missing = Output::Create(Path("none/a.json"), kFile, false);
  EXPECT_THAT(std::string(missing.status().message()),
              AllOf(HasSubstr("none/a.json: No such file or directory"),
                    HasSubstr("make its directory first")));
  EXPECT_TRUE(absl::IsFailedPrecondition(missing.status()));
}

TEST_F(OutputTest, AFileThatCannotBeWrittenInFullIsNotThere) {
  ASSERT_EQ(Write("a", kFile, "first"), absl::OkStatus());
  // The process may write files of 1,000 bytes, as if the disk had no more.
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Write("a", kFile, std::string(10'000, 'x'), /*replace=*/true);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cannot write"), HasSubstr("/a: File too large"),
                    HasSubstr("choose another place with -o PATH")));
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(Text("a"), "first");
}

}  // namespace
}  // namespace lengthwise::client
