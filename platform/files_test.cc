#include "platform/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// Records calls of sync_file_range and sets their results.
struct Writeback {
  int64_t started = 0;  // bytes from the file's beginning
  int64_t awaited = 0;
  int error = 0;       // result of every call
  int wait_error = 0;  // result of calls that wait
};
Writeback writeback;

}  // namespace

// Replaces the C library's function.
extern "C" int sync_file_range(int, off64_t offset, off64_t size, unsigned int flags) {
  if (writeback.error != 0) {
    errno = writeback.error;
    return -1;
  }
  if (writeback.wait_error != 0 && flags == SYNC_FILE_RANGE_WAIT_BEFORE) {
    errno = writeback.wait_error;
    return -1;
  }
  if (flags == SYNC_FILE_RANGE_WRITE && offset <= writeback.started) {
    writeback.started = std::max<int64_t>(writeback.started, offset + size);
  }
  if (flags == SYNC_FILE_RANGE_WAIT_BEFORE && offset <= writeback.awaited) {
    writeback.awaited = std::max<int64_t>(writeback.awaited, offset + size);
  }
  return 0;
}

namespace lengthwise::platform {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest()
      : directory_(testing::TempDir() + "/files_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    EXPECT_TRUE(CreateDirectories(directory_ + "/inner").ok());
  }

  const std::string directory_;
};

TEST_F(FilesTest, FileAppearsAtomicallyAtCommit) {
  const std::string path = directory_ + "/file";
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("one ").ok());
  ASSERT_TRUE((*file)->Append("two").ok());
  EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(*ReadFile(path), "one two");
  EXPECT_EQ(GetFileStatus(path)->size, 7);
}

// On a slow disk, a sync of 3 GB at the end takes longer than drain_stall of a worker.
TEST_F(FilesTest, LargeFilesReachTheDiskWhileTheyAreWritten) {
  constexpr int64_t kMiB = 1 << 20;
  writeback = {};
  auto file = AtomicFile::Create(directory_ + "/file");
  ASSERT_TRUE(file.ok());
  const std::string chunk(3 * kMiB, 'x');
  for (int64_t written = 3 * kMiB; written <= 36 * kMiB; written += 3 * kMiB) {
    ASSERT_TRUE((*file)->Append(chunk).ok());
    EXPECT_LT(written - writeback.started, 20 * kMiB);
    EXPECT_LT(written - writeback.awaited, 40 * kMiB);
  }
  ASSERT_TRUE((*file)->Append(std::string(28 * kMiB, 'y')).ok());
  EXPECT_GE(writeback.awaited, 48 * kMiB) << "also within one call";
  EXPECT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(GetFileStatus(directory_ + "/file")->size, 64 * kMiB);
}

TEST_F(FilesTest, FailedWritebackFailsUnlessUnsupported) {
  const std::string bytes(size_t{17} << 20, 'x');
  for (const auto& [error, code] :
       std::vector<std::pair<int, absl::StatusCode>>{{EIO, absl::StatusCode::kUnavailable},
                                                     {ENOSPC, absl::StatusCode::kResourceExhausted},
                                                     {ENOSYS, absl::StatusCode::kOk}}) {
    writeback = {.error = error};
    auto file = AtomicFile::Create(directory_ + "/file");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((*file)->Append(bytes).code(), code);
  }
  writeback = {};
}

// The kernel reports a writeback error once, to the call that waits; a later sync succeeds.
TEST_F(FilesTest, AnyFailureToWaitForWritebackFailsTheFile) {
  writeback = {.wait_error = ENODATA};
  auto file = AtomicFile::Create(directory_ + "/file");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->Append(std::string(size_t{40} << 20, 'x')).code(),
            absl::StatusCode::kUnavailable);
  writeback = {};
}

TEST_F(FilesTest, UncommittedFileLeavesNothing) {
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/file", "old").ok());
  {
    auto file = AtomicFile::Create(directory_ + "/file");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("new").ok());
  }
  EXPECT_EQ(*ReadFile(directory_ + "/file"), "old");
  EXPECT_THAT(*ListDirectory(directory_), testing::ElementsAre("file", "inner"));
}

TEST_F(FilesTest, CreatesMissingDirectoriesButNotOverAFile) {
  EXPECT_EQ(CreateDirectories(directory_ + "/a/b/c/"), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_directory(directory_ + "/a/b/c"));
  EXPECT_EQ(CreateDirectories(directory_ + "/a/b/c"), absl::OkStatus());
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/file", "bytes").ok());
  for (const std::string& path : {directory_ + "/file", directory_ + "/file/below"}) {
    const absl::Status status = CreateDirectories(path);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/file: Not a directory"));
  }
}

