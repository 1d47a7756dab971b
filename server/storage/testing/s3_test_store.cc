#include "server/storage/testing/s3_test_store.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/http_client.h"
#include "server/storage/s3_presign.h"

namespace lengthwise::server {
namespace {

constexpr char kNoStore[] = "no S3 store is given in LENGTHWISE_TEST_S3";

class SkipWithoutStore : public testing::Environment {
 public:
  void SetUp() override {
    if (TestsRunOnS3() && !S3TestStore().has_value()) GTEST_SKIP() << kNoStore;
  }
};

[[maybe_unused]] const testing::Environment* const kSkip =
    testing::AddGlobalTestEnvironment(new SkipWithoutStore);

}  // namespace

std::optional<S3Options> S3TestStore() {
  const char* store = std::getenv("LENGTHWISE_TEST_S3");
  if (store == nullptr || *store == '\0') return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(store, ' ');
  EXPECT_EQ(parts.size(), 3U) << "LENGTHWISE_TEST_S3 is \"ENDPOINT ACCESS_KEY SECRET_KEY\"";
  if (parts.size() != 3) return std::nullopt;
  return S3Options{.endpoint = parts[0],
                   .credentials = {.access_key_id = parts[1], .secret_access_key = parts[2]}};
}

bool TestsRunOnS3() { return std::getenv("LENGTHWISE_TEST_ON_S3") != nullptr; }

std::string NewS3Place() {
  const std::optional<S3Options> store = S3TestStore();
  EXPECT_TRUE(store.has_value()) << kNoStore;
  if (!store.has_value()) return "";
  const S3Bucket bucket = {.endpoint = store->endpoint,
                           .region = store->region,
                           .bucket = "lengthwise-test",
                           .prefix = ""};
  const S3Request create = {.method = "PUT", .key = "", .query = {}, .headers = {}};
  const auto url = PresignS3(bucket, store->credentials, create, absl::Minutes(1), absl::Now());
  auto http = platform::HttpClient::Create();
  EXPECT_TRUE(http.ok()) << http.status();
  if (http.ok() && url.ok()) {
    const auto response = (*http)->Send({.method = "PUT", .url = *url});
    // 409: another test created it.
    EXPECT_TRUE(response.ok() && (response->ok() || response->status == 409))
        << response.status() << (response.ok() ? response->body : "");
  }
  static int number = 0;
  return absl::StrCat("s3://lengthwise-test/", absl::ToUnixNanos(absl::Now()), "-", getpid(), "-",
                      ++number);
}

std::string NewDataDir() {
  static int number = 0;
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/data", absl::ToUnixNanos(absl::Now()), "-", ++number);
  EXPECT_TRUE(platform::CreateDirectories(directory).ok());
  return directory;
}

}  // namespace lengthwise::server
