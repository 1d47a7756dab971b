#include "worker/connection/data_cache.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"

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

TEST_F(DataCacheTest, AFileIsFetchedOnce) {
  const auto first = Get("examples");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(platform::ReadFile(*first).value(), "examples");
  EXPECT_EQ(Get("examples").value(), *first);
  EXPECT_EQ(fetched_, 1);
}

TEST_F(DataCacheTest, ADamagedFileIsFetchedAgain) {
  const std::string path = Get("examples").value();
  std::ofstream(path) << "damaged!";
  EXPECT_EQ(Get("examples").value(), path);
  EXPECT_EQ(platform::ReadFile(path).value(), "examples");
  EXPECT_EQ(fetched_, 2);
}

TEST_F(DataCacheTest, OtherBytesAreRefusedAndLeaveNothing) {
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

TEST_F(DataCacheTest, TheLeastRecentlyUsedGoFirst) {
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

TEST_F(DataCacheTest, NamesThatAreNoHashesLeadNowhere) {
  const auto got = DataCache(options_).Get(
      "../../etc/passwd", [](const auto&) { return absl::InternalError("fetched"); });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lengthwise::worker
