// S3Client: requests to one bucket of an S3-compatible object store.
#ifndef LENGTHWISE_SERVER_STORAGE_S3_CLIENT_H_
#define LENGTHWISE_SERVER_STORAGE_S3_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/http_client.h"
#include "server/storage/artifact_store.h"
#include "server/storage/s3_presign.h"

namespace lengthwise::server {

// One object. Keys are those below the bucket's prefix.
struct S3Object {
  std::string key;
  int64_t size = 0;
  std::string etag;
  std::string sha256;  // of S3PutOnce; empty in a listing
};

// Thread-safe. Blocks. Errors: NOT_FOUND; ALREADY_EXISTS for an object that must not be replaced;
// DATA_LOSS for bytes that do not have the announced checksum; UNAVAILABLE for everything that says
// nothing about an object: no answer, an overloaded store, wrong or expired credentials, a missing
// bucket where the store says so. No error contains a URL's signature.
class S3Client {
 public:
  S3Client(S3Bucket bucket, S3Credentials credentials, std::unique_ptr<platform::HttpClient> http)
      : bucket_(std::move(bucket)), credentials_(std::move(credentials)), http_(std::move(http)) {}

  // "s3://bucket/prefix".
  std::string Url() const;

  // Signs a request that somebody else sends.
  absl::StatusOr<SignedTransfer> Sign(const S3Request& request, absl::Duration life) const;

  absl::StatusOr<S3Object> Head(const std::string& key) const;
  // Bytes [offset, offset + count) of an object, fewer at its end.
  absl::StatusOr<std::string> Read(const std::string& key, int64_t offset, int64_t count) const;
  // `sha256` may be wrong on purpose, to test the store.
  absl::Status PutOnce(const std::string& key, absl::string_view bytes, absl::string_view sha256);
  absl::Status Replace(const std::string& key, absl::string_view bytes);
  // Copies within the store. Waits at most `timeout`; the store may copy later even then. Returns
  // the copy's ETag.
  absl::StatusOr<std::string> Copy(const std::string& from, const std::string& to,
                                   absl::Duration timeout);
  // OK if there is no such object.
  absl::Status Delete(const std::string& key);
  // Calls `take` with every object whose key begins with `prefix`.
  absl::Status List(const std::string& prefix,
                    const std::function<void(S3Object object)>& take) const;

  // Ends all requests, and later ones, with UNAVAILABLE within about a second.
  void Cancel() { cancelled_ = true; }

 private:
  // Sends the request, a second time if the store did not answer or was overloaded. Status and
  // body of the answer become an error unless it is a success.
  absl::StatusOr<platform::HttpResponse> Send(const S3Request& request,
                                              absl::string_view body = "") const;
  absl::StatusOr<platform::HttpResponse> SendOnce(const S3Request& request, absl::string_view body,
                                                  absl::Duration timeout) const;

  const S3Bucket bucket_;
  const S3Credentials credentials_;
  const std::unique_ptr<platform::HttpClient> http_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_S3_CLIENT_H_
