#include "server/security/token_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "rpc/token.h"
#include "server/security/testing/test_issuer.h"

namespace lengthwise::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TokenStoreTest : public testing::Test {
 protected:
  TokenStoreTest()
      : directory_((std::filesystem::path(testing::TempDir()).lexically_normal() /
                    testing::UnitTest::GetInstance()->current_test_info()->name())
                       .string()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    store_ = Open();
  }

  std::unique_ptr<TokenStore> Open() {
    return TokenStore::Open(directory_, [this] { return now_; }).value();
  }

  v1::CreateTokenResponse Create(const std::string& principal, v1::Role role,
                                 absl::Duration lifetime = absl::ZeroDuration()) {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(role);
    if (lifetime > absl::ZeroDuration()) {
      request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
    }
    return store_->Create(request).value();
  }

  absl::StatusOr<v1::RevokeTokenResponse> Revoke(const v1::CreateTokenResponse& created) {
    v1::RevokeTokenRequest request;
    request.set_token_id(created.token().token_id());
    return store_->Revoke(request);
  }

  // The reason why a text is refused.
  std::string Refusal(const std::string& text) {
    const absl::Status status = store_->Authenticate(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    return std::string(status.message());
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const std::string directory_;
  std::unique_ptr<TokenStore> store_;
};

TEST_F(TokenStoreTest, TokenHasItsPrincipalAndRole) {
  EXPECT_FALSE(store_->IsRequired());
  const v1::CreateTokenResponse created = Create("ada", v1::SUBMITTER);
  EXPECT_TRUE(store_->IsRequired());
  const Caller caller = store_->Authenticate(created.text()).value();
  EXPECT_EQ(caller.principal, "ada");
  EXPECT_EQ(caller.role, v1::SUBMITTER);
  EXPECT_EQ(caller.token_id, created.token().token_id());
  EXPECT_EQ(caller.expire_time, now_ + absl::Hours(90 * 24));
}

TEST_F(TokenStoreTest, FileIsPrivateAndHasNoSecret) {
  const v1::CreateTokenResponse created = Create("ada", v1::ADMIN);
  const std::string secret = rpc::ParseTokenText(created.text()).value().secret;
  const std::string path = directory_ + "/tokens";
  EXPECT_THAT(platform::ReadFile(path).value(),
              AllOf(HasSubstr(created.token().token_id()), Not(HasSubstr(secret))));
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(TokenStoreTest, NoTwoTokensShareASecretASaltOrAHash) {
  std::set<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.insert(Create("ada", v1::VIEWER).text());
  EXPECT_EQ(texts.size(), 20u);
  std::set<std::string> salts, hashes;
  const std::vector<TokenRecord> records =
      ParseTokenRecords(platform::ReadFile(directory_ + "/tokens").value()).value();
  for (const TokenRecord& record : records) {
    salts.insert(record.salt);
    hashes.insert(record.hash);
  }
  EXPECT_EQ(salts.size(), 20u);
  EXPECT_EQ(hashes.size(), 20u);
}

TEST_F(TokenStoreTest, WrongSecretLooksLikeAnUnknownToken) {
  rpc::TokenText token = rpc::ParseTokenText(Create("ada", v1::ADMIN).text()).value();
  const std::string right = token.secret;
  for (size_t digit = 0; digit < right.size(); digit += 9) {
    token.secret = right;
    token.secret[digit] = right[digit] == '0' ? '1' : '0';
    EXPECT_THAT(Refusal(rpc::FormatTokenText(token)),
                AllOf(HasSubstr("does not know the token " + token.token_id),
                      Not(HasSubstr(token.secret))));
  }
  token.token_id = std::string(12, '0');
  EXPECT_THAT(Refusal(rpc::FormatTokenText(token)), HasSubstr("does not know the token 0000"));
  EXPECT_THAT(Refusal("let me in"), Not(HasSubstr("let me in")));
}

TEST_F(TokenStoreTest, TokenExpiresAfterItsLifetime) {
  const std::string text = Create("ada", v1::ADMIN, absl::Minutes(10)).text();
  now_ += absl::Minutes(10) - absl::Seconds(1);
  EXPECT_TRUE(store_->Authenticate(text).ok());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Refusal(text), AllOf(HasSubstr("of ada expired at 2023-11-14T22:23:20+00:00"),
                                   HasSubstr("lengthwise auth create-token")));
  // Only for callers with the secret.
  rpc::TokenText wrong = rpc::ParseTokenText(text).value();
  wrong.secret = std::string(64, '0');
  EXPECT_THAT(Refusal(rpc::FormatTokenText(wrong)), Not(HasSubstr("expired")));
}

TEST_F(TokenStoreTest, PrincipalLosesAllTokensAtOnce) {
  const v1::CreateTokenResponse laptop = Create("sam", v1::SUBMITTER),
                                cluster = Create("sam", v1::WORKER),
                                other = Create("samantha", v1::VIEWER);
  v1::RevokeTokenRequest request;
  EXPECT_EQ(store_->Revoke(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_principal("sam");
  const auto revoked = store_->Revoke(request);
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_EQ(revoked->principal(), "sam");
  EXPECT_EQ(revoked->count(), 2);
  EXPECT_FALSE(store_->Authenticate(laptop.text()).ok());
  EXPECT_FALSE(store_->Authenticate(cluster.text()).ok());
  EXPECT_TRUE(store_->Authenticate(other.text()).ok());
  EXPECT_EQ(store_->Revoke(request).status().code(), absl::StatusCode::kNotFound);
  request.set_token_id(other.token().token_id());
  EXPECT_EQ(store_->Revoke(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenStoreTest, RevokingTheLastTokenKeepsTheServerClosed) {
  const v1::CreateTokenResponse created = Create("ada", v1::ADMIN);
  EXPECT_TRUE(Revoke(created).ok());
  EXPECT_THAT(Refusal(created.text()), HasSubstr("was revoked"));
  EXPECT_TRUE(store_->IsRequired());
  EXPECT_TRUE(Open()->IsRequired());
  EXPECT_EQ(Revoke(created).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenStoreTest, RefusedTokenNamesItsCallerToTheServer) {
  v1::CreateTokenRequest request;
  request.set_principal("sam");
  request.set_role(v1::SUBMITTER);
  const v1::CreateTokenResponse created = store_->Create(request, "root").value();
  EXPECT_EQ(store_->Authenticate(created.text())->token_maker, "root");
  now_ += absl::Hours(24 * 91);
  Caller expired;
  EXPECT_FALSE(store_->Authenticate(created.text(), &expired).ok());
  EXPECT_EQ(expired.principal, "sam");
  EXPECT_EQ(expired.token_maker, "root");
  ASSERT_TRUE(Revoke(created).ok());
  Caller revoked, stranger;
  EXPECT_FALSE(store_->Authenticate(created.text(), &revoked).ok());
  EXPECT_THAT(Refusal(created.text()), HasSubstr("was revoked"));
  EXPECT_EQ(revoked.principal, "sam");
  EXPECT_EQ(revoked.role, v1::SUBMITTER);
  EXPECT_EQ(revoked.token_id, created.token().token_id());
  // The id is not secret.
  rpc::TokenText wrong = rpc::ParseTokenText(created.text()).value();
  wrong.secret = std::string(64, '0');
  EXPECT_FALSE(store_->Authenticate(rpc::FormatTokenText(wrong), &stranger).ok());
  EXPECT_EQ(stranger.principal, "");
}

TEST_F(TokenStoreTest, AnotherProcessesChangesTakeEffectAtOnce) {
  const std::unique_ptr<TokenStore> other = Open();
  const v1::CreateTokenResponse created = Create("ada", v1::ADMIN);
  EXPECT_TRUE(other->IsRequired());
  EXPECT_TRUE(other->Authenticate(created.text()).ok());
  EXPECT_TRUE(Revoke(created).ok());
  EXPECT_FALSE(other->Authenticate(created.text()).ok());
}

TEST_F(TokenStoreTest, ListsTheNewestFirstWithoutSecrets) {
  const v1::CreateTokenResponse ada = Create("ada", v1::ADMIN);
  now_ += absl::Hours(1);
  const v1::CreateTokenResponse grace = Create("grace", v1::VIEWER, absl::Hours(2));
  const v1::ListTokensResponse list = store_->List().value();
  ASSERT_EQ(list.tokens_size(), 2);
  EXPECT_EQ(list.tokens(0).SerializeAsString(), grace.token().SerializeAsString());
  EXPECT_EQ(list.tokens(1).SerializeAsString(), ada.token().SerializeAsString());
  EXPECT_EQ(list.tokens(0).expire_time().seconds() - list.tokens(0).create_time().seconds(), 7200);
}

TEST_F(TokenStoreTest, WrongRequestsAreNamed) {
  v1::CreateTokenRequest request;
  request.set_principal("Ada");
  request.set_role(v1::ADMIN);
  EXPECT_THAT(std::string(store_->Create(request).status().message()), HasSubstr("principal: "));
  request.set_principal("ada");
  request.set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_THAT(std::string(store_->Create(request).status().message()), HasSubstr("role: "));
  request.set_role(v1::ADMIN);
  for (const int64_t seconds : {int64_t{-1}, int64_t{0}, int64_t{59}, int64_t{400'000'000}}) {
    request.mutable_lifetime()->set_seconds(seconds);
    const absl::Status status = store_->Create(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("lifetime: is "));
  }
  EXPECT_FALSE(store_->IsRequired());
}

TEST_F(TokenStoreTest, UnusableFileRefusesEveryCaller) {
  const std::string text = Create("ada", v1::ADMIN).text();
  const std::string path = directory_ + "/tokens";
  std::ofstream(path) << "nonsense";
  EXPECT_THAT(Refusal(text), HasSubstr("cannot read its tokens"));
  EXPECT_TRUE(store_->IsRequired());
  const absl::Status opened = TokenStore::Open(directory_).status();
  EXPECT_EQ(opened.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(opened.message()), HasSubstr(path + " is damaged"));
  std::filesystem::remove(path);
  EXPECT_TRUE(store_->IsRequired());
  EXPECT_FALSE(store_->Authenticate(text).ok());
}

TEST_F(TokenStoreTest, LostTokensDoNotOpenTheServer) {
  const std::string text = Create("ada", v1::ADMIN).text();
  const std::string path = directory_ + "/tokens";
  std::filesystem::rename(path, path + ".lost");
  const absl::Status opened = TokenStore::Open(directory_).status();
  EXPECT_EQ(opened.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.message()),
              AllOf(HasSubstr(path + " is missing"), HasSubstr("--create_admin_token PATH"),
                    HasSubstr("--data_dir " + directory_ + " --remove_all_tokens")));
  // Each of the remedies.
  std::filesystem::rename(path + ".lost", path);
  EXPECT_TRUE(Open()->Authenticate(text).ok());
  std::filesystem::remove(path);
  const auto to_make_one =
      TokenStore::Open(directory_, absl::Now, TokenStore::IfMissing::kAccept).value();
  EXPECT_TRUE(to_make_one->IsRequired());
  v1::CreateTokenRequest request;
  request.set_principal("grace");
  request.set_role(v1::ADMIN);
  EXPECT_TRUE(to_make_one->Create(request).ok());
  EXPECT_TRUE(Open()->IsRequired());
  EXPECT_TRUE(TokenStore::RemoveAll(directory_).ok());
  EXPECT_FALSE(Open()->IsRequired());
  EXPECT_TRUE(to_make_one->IsRequired()) << "a server that runs stays closed";
  EXPECT_TRUE(TokenStore::RemoveAll(directory_).ok());
}

TEST_F(TokenStoreTest, TokensOfAnOlderReleaseGetTheMark) {
  Create("ada", v1::ADMIN);
  ASSERT_TRUE(std::filesystem::remove(directory_ + "/requires_tokens"));
  Open();
  std::filesystem::remove(directory_ + "/tokens");
  EXPECT_EQ(TokenStore::Open(directory_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TokenStoreTest, WritableTokensRefuseEveryCaller) {
  const std::string text = Create("ada", v1::ADMIN).text();
  const std::string path = directory_ + "/tokens";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(std::string(TokenStore::Open(directory_).status().message()),
              HasSubstr("run `chmod 600 " + path + "`"));
  // A running server refuses every caller as well, until this is fixed.
  EXPECT_THAT(Refusal(text), HasSubstr("cannot read its tokens"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(store_->Authenticate(text).ok());

  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(std::string(TokenStore::Open(directory_).status().message()),
              HasSubstr("run `chmod go-w " + directory_ + "`"));
  v1::CreateTokenRequest request;
  request.set_principal("grace");
  request.set_role(v1::ADMIN);
  EXPECT_EQ(store_->Create(request).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  EXPECT_TRUE(Open()->Authenticate(text).ok());
}

TEST_F(TokenStoreTest, KilledChangesLeaveNothing) {
  const auto leave = [this] {
    for (const char* left : {"/tokens.aB3x9Q.tmp", "/requires_tokens.aB3x9Q.tmp"}) {
      std::ofstream(directory_ + left) << "secret";
    }
  };
  Create("ada", v1::SUBMITTER);
  const std::vector<std::string> names = *platform::ListDirectory(directory_);
  leave();
  Create("ben", v1::SUBMITTER);
  EXPECT_EQ(*platform::ListDirectory(directory_), names);
  leave();
  store_ = Open();
  EXPECT_EQ(*platform::ListDirectory(directory_), names);
}

TEST_F(TokenStoreTest, TokensThatExpiredLongAgoAreForgotten) {
  Create("ada", v1::ADMIN, absl::Hours(1));
  now_ += absl::Hours(24 * 30);
  Create("grace", v1::ADMIN);
  EXPECT_EQ(store_->List().value().tokens_size(), 2);
  now_ += absl::Hours(2);
  Create("mary", v1::ADMIN);
  EXPECT_EQ(store_->List().value().tokens_size(), 2);
}

// Beside the server's own tokens, those of an identity provider.
class ProviderTest : public TokenStoreTest {
 protected:
  ProviderTest() { Accept(); }

  void Accept() {
    const std::string keys = directory_ + "/keys.json";
    WriteTestKeys(keys, {key_.Public()});
    store_->Accept(OpenTestTokens(keys, [this] { return now_; }));
  }
  std::string Token(const std::string& principal) {
    return key_.Sign("ES256", TestClaims(principal, "viewer", now_ + absl::Minutes(10)));
  }
  absl::StatusOr<v1::RevokeTokenResponse> RevokeAll(const std::string& principal) {
    v1::RevokeTokenRequest request;
    request.set_principal(principal);
    return store_->Revoke(request);
  }

  const TestKey key_ = TestKey::Curve("key");
};

TEST_F(ProviderTest, BothKindsOfTokensAreAccepted) {
  EXPECT_TRUE(store_->IsRequired());
  const Caller caller = store_->Authenticate(Token("sam")).value();
  EXPECT_EQ(caller.principal, "sam");
  EXPECT_EQ(caller.role, v1::VIEWER);
  EXPECT_TRUE(store_->Authenticate(Create("ada", v1::ADMIN).text()).ok());
  EXPECT_EQ(store_->Recheck(caller), absl::OkStatus());
}

TEST_F(ProviderTest, TokenEndsAtItsExpiry) {
  const std::string token = Token("sam");
  const Caller caller = store_->Authenticate(token).value();
  now_ += absl::Minutes(10) - absl::Seconds(1);
  EXPECT_TRUE(store_->Authenticate(token).ok());
  EXPECT_EQ(store_->Recheck(caller), absl::OkStatus());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Refusal(token), AllOf(HasSubstr("of sam expired at 2023-11-14T22:23:20+00:00"),
                                    HasSubstr("from the identity provider")));
  EXPECT_EQ(store_->Recheck(caller).code(), absl::StatusCode::kUnauthenticated);
  Caller refused;
  EXPECT_FALSE(store_->Authenticate(token, &refused).ok());
  EXPECT_EQ(refused.principal, "sam");
}

TEST_F(ProviderTest, RevokedPrincipalIsDeniedUntilTheEntryIsRevoked) {
  const std::string own = Create("sam", v1::VIEWER).text();
  const Caller caller = store_->Authenticate(Token("sam")).value();
  for (const int count : {1, 0}) {
    const auto revoked = RevokeAll("sam").value();
    EXPECT_EQ(revoked.principal(), "sam");
    EXPECT_EQ(revoked.count(), count);
    EXPECT_EQ(store_->List().value().tokens_size(), 1);
  }
  EXPECT_FALSE(store_->Authenticate(own).ok());
  EXPECT_EQ(store_->Recheck(caller).code(), absl::StatusCode::kUnauthenticated);
  // Later tokens too, and after a restart.
  now_ += absl::Minutes(1);
  store_ = Open();
  Accept();
  EXPECT_THAT(Refusal(Token("sam")),
              AllOf(HasSubstr("all tokens of sam"), HasSubstr("lengthwise auth list-tokens")));
  EXPECT_TRUE(store_->Authenticate(Token("samuel")).ok());
  // A new token of the server is an administrator's decision.
  EXPECT_TRUE(store_->Authenticate(Create("sam", v1::VIEWER).text()).ok());
  EXPECT_FALSE(store_->Authenticate(Token("sam")).ok());
  const v1::Token entry = store_->List().value().tokens(1);
  EXPECT_EQ(entry.role(), v1::ROLE_UNSPECIFIED);
  v1::RevokeTokenRequest lift;
  lift.set_token_id(entry.token_id());
  EXPECT_EQ(store_->Revoke(lift).value().principal(), "sam");
  EXPECT_TRUE(store_->Authenticate(Token("sam")).ok());
}

TEST_F(ProviderTest, MalformedPrincipalIsNotStored) {
  EXPECT_EQ(RevokeAll("sam admin\n").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ProviderTest, NobodyIsAcceptedWhileTheDeniedAreUnknown) {
  const Caller open = store_->Authenticate(Token("ada")).value();
  ASSERT_TRUE(RevokeAll("sam").ok());
  std::filesystem::rename(directory_ + "/tokens", directory_ + "/moved");
  for (const char* principal : {"sam", "ada"}) {
    EXPECT_THAT(Refusal(Token(principal)), HasSubstr("cannot read its tokens"));
  }
  EXPECT_EQ(store_->Recheck(open), absl::OkStatus());
  std::filesystem::rename(directory_ + "/moved", directory_ + "/tokens");
  EXPECT_TRUE(store_->Authenticate(Token("ada")).ok());
  EXPECT_FALSE(store_->Authenticate(Token("sam")).ok());
}

}  // namespace
}  // namespace lengthwise::server
