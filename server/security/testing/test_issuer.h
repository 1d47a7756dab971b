// Stands for an identity provider in tests: keys, JWK sets and signed tokens.
#ifndef LENGTHWISE_SERVER_SECURITY_TESTING_TEST_ISSUER_H_
#define LENGTHWISE_SERVER_SECURITY_TESTING_TEST_ISSUER_H_

#include <cjose/cjose.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "platform/files.h"
#include "server/security/web_tokens.h"

namespace lengthwise::server {

inline constexpr char kTestIssuer[] = "https://id.example.org/realms/lab";
inline constexpr char kTestAudience[] = "lengthwise";

// The claims of a token that the server accepts.
inline nlohmann::json TestClaims(const std::string& principal, const std::string& role,
                                 absl::Time expires) {
  return {{"iss", kTestIssuer},
          {"aud", kTestAudience},
          {"sub", principal},
          {"exp", absl::ToUnixSeconds(expires)},
          {"lengthwise_role", role}};
}

class TestKey {
 public:
  static TestKey Rsa(const std::string& id, size_t bits = 2048) {
    return TestKey(id, cjose_jwk_create_RSA_random(bits, reinterpret_cast<const uint8_t*>("\1\0\1"),
                                                   3, nullptr));
  }
  static TestKey Curve(const std::string& id, cjose_jwk_ec_curve curve = CJOSE_JWK_EC_P_256) {
    return TestKey(id, cjose_jwk_create_EC_random(curve, nullptr));
  }
  // A secret that both sides share.
  static TestKey Shared(const std::string& id, const std::string& secret) {
    return TestKey(id, cjose_jwk_create_oct_spec(reinterpret_cast<const uint8_t*>(secret.data()),
                                                 secret.size(), nullptr));
  }

  // As a member of a JWK set; `with_secret` for a shared one.
  nlohmann::json Public(bool with_secret = false) const {
    char* const text = cjose_jwk_to_json(key_.get(), with_secret, nullptr);
    nlohmann::json key = nlohmann::json::parse(text);
    free(text);
    return key;
  }

  // A JWT. `more`: further fields of its header.
  std::string Sign(const std::string& algorithm, const nlohmann::json& claims,
                   const nlohmann::json& more = nlohmann::json::object()) const {
    cjose_header_t* const header = cjose_header_new(nullptr);
    cjose_header_set(header, "alg", algorithm.c_str(), nullptr);
    cjose_header_set(header, "kid", cjose_jwk_get_kid(key_.get(), nullptr), nullptr);
    for (const auto& [name, value] : more.items()) {
      cjose_header_set_raw(header, name.c_str(), value.dump().c_str(), nullptr);
    }
    const std::string payload = claims.dump();
    cjose_jws_t* const jws =
        cjose_jws_sign(key_.get(), header, reinterpret_cast<const uint8_t*>(payload.data()),
                       payload.size(), nullptr);
    const char* text = nullptr;
    EXPECT_TRUE(jws != nullptr && cjose_jws_export(jws, &text, nullptr)) << algorithm;
    std::string token = text == nullptr ? "" : text;
    cjose_jws_release(jws);
    cjose_header_release(header);
    return token;
  }

 private:
  struct Release {
    void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
  };

  TestKey(const std::string& id, cjose_jwk_t* key) : key_(key) {
    EXPECT_TRUE(cjose_jwk_set_kid(key, id.data(), id.size(), nullptr));
  }

  std::unique_ptr<cjose_jwk_t, Release> key_;
};

inline void WriteTestKeys(const std::string& path, const std::vector<nlohmann::json>& keys) {
  ASSERT_TRUE(platform::WriteFileAtomically(path, nlohmann::json{{"keys", keys}}.dump()).ok());
}

// With the key set in a file.
inline std::unique_ptr<WebTokens> OpenTestTokens(const std::string& path,
                                                 WebTokens::Now now = absl::Now) {
  return WebTokens::Open({.issuer = kTestIssuer, .audience = kTestAudience, .keys = path},
                         std::move(now))
      .value();
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TESTING_TEST_ISSUER_H_
