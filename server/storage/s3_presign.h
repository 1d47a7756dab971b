// Presigned URLs of S3-compatible object stores: AWS Signature Version 4 in the query string, for
// path-style requests.
#ifndef LENGTHWISE_SERVER_STORAGE_S3_PRESIGN_H_
#define LENGTHWISE_SERVER_STORAGE_S3_PRESIGN_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::server {

struct S3Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty: none
};

// How to reach an S3-compatible object store.
struct S3Options {
  std::string endpoint;  // empty: Amazon's of the region
  std::string region = "us-east-1";
  S3Credentials credentials;
};

// A bucket, or the part of one below a prefix.
struct S3Bucket {
  std::string endpoint;  // "https://host" or "https://host:port", also http
  std::string region;
  std::string bucket;
  std::string prefix;  // without "/" at its ends; empty: the whole bucket
};

// A request that is to be signed. Whoever has the URL can send this request, and no other, until it
// expires: method, key, query and headers are all signed.
struct S3Request {
  std::string method;  // "GET", "HEAD", "PUT", "DELETE"
  std::string key;     // below the prefix; empty: the bucket itself, without the prefix
  std::map<std::string, std::string> query = {};
  // Names in lower case, without host. The request must carry exactly these, with these values.
  std::map<std::string, std::string> headers = {};
};

// `life` is from 1 s to 7 days, which stores accept. INVALID_ARGUMENT for an endpoint that is not a
// URL of scheme and host.
absl::StatusOr<std::string> PresignS3(const S3Bucket& bucket, const S3Credentials& credentials,
                                      const S3Request& request, absl::Duration life,
                                      absl::Time now);

// The path of a key, with the bucket in front; also the header x-amz-copy-source.
std::string S3Path(const S3Bucket& bucket, absl::string_view key);

// The request that stores an object with these bytes. The store must refuse other bytes, because
// the checksum is signed, and must refuse to replace an object. It returns the header
// x-amz-meta-sha256 to HEAD requests; OpenStack Swift does not return x-amz-checksum-sha256.
// `sha256` is 64 lower-case hexadecimal digits.
S3Request S3PutOnce(absl::string_view key, absl::string_view sha256);

// "s3://bucket" or "s3://bucket/prefix". INVALID_ARGUMENT for other texts, and for names of buckets
// that S3 does not allow.
absl::Status ParseS3Url(absl::string_view url, S3Bucket& bucket);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_S3_PRESIGN_H_
