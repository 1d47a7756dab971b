#include "server/security/gate.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kCreate[] = "lengthwise.v1.ExperimentService/CreateExperiment";
constexpr char kGet[] = "lengthwise.v1.ExperimentService/GetExperiment";
constexpr char kSynchronize[] = "lengthwise.v1.WorkerService/Synchronize";

class GateTest : public testing::Test {
 protected:
  GateTest() {
    const std::string directory =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    tokens_ = TokenStore::Open(directory, [this] { return now_; }).value();
  }

  Gate Make(const Gate::Options& options) {
    return Gate(options, tokens_.get(), [this] { return now_; });
  }
  // "Bearer lw_..." with a new token.
  std::string Bearer(v1::Role role) {
    v1::CreateTokenRequest request;
    request.set_principal("ada");
    request.set_role(role);
    return "Bearer " + tokens_->Create(request).value().text();
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::unique_ptr<TokenStore> tokens_;
};

TEST_F(GateTest, WithoutTokensEveryoneMayDoEverything) {
  for (Gate* gate : {new Gate({}, nullptr), new Gate({}, tokens_.get())}) {
    const Caller caller = gate->Decide({}, kCreate).value();
    EXPECT_EQ(caller.principal, "anonymous");
    EXPECT_TRUE(gate->Decide({.authorization = "Bearer nonsense"}, kSynchronize).ok());
    delete gate;
  }
}

TEST_F(GateTest, FirstTokenClosesTheServer) {
  Gate gate = Make({});
  EXPECT_TRUE(gate.Decide({}, kGet).ok());
  const std::string bearer = Bearer(v1::VIEWER);
  const absl::Status status = gate.Decide({}, kGet).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--token_file"));
  EXPECT_EQ(gate.Decide({.authorization = bearer}, kGet).value().principal, "ada");
  for (const std::string& wrong : {bearer + "0", bearer.substr(7),
                                   std::string("Basic YWRhOmFkYQ=="), std::string("Bearer ")}) {
    EXPECT_EQ(gate.Decide({.authorization = wrong}, kGet).status().code(),
              absl::StatusCode::kUnauthenticated);
  }
}

TEST_F(GateTest, MethodsWithoutAnEntryAreDeniedToAllRoles) {
  Gate gate = Make({});
  const std::string viewer = Bearer(v1::VIEWER);
  const std::string admin = Bearer(v1::ADMIN);
  EXPECT_EQ(gate.Decide({.authorization = viewer}, kCreate).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(gate.Decide({.authorization = admin}, kCreate).ok());
  EXPECT_EQ(gate.Decide({.authorization = admin}, "lengthwise.v1.NewService/Do").status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(GateTest, WorkersNeedTokenAndCertificateIfConfigured) {
  Gate gate = Make({.workers_need_certificate = true});
  const std::string worker = Bearer(v1::WORKER);
  const absl::Status status = gate.Decide({.authorization = worker}, kSynchronize).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tls_certificate"));
  EXPECT_TRUE(gate.Decide({worker, true}, kSynchronize).ok());
  // A certificate is not a token, and other roles need no certificate.
  EXPECT_FALSE(gate.Decide({"", true}, kSynchronize).ok());
  EXPECT_TRUE(gate.Decide({.authorization = Bearer(v1::VIEWER)}, kGet).ok());
}

TEST_F(GateTest, QuotaCountsCallsByPrincipal) {
  Gate gate = Make({.quotas = {.calls_per_second = 1, .burst = 2}});
  const std::string first = Bearer(v1::SUBMITTER);
  const std::string second = Bearer(v1::VIEWER);
  const std::string worker = Bearer(v1::WORKER);
  EXPECT_TRUE(gate.Decide({.authorization = first}, kGet).ok());
  EXPECT_TRUE(gate.Decide({.authorization = second}, kGet).ok());
  EXPECT_EQ(gate.Decide({.authorization = first}, kGet).status().code(),
            absl::StatusCode::kResourceExhausted);
  for (int call = 0; call < 100; ++call) {
    EXPECT_TRUE(gate.Decide({.authorization = worker}, kSynchronize).ok());
  }
  now_ += absl::Seconds(1);
  EXPECT_TRUE(gate.Decide({.authorization = second}, kGet).ok());
}

}  // namespace
}  // namespace lengthwise::server
