#include "server/storage/s3_presign.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1369353600);  // 2013-05-24 00:00:00 UTC
const S3Credentials kExample = {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                                .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                .session_token = ""};
const S3Bucket kBucket = {
    .endpoint = "http://127.0.0.1:16280", .region = "us-east-1", .bucket = "models", .prefix = "a"};

S3Request Get(const std::string& key) {
  return {.method = "GET", .key = key, .query = {}, .headers = {}};
}

std::string Presigned(const S3Bucket& bucket, const S3Request& request) {
  const auto url = PresignS3(bucket, kExample, request, absl::Minutes(5), kNow);
  EXPECT_TRUE(url.ok()) << url.status();
  return url.value_or("");
}

// "Authenticating Requests: Using Query Parameters" in the API reference of Amazon S3.
TEST(S3PresignTest, SignsTheExampleOfAws) {
  const S3Bucket bucket = {.endpoint = "https://examplebucket.s3.amazonaws.com",
                           .region = "us-east-1",
                           .bucket = "",
                           .prefix = ""};
  const auto url = PresignS3(bucket, kExample, Get("test.txt"), absl::Hours(24), kNow);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(*url,
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"
            "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&"
            "X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&"
            "X-Amz-Signature="
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(S3PresignTest, SignsChecksumAndConditionOfPut) {
  const std::string sha256(64, 'a');
  const std::string url = Presigned(kBucket, S3PutOnce("model", sha256));
  EXPECT_THAT(url, HasSubstr("SignedHeaders=host%3Bif-none-match%3Bx-amz-checksum-sha256%3B"
                             "x-amz-meta-sha256&"));
  EXPECT_THAT(url, HasSubstr("http://127.0.0.1:16280/models/a/model?"));

  EXPECT_NE(Presigned(kBucket, S3PutOnce("model", std::string(64, 'b'))), url);
}

TEST(S3PresignTest, EncodesKeysAndSignsQueries) {
  EXPECT_THAT(Presigned(kBucket, Get("b c/d+~")), HasSubstr("/models/a/b%20c/d%2B~?"));
  S3Request list = Get("");
  list.query = {{"list-type", "2"}, {"prefix", "a/"}};
  EXPECT_THAT(Presigned(kBucket, list), HasSubstr("/models?"));
  EXPECT_THAT(Presigned(kBucket, list), HasSubstr("&list-type=2&prefix=a%2F&X-Amz-Signature="));
}

TEST(S3PresignTest, UrlHidesTheSecretKey) {
  S3Credentials temporary = kExample;
  temporary.session_token = "to/ken";
  const auto url = PresignS3(kBucket, temporary, Get("k"), absl::Minutes(5), kNow);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_THAT(*url, Not(HasSubstr("EXAMPLEKEY")));
  EXPECT_THAT(*url, HasSubstr("&X-Amz-Security-Token=to%2Fken&"));
}

TEST(S3PresignTest, RefusesEndpointsWithoutAHost) {
  for (const char* endpoint :
       {"", "ftp://host", "https://", "https://host/path", "https://user@host", "http://a\nb"}) {
    S3Bucket bucket = kBucket;
    bucket.endpoint = endpoint;
    const auto url = PresignS3(bucket, kExample, Get("k"), absl::Minutes(1), kNow);
    EXPECT_TRUE(absl::IsInvalidArgument(url.status())) << endpoint;
  }
}

TEST(S3PresignTest, ParsesBucketAndPrefix) {
  S3Bucket bucket;
  ASSERT_TRUE(ParseS3Url("s3://my-bucket", bucket).ok());
  EXPECT_EQ(bucket.bucket, "my-bucket");
  EXPECT_EQ(bucket.prefix, "");
  ASSERT_TRUE(ParseS3Url("s3://b.1/team/models/", bucket).ok());
  EXPECT_EQ(bucket.bucket, "b.1");
  EXPECT_EQ(bucket.prefix, "team/models");
  for (const char* url :
       {"", "/mnt/dir", "s3://", "s3://ab", "s3://Upper", "s3://-abc", "s3://abc-", "s3://abc//d",
        "s3://abc/../d", "s3://abc/./d", "s3://abc/d\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseS3Url(url, bucket))) << url;
  }
}

}  // namespace
}  // namespace lengthwise::server