TEST_F(FilesTest, ReadsInChunksUntilTold) {
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/file", std::string(3 << 20, 'x')).ok());
  size_t bytes = 0;
  ASSERT_TRUE(ReadFileInChunks(directory_ + "/file", [&](absl::string_view chunk) {
                bytes += chunk.size();
                return bytes < (2 << 20);
              }).ok());
  EXPECT_EQ(bytes, 2 << 20);
}

TEST_F(FilesTest, OnlyRegularFilesAreRead) {
  const std::string pipe = directory_ + "/pipe", loop = directory_ + "/loop";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, directory_ + "/link");
  std::filesystem::create_symlink(loop, loop);
  for (const auto& [path, reason] :
       {std::pair<std::string, const char*>{pipe, "it is a pipe, expected a regular file"},
        {directory_ + "/link", "it is a pipe"},
        {"/dev/zero", "it is a device"},
        {directory_, "it is a directory"},
        {loop, "Too many levels of symbolic links"}}) {
    for (const absl::Status& status :
         {ReadFile(path).status(), CopyFile(path, directory_ + "/copy"), DropCachedPages(path)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << path;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(reason));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/copy"));
}

TEST_F(FilesTest, OnlyRegularFilesAreReplaced) {
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/null")}) {
    EXPECT_EQ(AtomicFile::Create(path).status().message(),
              absl::StrCat("cannot write ", path, ": it is ", path == pipe ? "a pipe" : "a device",
                           ", expected a regular file"));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(FilesTest, LargeFilesAreRefusedByTheirSize) {
  const std::string path = directory_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "eight by").ok());
  EXPECT_EQ(ReadFile(path, 8).value(), "eight by");
  const absl::Status status = ReadFile(path, 7).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "cannot read " + path + ": it has 8 bytes, expected at most 7");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kFailedPrecondition);
  // These have no size.
  EXPECT_EQ(ReadFile("/proc/self/stat", 3).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ReadFile("/proc/self/stat").ok());
}

TEST_F(FilesTest, ErrorsNameThePath) {
  const absl::Status status = ReadFile(directory_ + "/nothing").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(directory_ + "/nothing"));
  EXPECT_FALSE(AtomicFile::Create(directory_ + "/no/such/file").ok());
  EXPECT_TRUE(DeleteFile(directory_ + "/nothing").ok());
  EXPECT_TRUE(ListDirectory(directory_ + "/nothing")->empty());
}

TEST_F(FilesTest, LockIsExclusiveUntilReleased) {
  auto first = FileLock::Acquire(directory_ + "/LOCK");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(FileLock::Acquire(directory_ + "/LOCK").status().code(), absl::StatusCode::kAborted);
  first->reset();
  EXPECT_TRUE(FileLock::Acquire(directory_ + "/LOCK").ok());
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  EXPECT_EQ(gethostname(name, sizeof(name) - 1), 0);
  return name;
}

TEST_F(FilesTest, LockTellsItsOwnerWhoHoldsIt) {
  const std::string path = directory_ + "/LOCK";
  auto lock = FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(FileLock::ReadHolder(path).has_value()) << "it wrote nothing yet";
  ASSERT_EQ((*lock)->Describe("127.0.0.1:7070\n"), absl::OkStatus());
  ASSERT_EQ((*lock)->Describe("short\n"), absl::OkStatus());
  const auto holder = FileLock::ReadHolder(path);
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(holder->process, getpid());
  EXPECT_EQ(holder->host, HostName());
  EXPECT_EQ(holder->text, "short\n");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  // The next holder has not written yet.
  lock->reset();
  lock = FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(FileLock::ReadHolder(path).has_value());
}

TEST_F(FilesTest, DeadProcessHoldsNoLock) {
  const std::string path = directory_ + "/LOCK";
  auto lock = FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_EQ((*lock)->Describe("127.0.0.1:7070\n"), absl::OkStatus());
  std::string text = *ReadFile(path);
  ASSERT_TRUE(FileLock::ReadHolder(path).has_value());
  // Above the largest id that Linux gives a process.
  text.replace(0, text.find(' '), "4194305");
  std::ofstream(path) << text;
  EXPECT_FALSE(FileLock::ReadHolder(path).has_value());
}

