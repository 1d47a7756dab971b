#include "server/storage/s3_presign.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string Hmac(absl::string_view key, absl::string_view data) {
  return absl::HexStringToBytes(platform::HmacSha256Hex(key, data));
}

bool HasControlCharacter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

// Percent-encodes all but the unreserved characters of RFC 3986, and "/" in paths.
std::string Encode(absl::string_view text, bool is_path) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-._~", absl::string_view(&c, 1)) ||
        (is_path && c == '/')) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

// Host and port of an endpoint.
absl::StatusOr<std::string> HostOf(absl::string_view endpoint) {
  absl::string_view host = endpoint;
  if ((!absl::ConsumePrefix(&host, "https://") && !absl::ConsumePrefix(&host, "http://")) ||
      host.empty() || host.find_first_of("/?#@ ") != absl::string_view::npos ||
      HasControlCharacter(host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("endpoint: got \"", absl::CEscape(endpoint),
                     "\", accepted is https://HOST, https://HOST:PORT or the same with http"));
  }
  return absl::AsciiStrToLower(host);
}

}  // namespace

std::string S3Path(const S3Bucket& bucket, absl::string_view key) {
  std::vector<absl::string_view> parts;
  if (!bucket.bucket.empty()) parts.push_back(bucket.bucket);
  if (!key.empty() && !bucket.prefix.empty()) parts.push_back(bucket.prefix);
  if (!key.empty()) parts.push_back(key);
  return Encode(absl::StrCat("/", absl::StrJoin(parts, "/")), /*is_path=*/true);
}

absl::StatusOr<std::string> PresignS3(const S3Bucket& bucket, const S3Credentials& credentials,
                                      const S3Request& request, absl::Duration life,
                                      absl::Time now) {
  ASSIGN_OR_RETURN(const std::string host, HostOf(bucket.endpoint));
  const std::string day = absl::FormatTime("%Y%m%d", now, absl::UTCTimeZone());
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string scope = absl::StrCat(day, "/", bucket.region, "/s3/aws4_request");

  std::map<std::string, std::string> headers = request.headers;
  headers["host"] = host;
  std::vector<absl::string_view> names;
  std::string canonical_headers;
  for (const auto& [name, value] : headers) {
    names.push_back(name);
    absl::StrAppend(&canonical_headers, name, ":", value, "\n");
  }
  const std::string signed_headers = absl::StrJoin(names, ";");

  std::map<std::string, std::string> query;  // encoded, because that is the order that is signed
  const auto add = [&query](absl::string_view name, absl::string_view value) {
    query[Encode(name, /*is_path=*/false)] = Encode(value, /*is_path=*/false);
  };
  for (const auto& [name, value] : request.query) add(name, value);
  add("X-Amz-Algorithm", kAlgorithm);
  add("X-Amz-Credential", absl::StrCat(credentials.access_key_id, "/", scope));
  add("X-Amz-Date", time);
  add("X-Amz-Expires", absl::StrCat(absl::ToInt64Seconds(life)));
  add("X-Amz-SignedHeaders", signed_headers);
  if (!credentials.session_token.empty()) add("X-Amz-Security-Token", credentials.session_token);
  const std::string canonical_query = absl::StrJoin(query, "&", absl::PairFormatter("="));

  const std::string path = S3Path(bucket, request.key);
  const std::string canonical =
      absl::StrCat(request.method, "\n", path, "\n", canonical_query, "\n", canonical_headers, "\n",
                   signed_headers, "\nUNSIGNED-PAYLOAD");
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", time, "\n", scope, "\n", platform::Sha256Hex(canonical));
  std::string key = Hmac(absl::StrCat("AWS4", credentials.secret_access_key), day);
  key = Hmac(Hmac(Hmac(key, bucket.region), "s3"), "aws4_request");
  return absl::StrCat(absl::StripSuffix(bucket.endpoint, "/"), path, "?", canonical_query,
                      "&X-Amz-Signature=", platform::HmacSha256Hex(key, to_sign));
}

S3Request S3PutOnce(absl::string_view key, absl::string_view sha256) {
  return {.method = "PUT",
          .key = std::string(key),
          .headers = {{"if-none-match", "*"},
                      {"x-amz-checksum-sha256", absl::Base64Escape(absl::HexStringToBytes(sha256))},
                      {"x-amz-meta-sha256", std::string(sha256)}}};
}

absl::Status ParseS3Url(absl::string_view url, S3Bucket& bucket) {
  absl::string_view rest = url;
  const auto wrong = [&url] {
    return absl::InvalidArgumentError(
        absl::StrCat("got \"", absl::CEscape(url),
                     "\", accepted is s3://BUCKET or s3://BUCKET/PREFIX, where BUCKET has 3 to 63 "
                     "lower-case letters, digits, dots and hyphens"));
  };
  if (!absl::ConsumePrefix(&rest, "s3://") || HasControlCharacter(rest)) return wrong();
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  const absl::string_view name = parts.first;
  if (name.size() < 3 || name.size() > 63 || !std::all_of(name.begin(), name.end(), is_name) ||
      !absl::ascii_isalnum(static_cast<unsigned char>(name.front())) ||
      !absl::ascii_isalnum(static_cast<unsigned char>(name.back()))) {
    return wrong();
  }
  const absl::string_view prefix = absl::StripSuffix(parts.second, "/");
  // Clients normalise such parts away, and the signature would be another path's.
  if (!prefix.empty()) {
    for (const absl::string_view part : absl::StrSplit(prefix, '/')) {
      if (part.empty() || part == "." || part == "..") return wrong();
    }
  }
  bucket.bucket = std::string(name);
  bucket.prefix = std::string(prefix);
  return absl::OkStatus();
}

}  // namespace lengthwise::server
