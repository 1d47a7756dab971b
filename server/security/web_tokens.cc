#include "server/security/web_tokens.h"

#include <cjose/cjose.h>
#include <openssl/err.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "platform/http_client.h"
#include "platform/log.h"
#include "platform/private_files.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/security/token_records.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

// Not in the namespace without a name, because WebTokens::Keys has it.
struct CjoseRelease {
  void operator()(cjose_jws_t* jws) const { cjose_jws_release(jws); }
  void operator()(cjose_jwk_t* jwk) const { cjose_jwk_release(jwk); }
  void operator()(char* text) const { free(text); }
};

namespace {

using nlohmann::json;

constexpr absl::string_view kAlgorithms[] = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"};
constexpr size_t kLeastRsaBits = 2048;
constexpr size_t kMostVerified = 10'000;
// A provider that does not answer delays the server's start and its end by this long.
constexpr absl::Duration kFetchTimeout = absl::Seconds(5);
// Digits of the hash in a token's id, which names it in the audit log.
constexpr size_t kShownDigits = 32;

bool IsUrl(absl::string_view keys) { return absl::StrContains(keys, "://"); }

absl::Status Refused(absl::string_view reason) {
  return absl::UnauthenticatedError(absl::StrCat("the JWT ", reason));
}

// The texts of a member, which is one or a list of them.
std::vector<std::string> TextsIn(const json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  std::vector<std::string> texts;
  for (const json& each : found->is_array() ? *found : json::array({*found})) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// Empty if there is no such text.
std::string TextIn(const json& object, const std::string& name) {
  const std::vector<std::string> texts = TextsIn(object, name);
  return texts.size() == 1 ? texts.front() : "";
}

std::optional<absl::Time> TimeIn(const json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(found->get<double>());
}

absl::StatusOr<std::string> Fetch(const std::string& url) {
  ASSIGN_OR_RETURN(const auto client, platform::HttpClient::Create());
  ASSIGN_OR_RETURN(const platform::HttpResponse answer,
                   client->Send({.method = "GET", .url = url, .timeout = kFetchTimeout}));
  if (answer.ok()) return answer.body;
  return absl::UnavailableError(absl::StrCat("the answer has the status ", answer.status));
}

}  // namespace

struct WebTokens::Keys {
  std::string text;
  // With their ids, which may be empty.
  std::vector<std::pair<std::string, std::unique_ptr<cjose_jwk_t, CjoseRelease>>> list;
};

WebTokens::WebTokens(Options options, Now now)
    : options_(std::move(options)), now_(std::move(now)), keys_(std::make_shared<Keys>()) {}

absl::StatusOr<std::unique_ptr<WebTokens>> WebTokens::Open(Options options, Now now) {
  std::unique_ptr<WebTokens> tokens(new WebTokens(std::move(options), std::move(now)));
  if (IsUrl(tokens->options_.keys)) {
    tokens->Refresh();
  } else {
    RETURN_IF_ERROR(tokens->ReadKeys());
  }
  tokens->refresh_ = std::make_unique<platform::PeriodicThread>(kInterval, [tokens = tokens.get()] {
    tokens->Refresh();
    return true;
  });
  return tokens;
}

void WebTokens::Refresh() {
  const absl::Status status = ReadKeys();
  const platform::MutexLock lock(mutex_);
  // Once, and not at every interval.
  if (!status.ok() && status != refreshed_) {
    platform::LogWarning(status.message(), "; keys that were read before stay in use");
  }
  refreshed_ = status;
}

absl::Status WebTokens::ReadKeys() {
  // Whoever can change the file can make tokens of every principal.
  absl::StatusOr<std::string> text =
      IsUrl(options_.keys) ? Fetch(options_.keys) : platform::ReadTrustedFile(options_.keys);
  auto keys = text.ok() ? ParseKeys(*std::move(text)) : text.status();
  if (!keys.ok()) {
    return absl::Status(keys.status().code(),
                        absl::StrCat("cannot use the identity provider's keys in ", options_.keys,
                                     ": ", keys.status().message()));
  }
  const platform::MutexLock lock(mutex_);
  if ((*keys)->text == keys_->text) return absl::OkStatus();
  keys_ = *std::move(keys);
  verified_.clear();
  platform::LogInfo("accepting tokens of ", options_.issuer, ", signed with ", keys_->list.size(),
                    " keys");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const WebTokens::Keys>> WebTokens::ParseKeys(std::string text) {
  const json set = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto list = set.find("keys");
  if (list == set.end() || !list->is_array()) {
    return absl::InvalidArgumentError("this is no JWK set, {\"keys\": [...]}");
  }
  auto keys = std::make_shared<Keys>();
  for (const json& each : *list) {
    if (const std::string use = TextIn(each, "use"); !use.empty() && use != "sig") continue;
    const std::string one = each.dump();
    std::unique_ptr<cjose_jwk_t, CjoseRelease> key(
        cjose_jwk_import(one.data(), one.size(), /*err=*/nullptr));
    if (key == nullptr) continue;
    const cjose_jwk_kty_t type = cjose_jwk_get_kty(key.get(), nullptr);
    const bool is_strong_rsa =
        type == CJOSE_JWK_KTY_RSA && cjose_jwk_get_keysize(key.get(), nullptr) >= kLeastRsaBits;
    if (!is_strong_rsa && type != CJOSE_JWK_KTY_EC) continue;
    keys->list.emplace_back(TextIn(each, "kid"), std::move(key));
  }
  if (keys->list.empty()) {
    return absl::InvalidArgumentError(
        "there is no key for signatures among them; accepted: RSA of at least 2,048 bits, and the "
        "elliptic curves P-256, P-384 and P-521");
  }
  keys->text = std::move(text);
  return keys;
}

absl::StatusOr<std::string> WebTokens::Verify(const Keys& keys, absl::string_view text) {
  const std::unique_ptr<cjose_jws_t, CjoseRelease> jws(
      cjose_jws_import(text.data(), text.size(), /*err=*/nullptr));
  cjose_header_t* const header = jws == nullptr ? nullptr : cjose_jws_get_protected(jws.get());
  const auto field = [&](const char* name) {
    const char* const value = cjose_header_get(header, name, nullptr);
    return std::string(value == nullptr ? "" : value);
  };
  // A receiver must refuse extensions that are critical to the sender (RFC 7515, section 4.1.11).
  if (header == nullptr || std::unique_ptr<char, CjoseRelease>(
                               cjose_header_get_raw(header, "crit", nullptr)) != nullptr) {
    return Refused("cannot be read; get a new one from the identity provider");
  }
  const std::string algorithm = field("alg");
  if (!absl::c_linear_search(kAlgorithms, algorithm)) {
    return Refused(
        "has an algorithm that is not accepted; have the identity provider sign it with RS256, "
        "RS384, RS512, ES256, ES384 or ES512");
  }
  const std::string id = field("kid");
  const cjose_jwk_kty_t type = algorithm[0] == 'R' ? CJOSE_JWK_KTY_RSA : CJOSE_JWK_KTY_EC;
  for (const auto& [of, key] : keys.list) {
    const bool is_meant = id.empty() ? keys.list.size() == 1 : of == id;
    if (!is_meant || cjose_jwk_get_kty(key.get(), nullptr) != type) continue;
    uint8_t* payload = nullptr;
    size_t size = 0;
    if (!cjose_jws_verify(jws.get(), key.get(), nullptr) ||
        !cjose_jws_get_plaintext(jws.get(), &payload, &size, nullptr)) {
      ERR_clear_error();  // this thread's next handshake would find it
      return Refused("has a wrong signature; get a new one from the identity provider");
    }
    return std::string(reinterpret_cast<const char*>(payload), size);
  }
  return Refused(
      "is signed with a key that the server does not know; get a new one from the identity "
      "provider, or ask the server's administrator whether --oidc_keys is up to date");
}

absl::Status WebTokens::ReadClaims(absl::string_view payload, Caller& caller) const {
  const json claims = json::parse(payload, nullptr, /*allow_exceptions=*/false);
  if (TextIn(claims, "iss") != options_.issuer) {
    return Refused(absl::StrCat("is from another issuer; get one from ", options_.issuer));
  }
  std::string principal = TextIn(claims, options_.principal_claim);
  if (!IsPrincipal(principal)) {
    return Refused(absl::StrCat(
        "has no principal in the claim \"", options_.principal_claim,
        "\" (1 to 60 characters of a-z, 0-9, \".\", \"_\", \"@\" and \"-\", first a letter or "
        "digit); the server's administrator can name another claim with --oidc_principal_claim"));
  }
  caller.principal = std::move(principal);
  if (options_.principal_claim == "email" &&
      claims.value("email_verified", json(true)) != json(true)) {
    return Refused("has an unverified e-mail address; verify it at the identity provider");
  }
  if (!absl::c_linear_search(TextsIn(claims, "aud"), options_.audience)) {
    return Refused(absl::StrCat("is for another audience; get one for ", options_.audience,
                                " from the identity provider"));
  }
  const std::optional<absl::Time> expires = TimeIn(claims, "exp");
  if (!expires.has_value()) {
    return Refused("never expires; have the identity provider set the claim exp");
  }
  caller.expire_time = std::min(*expires, now_() + TokenStore::kMaxLifetime);
  if (TimeIn(claims, "nbf").value_or(absl::InfinitePast()) > now_() + kLeeway) {
    return Refused(
        "is not valid yet; set the clocks of the server and the identity provider by NTP");
  }
  for (const std::string& name : TextsIn(claims, options_.role_claim)) {
    const v1::Role role = ParseRole(name);
    if (role == v1::ROLE_UNSPECIFIED) continue;
    if (caller.role != v1::ROLE_UNSPECIFIED) {
      caller.role = v1::ROLE_UNSPECIFIED;
      break;
    }
    caller.role = role;
  }
  if (caller.role != v1::ROLE_UNSPECIFIED) return absl::OkStatus();
  return Refused(
      absl::StrCat("must have exactly one of the roles viewer, submitter, worker, admin and backup "
                   "in the claim \"",
                   options_.role_claim, "\"; have the identity provider set it"));
}

absl::StatusOr<Caller> WebTokens::Authenticate(absl::string_view text, Caller* refused) {
  const std::string hash = platform::Sha256Hex(text);
  std::shared_ptr<const Keys> keys;
  {
    const platform::MutexLock lock(mutex_);
    if (const auto found = verified_.find(hash); found != verified_.end()) return found->second;
    keys = keys_;
  }
  ASSIGN_OR_RETURN(const std::string payload, Verify(*keys, text));
  Caller caller = {.token_id = absl::StrCat("jwt-", hash.substr(0, kShownDigits)),
                   .token_maker = options_.issuer};
  if (absl::Status status = ReadClaims(payload, caller); !status.ok()) {
    if (refused != nullptr && !caller.principal.empty()) *refused = std::move(caller);
    return status;
  }
  const platform::MutexLock lock(mutex_);
  if (verified_.size() >= kMostVerified) verified_.clear();
  if (keys == keys_) verified_.emplace(hash, caller);
  return caller;
}

}  // namespace lengthwise::server
