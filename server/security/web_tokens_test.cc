#include "server/security/web_tokens.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "platform/child_process.h"
#include "platform/files.h"
#include "rpc/token.h"
#include "server/security/testing/test_issuer.h"

namespace lengthwise::server {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Making RSA keys takes a second on a busy machine.
const TestKey& Rsa() {
  static const auto& key = *new TestKey(TestKey::Rsa("rsa"));
  return key;
}
const TestKey& Curve() {
  static const auto& key = *new TestKey(TestKey::Curve("curve"));
  return key;
}

class WebTokensTest : public testing::Test {
 protected:
  WebTokensTest()
      : directory_((std::filesystem::path(testing::TempDir()).lexically_normal() /
                    testing::UnitTest::GetInstance()->current_test_info()->name())
                       .string()),
        path_(directory_ + "/keys.json") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    WriteTestKeys(path_, {Rsa().Public(), Curve().Public()});
  }

  absl::StatusOr<std::unique_ptr<WebTokens>> Open(WebTokens::Options options = {}) {
    options.issuer = kTestIssuer;
    options.audience = kTestAudience;
    if (options.keys.empty()) options.keys = path_;
    return WebTokens::Open(std::move(options), [this] { return now_; });
  }
  json Claims() const { return TestClaims("sam", "submitter", now_ + absl::Hours(1)); }
  json ClaimsWith(const std::string& name, const json& value) const {
    json claims = Claims();
    claims[name] = value;
    return claims;
  }
  // The reason why a text is refused.
  static std::string Refusal(WebTokens& tokens, const std::string& text,
                             Caller* refused = nullptr) {
    const absl::Status status = tokens.Authenticate(text, refused).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << text;
    return std::string(status.message());
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const std::string directory_;
  const std::string path_;
};

TEST_F(WebTokensTest, SignedTokenHasItsPrincipalAndRole) {
  const TestKey other = TestKey::Curve("p384", CJOSE_JWK_EC_P_384);
  WriteTestKeys(path_, {Rsa().Public(), Curve().Public(), other.Public()});
  const auto tokens = Open().value();
  for (const std::string& token :
       {Rsa().Sign("RS256", Claims()), Rsa().Sign("RS384", Claims()), Rsa().Sign("RS512", Claims()),
        Curve().Sign("ES256", Claims()),
        other.Sign("ES384", ClaimsWith("aud", {"else", kTestAudience})),
        Curve().Sign("ES256", ClaimsWith("lengthwise_role", {"staff", "submitter"}))}) {
    ASSERT_TRUE(rpc::IsWebToken(token));
    for (int again = 0; again < 2; ++again) {
      const auto caller = tokens->Authenticate(token, nullptr);
      ASSERT_TRUE(caller.ok()) << caller.status();
      EXPECT_EQ(caller->principal, "sam");
      EXPECT_EQ(caller->role, v1::SUBMITTER);
      EXPECT_EQ(caller->expire_time, now_ + absl::Hours(1));
      EXPECT_EQ(caller->token_maker, kTestIssuer);
      EXPECT_TRUE(WebTokens::IsOf(*caller));
      EXPECT_THAT(token, Not(HasSubstr(caller->token_id)));
    }
  }
}

TEST_F(WebTokensTest, WrongClaimIsRefusedWithItsRemedy) {
  const auto tokens = Open().value();
  json without_expiry = Claims();
  without_expiry.erase("exp");
  json without_role = Claims();
  without_role.erase("lengthwise_role");
  const std::pair<json, std::string> cases[] = {
      {ClaimsWith("iss", "https://evil.example.org"), "get one from https://id.example.org"},
      {ClaimsWith("iss", 7), "another issuer"},
      {ClaimsWith("aud", "wiki"), "get one for lengthwise"},
      {ClaimsWith("aud", {"wiki", 7}), "another audience"},
      {ClaimsWith("sub", "Sam Smith"), "--oidc_principal_claim"},
      {ClaimsWith("sub", "sam\nadmin"), "--oidc_principal_claim"},
      {ClaimsWith("sub", {"sam", "tom"}), "--oidc_principal_claim"},
      {without_expiry, "set the claim exp"},
      {ClaimsWith("exp", "tomorrow"), "set the claim exp"},
      {ClaimsWith("nbf", absl::ToUnixSeconds(now_ + WebTokens::kLeeway) + 1), "by NTP"},
      {without_role, "\"lengthwise_role\"; have the identity provider set it"},
      {ClaimsWith("lengthwise_role", "root"), "exactly one of the roles"},
      {ClaimsWith("lengthwise_role", "denied"), "exactly one of the roles"},
      {ClaimsWith("lengthwise_role", {"viewer", "admin"}), "exactly one of the roles"},
      {json::array({"a list"}), "another issuer"},
  };
  for (const auto& [claims, remedy] : cases) {
    EXPECT_THAT(Refusal(*tokens, Curve().Sign("ES256", claims)), HasSubstr(remedy)) << claims;
  }
  // Clocks differ.
  EXPECT_TRUE(
      tokens
          ->Authenticate(Curve().Sign("ES256", ClaimsWith("nbf", absl::ToUnixSeconds(
                                                                     now_ + WebTokens::kLeeway))),
                         nullptr)
          .ok());
  // The audit log names whom the provider has named.
  Caller refused;
  Refusal(*tokens, Curve().Sign("ES256", without_role), &refused);
  EXPECT_EQ(refused.principal, "sam");
}

TEST_F(WebTokensTest, OtherClaimsCanNamePrincipalAndRole) {
  const auto tokens = Open({.principal_claim = "email", .role_claim = "groups"}).value();
  json claims = Claims();
  claims["email"] = "sam@example.org";
  claims["groups"] = {"staff", "viewer"};
  const Caller caller = tokens->Authenticate(Curve().Sign("ES256", claims), nullptr).value();
  EXPECT_EQ(caller.principal, "sam@example.org");
  EXPECT_EQ(caller.role, v1::VIEWER);
  claims["email_verified"] = false;
  EXPECT_THAT(Refusal(*tokens, Curve().Sign("ES256", claims)), HasSubstr("verify it"));
}

// The parts of a JWT: header, payload and signature.
std::vector<std::string> PartsOf(const std::string& token) { return absl::StrSplit(token, '.'); }

TEST_F(WebTokensTest, ForgedTokensAreRefusedWithoutTheirText) {
  const auto tokens = Open().value();
  const json admin = TestClaims("sam", "admin", now_ + absl::Hours(1));
  const std::string right = Curve().Sign("ES256", Claims());
  const std::vector<std::string> parts = PartsOf(right);
  const std::string payload = absl::WebSafeBase64Escape(admin.dump());
  const auto with = [&](const json& header, const std::string& signature) {
    return absl::StrCat(absl::WebSafeBase64Escape(header.dump()), ".", payload, ".", signature);
  };
  // The server's own public key as a shared secret.
  const std::string public_key = Curve().Public().dump();
  const TestKey shared = TestKey::Shared("curve", public_key);
  const std::vector<std::string> forged = {
      with({{"alg", "none"}, {"kid", "curve"}}, "AA"),
      with({{"alg", "None"}, {"kid", "curve"}}, "AA"),
      with({{"kid", "curve"}}, parts[2]),
      with({{"alg", {"ES256"}}, {"kid", "curve"}}, parts[2]),
      with({{"alg", "ES256"}, {"kid", {"curve"}}}, parts[2]),
      with({{"alg", "ES256"}, {"kid", "curve"}}, parts[2]),
      with({{"alg", "ES256"}, {"kid", "curve"}}, "A"),
      with({{"alg", "ES256"}, {"kid", "curve"}}, absl::WebSafeBase64Escape(std::string(64, '\0'))),
      with({{"alg", "ES256"}, {"kid", "curve"}}, absl::WebSafeBase64Escape(std::string(63, 'x'))),
      with({{"alg", "RS256"}, {"kid", "curve"}}, parts[2]),
      with({{"alg", "RS256"}, {"kid", "rsa"}}, absl::WebSafeBase64Escape(std::string(256, '\0'))),
      with({{"alg", "RS256"}, {"kid", "rsa"}}, absl::WebSafeBase64Escape(std::string(300, 'x'))),
      with({{"alg", "PS256"}, {"kid", "rsa"}}, absl::WebSafeBase64Escape(std::string(256, 'x'))),
      with({{"alg", "ES256"}, {"kid", "rsa"}}, parts[2]),
      with(json::array({"ES256"}), parts[2]),
      absl::StrCat("eyJ.", payload, ".", parts[2]),
      shared.Sign("HS256", admin),
      Rsa().Sign("PS256", Claims()),
      TestKey::Curve("curve").Sign("ES256", admin),
      TestKey::Curve("unknown").Sign("ES256", admin),
      Curve().Sign("ES256", Claims(), {{"crit", {"exp"}}}),
      absl::StrCat(parts[0], ".", payload, ".", parts[2]),
      absl::StrCat(parts[0], ".", parts[1], ".", parts[2].substr(0, 40)),
      absl::StrCat(parts[0], ".", parts[1], ".", PartsOf(Curve().Sign("ES256", admin))[2]),
  };
  for (const std::string& token : forged) {
    Caller refused;
    EXPECT_THAT(
        Refusal(*tokens, token, &refused),
        AllOf(HasSubstr("the JWT "), Not(HasSubstr(PartsOf(token)[1])), Not(HasSubstr("sam"))))
        << token;
    EXPECT_EQ(refused.principal, "") << token;
  }
  EXPECT_THAT(Refusal(*tokens, forged[0]), HasSubstr("sign it with RS256"));
  EXPECT_THAT(Refusal(*tokens, TestKey::Curve("new").Sign("ES256", admin)),
              HasSubstr("--oidc_keys is up to date"));
  EXPECT_TRUE(tokens->Authenticate(right, nullptr).ok());
}

TEST_F(WebTokensTest, RemovedKeyEndsItsTokensAndDamageDoesNot) {
  const auto tokens = Open().value();
  const std::string old = Curve().Sign("ES256", Claims());
  EXPECT_TRUE(tokens->Authenticate(old, nullptr).ok());
  for (const char* damaged : {"", "[]", "{\"keys\": 7}", "{\"keys\": [{\"kty\": \"OKP\"}, 7]}"}) {
    ASSERT_TRUE(platform::WriteFileAtomically(path_, damaged).ok());
    tokens->Refresh();
    EXPECT_TRUE(tokens->Authenticate(old, nullptr).ok()) << damaged;
  }
  const TestKey next = TestKey::Curve("next");
  WriteTestKeys(path_, {next.Public()});
  tokens->Refresh();
  EXPECT_THAT(Refusal(*tokens, old), HasSubstr("does not know"));
  EXPECT_TRUE(tokens->Authenticate(next.Sign("ES256", Claims()), nullptr).ok());
}

TEST_F(WebTokensTest, OnlyKeysForSignaturesAreUsed) {
  json encrypts = Curve().Public();
  encrypts["use"] = "enc";
  json shared = TestKey::Shared("shared", "secret").Public(true);
  WriteTestKeys(path_, {encrypts, shared, TestKey::Rsa("short", 1024).Public()});
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path_), HasSubstr("accepted: RSA of at least 2,048 bits")));
}

