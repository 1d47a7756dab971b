#include "worker/connection/spool.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

std::string NewSpoolDirectory() {
  const std::string path = testing::TempDir() + "/spool_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(path);
  return path;
}

TEST(Spool, ReadsRecordsInAnyOrder) {
  Spool spool({.directory = NewSpoolDirectory(), .file_bytes = 10});
  const auto a = spool.Write("the first record");
  const auto b = spool.Write("b");
  const auto c = spool.Write(std::string(1 << 20, 'c'));
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*spool.Read(*c), std::string(1 << 20, 'c'));
  EXPECT_EQ(*spool.Read(*a), "the first record");
  EXPECT_EQ(*spool.Read(*b), "b");
  EXPECT_EQ(*spool.Read(*b), "b");
}

TEST(Spool, EnforcesItsLimit) {
  Spool spool({.directory = NewSpoolDirectory(), .max_bytes = 100, .file_bytes = 40});
  const auto a = spool.Write(std::string(50, 'a'));
  const auto b = spool.Write(std::string(50, 'b'));
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(spool.Write("c"));
  EXPECT_EQ(spool.bytes(), 100);
  spool.Release(*a);
  EXPECT_EQ(spool.bytes(), 50);
  ASSERT_TRUE(spool.Write("c"));
  EXPECT_TRUE(absl::IsDataLoss(spool.Read(*a).status()));
  EXPECT_EQ(*spool.Read(*b), std::string(50, 'b'));
}

TEST(Spool, LeavesNoFileAndIsPrivate) {
  const std::string directory = NewSpoolDirectory();
  Spool spool({.directory = directory});
  EXPECT_FALSE(std::filesystem::exists(directory)) << "nothing was written yet";
  ASSERT_TRUE(spool.Write("secret"));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  struct stat status;
  ASSERT_EQ(stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(Spool, UnwritableDiskCountsAsFull) {
  const std::string directory = NewSpoolDirectory();
  testing::internal::CaptureStderr();
  Spool spool({.directory = directory + "/file/spool"});
  std::filesystem::create_directories(directory);
  fclose(fopen((directory + "/file").c_str(), "w"));  // blocks the creation of a directory
  EXPECT_FALSE(spool.Write("a"));
  EXPECT_FALSE(spool.Write("b"));
  std::filesystem::remove(directory + "/file");
  EXPECT_TRUE(spool.Write("c"));
  const std::string log = testing::internal::GetCapturedStderr();
  // Logged once at the failure and once when it is over.
  EXPECT_THAT(log, testing::HasSubstr("training waits when memory is full"));
  EXPECT_EQ(log.find("training waits"), log.rfind("training waits"));
  EXPECT_THAT(log, testing::HasSubstr("accepts events and checkpoints again"));
}

TEST(Spool, FailedWriteHarmsNoOtherRecord) {
  // A file size limit fails writes in the middle, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {.rlim_cur = 10'000, .rlim_max = limit.rlim_max};
  Spool spool({.directory = NewSpoolDirectory()});
  const auto first = spool.Write("first");
  ASSERT_TRUE(first);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(spool.Write(std::string(20'000, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto second = spool.Write(std::string(20'000, 'y'));
  ASSERT_TRUE(second);
  EXPECT_EQ(*spool.Read(*first), "first");
  EXPECT_EQ(*spool.Read(*second), std::string(20'000, 'y'));
}

}  // namespace
}  // namespace lengthwise::worker
