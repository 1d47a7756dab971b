// Sends presigned requests to a real S3-compatible store with curl.
//
// LENGTHWISE_TEST_S3 names it: "ENDPOINT ACCESS_KEY SECRET_KEY". Without it the tests are skipped.
// They create the bucket lengthwise-test and leave a few small objects there.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/sha256.h"
#include "server/storage/s3_presign.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

class S3PresignStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* store = std::getenv("LENGTHWISE_TEST_S3");
    if (store == nullptr || *store == '\0') {
      GTEST_SKIP() << "no S3 store is given in LENGTHWISE_TEST_S3";
    }
    const std::vector<std::string> parts = absl::StrSplit(store, ' ');
    ASSERT_EQ(parts.size(), 3U) << "accepted is \"ENDPOINT ACCESS_KEY SECRET_KEY\"";
    bucket_ = {.endpoint = parts[0],
               .region = "us-east-1",
               .bucket = "lengthwise-test",
               .prefix = absl::StrCat("presign-", getpid(), "-", absl::ToUnixNanos(absl::Now()))};
    credentials_ = {.access_key_id = parts[1], .secret_access_key = parts[2], .session_token = ""};
    // 200, or 409 if an earlier run created it.
    Send({.method = "PUT", .key = "", .query = {}, .headers = {}});
  }

  // Status code and headers of the answer ("HTTP/1.1 200 OK\r\n...").
  std::string Send(const S3Request& request, const std::string& body = "",
                   absl::Time now = absl::Now()) {
    const auto url = PresignS3(bucket_, credentials_, request, absl::Minutes(1), now);
    EXPECT_TRUE(url.ok()) << url.status();
    return SendTo(url.value_or(""), request, body);
  }

  static std::string SendTo(const std::string& url, const S3Request& request,
                            const std::string& body) {
    std::vector<std::string> arguments = {"curl", "-sS", "--max-time", "20"};
    if (request.method == "HEAD") {
      arguments.push_back("-I");
    } else {
      arguments.insert(arguments.end(), {"-i", "-X", request.method});
    }
    if (request.method == "PUT") {
      arguments.insert(arguments.end(), {"-H", "expect:", "--data-binary", body, "-H",
                                         "content-type: application/octet-stream"});
    }
    for (const auto& [name, value] : request.headers) {
      arguments.insert(arguments.end(), {"-H", absl::StrCat(name, ": ", value)});
    }
    arguments.push_back(url);
    const auto output = platform::ChildProcess::Run(arguments, absl::Seconds(30));
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? output->text : "";
  }

  static S3Request Put(const std::string& key, const std::string& bytes) {
    return S3PutOnce(key, platform::Sha256Hex(bytes));
  }
  static S3Request To(const std::string& method, const std::string& key) {
    return {.method = method, .key = key, .query = {}, .headers = {}};
  }

  S3Bucket bucket_;
  S3Credentials credentials_;
};

TEST_F(S3PresignStoreTest, StoresReadsListsAndDeletes) {
  const std::string bytes = "the bytes of a model";
  EXPECT_THAT(Send(Put("a b/model+1", bytes), bytes), HasSubstr("200 OK"));
  const std::string head = Send(To("HEAD", "a b/model+1"));
  EXPECT_THAT(head, HasSubstr("200 OK"));
  EXPECT_THAT(head, HasSubstr(absl::StrCat("Content-Length: ", bytes.size())));
  EXPECT_THAT(absl::AsciiStrToLower(head),
              HasSubstr(absl::StrCat("x-amz-meta-sha256: ", platform::Sha256Hex(bytes))));
  EXPECT_THAT(Send(To("GET", "a b/model+1")), HasSubstr(bytes));
  S3Request list = To("GET", "");
  list.query = {{"list-type", "2"}, {"prefix", absl::StrCat(bucket_.prefix, "/")}};
  EXPECT_THAT(Send(list), HasSubstr("a b/model+1</Key>"));
  EXPECT_THAT(Send(To("DELETE", "a b/model+1")), HasSubstr("204 No Content"));
  EXPECT_THAT(Send(To("HEAD", "a b/model+1")), HasSubstr("404 Not Found"));
}

TEST_F(S3PresignStoreTest, RefusesWrongBytes) {
  EXPECT_THAT(Send(Put("wrong", "right"), "wrong"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(Send(To("HEAD", "wrong")), HasSubstr("404 Not Found"));
}

TEST_F(S3PresignStoreTest, RefusesToReplaceAnObject) {
  EXPECT_THAT(Send(Put("once", "first"), "first"), HasSubstr("200 OK"));
  EXPECT_THAT(Send(Put("once", "other"), "other"), HasSubstr("412 Precondition Failed"));
  EXPECT_THAT(Send(To("GET", "once")), HasSubstr("first"));
}

TEST_F(S3PresignStoreTest, RefusesExpiredAndChangedUrls) {
  const S3Request put = Put("late", "bytes");
  EXPECT_THAT(Send(put, "bytes", absl::Now() - absl::Minutes(3)), HasSubstr("403 Forbidden"));

  const auto url = PresignS3(bucket_, credentials_, put, absl::Minutes(1), absl::Now());
  ASSERT_TRUE(url.ok()) << url.status();
  S3Request other = Put("late", "other");  // its checksum is not the one that was signed
  EXPECT_THAT(SendTo(*url, other, "other"), HasSubstr("403 Forbidden"));
  other.headers = put.headers;
  other.headers.erase("if-none-match");
  EXPECT_THAT(SendTo(*url, other, "bytes"), HasSubstr("403 Forbidden"));
  EXPECT_THAT(Send(To("HEAD", "late")), HasSubstr("404 Not Found"));
}

}  // namespace
}  // namespace lengthwise::server