TEST_F(WebTokensTest, KeysThatOthersCanChangeAreRefused) {
  chmod(path_.c_str(), 0664);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
  chmod(path_.c_str(), 0644);
  EXPECT_TRUE(Open().ok());
  chmod(directory_.c_str(), 0777);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
  chmod(directory_.c_str(), 0755);
  EXPECT_EQ(Open({.keys = directory_ + "/none"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WebTokensTest, KeysComeFromAUrlOnceItAnswers) {
  const std::string output = directory_ + "/output";
  const auto server = platform::ChildProcess::Start(
      {.arguments = {"/usr/bin/python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1",
                     "--directory", directory_},
       .output_file = output});
  ASSERT_TRUE(server.ok()) << server.status();
  std::string url;
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (url.empty() && absl::Now() < deadline) {
    // "Serving HTTP on 127.0.0.1 port 40123 (http://127.0.0.1:40123/) ..."
    const std::string text = platform::ReadFile(output).value_or("");
    const size_t begin = text.find("http://"), end = text.find("/)");
    if (end != std::string::npos) url = text.substr(begin, end - begin);
    absl::SleepFor(absl::Milliseconds(10));
  }
  ASSERT_FALSE(url.empty());
  // The provider starts after the server.
  const auto tokens = Open({.keys = url + "/later.json"}).value();
  const std::string token = Curve().Sign("ES256", Claims());
  EXPECT_THAT(Refusal(*tokens, token), HasSubstr("does not know"));
  WriteTestKeys(directory_ + "/later.json", {Curve().Public()});
  tokens->Refresh();
  EXPECT_TRUE(tokens->Authenticate(token, nullptr).ok());
}

}  // namespace
}  // namespace lengthwise::server
