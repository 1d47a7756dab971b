#include "worker/connection/data_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

class DataCacheTest : public ::testing::Test {
 protected:
  DataCacheTest() { std::filesystem::remove_all(options_.directory); }

  absl::StatusOr<std::string> Get(const std::string& bytes) {
    return DataCache(options_).Get(platform::Sha256Hex(bytes), [&](const auto& take) {
      ++fetched_;
      return take(bytes);
    });
  }

  DataCache::Options options_ = {.directory = ::testing::TempDir() + "/data_cache"};
  int fetched_ = 0;
};

TEST_F(DataCacheTest, FileIsFetchedOnce) {
  const auto first = Get("examples");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(platform::ReadFile(*first).value(), "examples");
  EXPECT_EQ(Get("examples").value(), *first);
  EXPECT_EQ(fetched_, 1);
}

// Regression: the process of a user's module, which runs in a directory of its own, found no file.
TEST_F(DataCacheTest, DamagedFileIsFetchedAgain) {
  const std::string path = Get("examples").value();
  std::ofstream(path) << "damaged!";
  EXPECT_EQ(Get("examples").value(), path);
  EXPECT_EQ(platform::ReadFile(path).value(), "examples");
  EXPECT_EQ(fetched_, 2);
}

TEST_F(DataCacheTest, PipeIsReplaced) {
  const std::string path = Get("examples").value();
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Get("examples").value(), path);
  EXPECT_EQ(platform::ReadFile(path).value(), "examples");
}

TEST_F(DataCacheTest, WrongBytesAreRejectedAndDeleted) {
  const auto got = DataCache(options_).Get(platform::Sha256Hex("examples"),
                                           [](const auto& take) { return take("others"); });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
  const auto broken =
      DataCache(options_).Get(platform::Sha256Hex("examples"), [](const auto& take) {
        take("exam").IgnoreError();
        return absl::UnavailableError("gone");
      });
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(platform::ListDirectory(options_.directory)->empty());
}

TEST_F(DataCacheTest, EvictsLeastRecentlyUsedFirst) {
  options_.max_bytes = 25;
  const std::string oldest = Get("0123456789").value();
  const std::string used = Get("abcdefghij").value();
  const auto past = [](const std::string& path, int hours) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  past(oldest, 3);
  past(used, 4);
  EXPECT_EQ(Get("abcdefghij").value(), used);
  const std::string newest = Get("ABCDEFGHIJ").value();
  EXPECT_FALSE(std::filesystem::exists(oldest));
  EXPECT_TRUE(std::filesystem::exists(used));
  EXPECT_TRUE(std::filesystem::exists(newest));
}

TEST_F(DataCacheTest, FilesOfTheUserStay) {
  options_.max_bytes = 5;
  std::filesystem::create_directories(options_.directory);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(48);
  for (const std::string name : {"my_train.jsonl", "notes.tmp"}) {
    std::ofstream(options_.directory + "/" + name) << "0123456789";
    std::filesystem::last_write_time(options_.directory + "/" + name, old);
  }
  const std::string left = absl::StrCat(options_.directory, "/", platform::Sha256Hex("x"),
                                        ".jsonl.abcdef", platform::kTemporarySuffix);
  std::ofstream(left) << "0123456789";
  std::filesystem::last_write_time(left, old);
  const std::string evicted = Get("0123456789").value();
  Get("abcdefghij").value();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_FALSE(std::filesystem::exists(evicted));
  EXPECT_TRUE(std::filesystem::exists(options_.directory + "/my_train.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(options_.directory + "/notes.tmp"));
}

TEST_F(DataCacheTest, FileOfAServerOnThisMachineIsNotCopied) {
  const std::string server = options_.directory + "-server";
  std::filesystem::create_directories(server);
  const std::string bytes = "examples", sha256 = platform::Sha256Hex(bytes);
  options_.other_directory = server;
  int fetched = 0;
  const DataCache::Fetch fetch = [&](const auto& take) {
    ++fetched;
    return take(bytes);
  };
  for (const bool damaged : {false, true}) {
    const std::string path = server + "/" + sha256 + ".jsonl";
    std::ofstream(path) << (damaged ? "damaged" : bytes);
    const auto got = DataCache(options_).Get(sha256, fetch);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got == path, !damaged);
    EXPECT_EQ(fetched, damaged ? 1 : 0);
    EXPECT_EQ(std::filesystem::exists(options_.directory), damaged);
  }
}

TEST_F(DataCacheTest, RejectsNamesThatAreNotHashes) {
  const auto got = DataCache(options_).Get(
      "../../etc/passwd", [](const auto&) { return absl::InternalError("fetched"); });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
}

class DataDeliveryTest : public ConnectionTest {};

// Regression: the trial was closed without an outcome, so its pack was leased again forever.
TEST_F(DataDeliveryTest, RegressionUnwritableCacheIsALocalError) {
  const std::string closed = ::testing::TempDir() + "/closed";
  std::filesystem::create_directories(closed);
  std::filesystem::permissions(closed, std::filesystem::perms(0500));
  DataCache cache({.directory = closed + "/cache"});
  options_.session.data = &cache;
  const std::string bytes = "examples", sha256 = platform::Sha256Hex(bytes);
  server_.With([&](FakeWorkerService::State& state) { state.artifacts[sha256] = bytes; });
  // Root can write everywhere.
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  OfferLease(LeaseOf({"a"}));
  absl::Status fetched;
  PackSession::Directive directive = PackSession::Directive::kLost;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    fetched = session.FetchData(0, sha256, static_cast<int64_t>(bytes.size())).status();
    directive = session.GetDirective(0);
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil(
      [](const FakeWorkerService::State& state) { return EventsOf(state, "a") == 1; }));
  EXPECT_TRUE(Stop().ok());
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(fetched.code(), absl::StatusCode::kFailedPrecondition) << fetched;
  EXPECT_EQ(directive, PackSession::Directive::kContinue);
}

}  // namespace
}  // namespace lengthwise::worker