// The process id of a server in a container, or on another machine, is that of another process
// here.
TEST_F(FilesTest, HolderElsewhereHasNoProcessHere) {
  const std::string path = directory_ + "/LOCK";
  auto lock = FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_EQ((*lock)->Describe("127.0.0.1:7070\n"), absl::OkStatus());
  const std::string text = *ReadFile(path);
  for (const size_t changed : {text.find(' ') + 1, text.find("] ") - 1}) {
    std::string elsewhere = text;
    elsewhere[changed] = elsewhere[changed] == '0' ? '1' : '0';
    std::ofstream(path) << elsewhere;
    const auto holder = FileLock::ReadHolder(path);
    ASSERT_TRUE(holder.has_value()) << elsewhere;
    EXPECT_EQ(holder->process, 0) << elsewhere;
    EXPECT_EQ(holder->host, HostName());
  }
  // As earlier releases wrote it.
  std::ofstream(path) << text.substr(0, text.find("] ") + 1) << "\n127.0.0.1:7070\n";
  const auto holder = FileLock::ReadHolder(path);
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(holder->process, getpid());
  EXPECT_EQ(holder->host, "");
  EXPECT_EQ(holder->text, "127.0.0.1:7070\n");
}

TEST_F(FilesTest, KilledWritersLeaveNothing) {
  const std::string path = directory_ + "/tokens";
  for (const char* left : {".aB3x9Q.tmp", ".000000.tmp"}) std::ofstream(path + left) << "x";
  // Files of others.
  for (const char* name : {"tokens", "tokens.tmp", "tokens.a-b.tmp", "tokens2.aB3x9Q.tmp"}) {
    std::ofstream(directory_ + "/" + name) << "x";
  }
  EXPECT_EQ(DeleteTemporaryFilesOf(path), absl::OkStatus());
  EXPECT_THAT(*ListDirectory(directory_),
              testing::UnorderedElementsAre("inner", "tokens", "tokens.tmp", "tokens.a-b.tmp",
                                            "tokens2.aB3x9Q.tmp"));
}

TEST_F(FilesTest, DeletesTrees) {
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/inner/file", "x").ok());
  ASSERT_TRUE(DeleteTree(directory_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_));
  EXPECT_TRUE(DeleteTree(directory_).ok());
}

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
  EXPECT_EQ(*ReadFile(Path("b"), static_cast<int64_t>(text.size())), text);
  EXPECT_EQ(seen, text);
  EXPECT_TRUE(absl::IsNotFound(CopyFile(Path("none"), Path("c"))));
  EXPECT_EQ(*ListDirectory(directory_), (std::vector<std::string>{"a", "b"}))
      << "an empty copy would be taken for the file";
}

TEST_F(BulkFilesTest, LinkOutlivesTheFirstName) {
  ASSERT_EQ(LinkOrCopyFile(Write("a", "text"), Path("b")), absl::OkStatus());
  std::filesystem::remove(Path("a"));
  EXPECT_EQ(*ReadFile(Path("b")), "text");
  EXPECT_FALSE(LinkOrCopyFile(Write("other", ""), Path("b")).ok()) << "an existing file is kept";
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

TEST_F(BulkFilesTest, DiskSpaceMatchesTheFileSystem) {
  const auto space = GetDiskSpace(directory_);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->size_bytes, static_cast<int64_t>(std::filesystem::space(directory_).capacity));
  EXPECT_GT(space->free_bytes, 0);
  EXPECT_LE(space->free_bytes, space->size_bytes);
  EXPECT_FALSE(GetDiskSpace(Path("none")).ok());
}

TEST(DirectoryOfTest, IsThePathBeforeTheFilesName) {
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("b"), ".");
  // "link/.." is where the link leads, not ".".
  EXPECT_EQ(DirectoryOf("link/../b"), "link/..");
}

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

TEST(TemporaryFile, MapsItsBytes) {
  const auto file = TemporaryFile::Create(testing::TempDir());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write(0, "first").ok());
  EXPECT_EQ((*file)->Map(5).value_or("none"), "first");
  ASSERT_TRUE((*file)->Write(5, std::string(1 << 20, 'x')).ok());
  EXPECT_EQ((*file)->Map(7).value_or("none"), "firstxx");
}

TEST(TemporaryFile, NeedsItsDirectory) {
  EXPECT_TRUE(absl::IsNotFound(TemporaryFile::Create(testing::TempDir() + "/none").status()));
}

}  // namespace
}  // namespace lengthwise::platform
