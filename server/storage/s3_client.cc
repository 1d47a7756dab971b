#include "server/storage/s3_client.h"

#include <pugixml.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "platform/object_store.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

// The server's own requests are sent at once.
constexpr absl::Duration kOwnLife = absl::Minutes(5);

std::string EtagOf(absl::string_view text) {
  absl::ConsumePrefix(&text, "\"");
  absl::ConsumeSuffix(&text, "\"");
  return std::string(text);
}

absl::Status ErrorOf(const S3Request& request, const std::string& url,
                     const platform::HttpResponse& response) {
  const platform::ObjectStoreError error = platform::ObjectStoreErrorOf(response);
  // "PUT s3://bucket/prefix/key: 403 AccessDenied: Access Denied."
  const std::string text = absl::StrCat(
      request.method, " ", url, request.key.empty() ? "" : "/", request.key, ": ", response.status,
      error.code.empty() ? "" : " ", error.code, error.message.empty() ? "" : ": ", error.message);
  switch (response.status) {
    case 400:
      // Of other requests, it refuses the credentials or the region.
      if (request.method == "PUT") return absl::DataLossError(text);
      [[fallthrough]];
    case 401:
    case 403:
      return absl::UnavailableError(
          absl::StrCat(text,
                       "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, their rights to this "
                       "bucket, --s3_region and the machine's clock"));
    case 404:
      if (error.code != "NoSuchBucket") return absl::NotFoundError(text);
      return absl::UnavailableError(
          absl::StrCat(text, "; create the bucket, or correct --artifacts"));
    case 409:  // another request is storing the same key
    case 429:
      return absl::UnavailableError(absl::StrCat(text, "; try again"));
    case 412:
      return absl::AlreadyExistsError(text);
    case 301:
    case 307:
      return absl::UnavailableError(
          absl::StrCat(text, "; the bucket is elsewhere: check --s3_endpoint and --s3_region"));
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

std::string S3Client::Url() const {
  return absl::StrCat("s3://", bucket_.bucket, bucket_.prefix.empty() ? "" : "/", bucket_.prefix);
}

absl::StatusOr<platform::HttpResponse> S3Client::SendOnce(const S3Request& request,
                                                          absl::string_view body,
                                                          absl::Duration timeout) const {
  ASSIGN_OR_RETURN(const SignedTransfer transfer, Sign(request, kOwnLife));
  return http_->Send({.method = request.method,
                      .url = transfer.url,
                      .headers = transfer.headers,
                      .body = body,
                      .timeout = timeout,
                      .is_cancelled = [this] { return cancelled_.load(); }});
}

absl::StatusOr<platform::HttpResponse> S3Client::Send(const S3Request& request,
                                                      absl::string_view body) const {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<platform::HttpResponse> response =
        SendOnce(request, body, platform::TransferTimeout(static_cast<int64_t>(body.size())));
    const bool repeat = attempt == 1 && (absl::IsUnavailable(response.status()) ||
                                         (response.ok() && response->status >= 500));
    if (repeat) continue;
    // Whatever kept the answer away says nothing about the object.
    if (!response.ok()) return absl::UnavailableError(response.status().message());
    if (response->ok()) return response;
    return ErrorOf(request, Url(), *response);
  }
}

absl::StatusOr<SignedTransfer> S3Client::Sign(const S3Request& request, absl::Duration life) const {
  ASSIGN_OR_RETURN(const std::string url,
                   PresignS3(bucket_, credentials_, request, life, absl::Now()));
  return SignedTransfer{.url = url, .headers = request.headers};
}

absl::StatusOr<S3Object> S3Client::Head(const std::string& key) const {
  ASSIGN_OR_RETURN(const platform::HttpResponse response, Send({.method = "HEAD", .key = key}));
  S3Object object = {.key = key,
                     .etag = EtagOf(response.Header("etag")),
                     .sha256 = response.Header("x-amz-meta-sha256")};
  if (!absl::SimpleAtoi(response.Header("content-length"), &object.size)) {
    return absl::UnavailableError(absl::StrCat("the store does not tell the size of ", key));
  }
  return object;
}

absl::StatusOr<std::string> S3Client::Read(const std::string& key, int64_t offset,
                                           int64_t count) const {
  ASSIGN_OR_RETURN(
      platform::HttpResponse response,
      Send({.method = "GET",
            .key = key,
            .headers = {{"range", absl::StrCat("bytes=", offset, "-", offset + count - 1)}}}));
  if (static_cast<int64_t>(response.body.size()) > count) {
    return absl::UnavailableError(absl::StrCat("the store ignores the range of a GET of ", key));
  }
  return std::move(response.body);
}

absl::Status S3Client::PutOnce(const std::string& key, absl::string_view bytes,
                               absl::string_view sha256) {
  return Send(S3PutOnce(key, sha256), bytes).status();
}

absl::Status S3Client::Replace(const std::string& key, absl::string_view bytes) {
  return Send({.method = "PUT", .key = key}, bytes).status();
}

absl::StatusOr<std::string> S3Client::Copy(const std::string& from, const std::string& to,
                                           absl::Duration timeout) {
  const S3Request request = {
      .method = "PUT", .key = to, .headers = {{"x-amz-copy-source", S3Path(bucket_, from)}}};
  const absl::StatusOr<platform::HttpResponse> response = SendOnce(request, "", timeout);
  if (!response.ok()) return absl::UnavailableError(response.status().message());
  if (response->status == 400) {
    return absl::UnavailableError(ErrorOf(request, Url(), *response).message());
  }
  if (!response->ok()) return ErrorOf(request, Url(), *response);
  // A store may answer 200 before it copies, and then tell of an error in the body.
  pugi::xml_document document;
  document.load_buffer(response->body.data(), response->body.size());
  const pugi::xml_node result = document.child("CopyObjectResult");
  if (!result) {
    return absl::UnavailableError(ErrorOf(request, Url(), *response).message());
  }
  return EtagOf(result.child_value("ETag"));
}

absl::Status S3Client::Delete(const std::string& key) {
  const absl::Status status = Send({.method = "DELETE", .key = key}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status S3Client::List(const std::string& prefix,
                            const std::function<void(S3Object object)>& take) const {
  const std::string root = bucket_.prefix.empty() ? "" : absl::StrCat(bucket_.prefix, "/");
  S3Request request = {.method = "GET",
                       .key = "",
                       .query = {{"list-type", "2"}, {"prefix", absl::StrCat(root, prefix)}}};
  while (true) {
    ASSIGN_OR_RETURN(const platform::HttpResponse page, Send(request));
    pugi::xml_document document;
    if (!document.load_buffer(page.body.data(), page.body.size())) {
      return absl::UnavailableError(absl::StrCat("the store's list of ", Url(), " is no XML"));
    }
    const pugi::xml_node list = document.child("ListBucketResult");
    for (const pugi::xml_node entry : list.children("Contents")) {
      absl::string_view key = entry.child_value("Key");
      S3Object object = {.etag = EtagOf(entry.child_value("ETag"))};
      if (!absl::ConsumePrefix(&key, root) ||
          !absl::SimpleAtoi(entry.child_value("Size"), &object.size)) {
        return absl::UnavailableError(absl::StrCat("the store's list of ", Url(), " is damaged"));
      }
      object.key = std::string(key);
      take(std::move(object));
    }
    if (absl::string_view(list.child_value("IsTruncated")) != "true") return absl::OkStatus();
    const std::string next = list.child_value("NextContinuationToken");
    if (next.empty()) {
      return absl::UnavailableError(absl::StrCat("the store's list of ", Url(), " has no end"));
    }
    request.query["continuation-token"] = next;
  }
}

}  // namespace lengthwise::server
