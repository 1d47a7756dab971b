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

  // The decision about a call with `authorization`.
  static absl::StatusOr<Caller> Decide(Gate& gate, absl::string_view authorization,
                                       absl::string_view method, bool has_certificate = false) {
    Gate::Admission admission;
    const absl::Status status =
        gate.Admit({.has_certificate = has_certificate}, method, authorization, admission);
    if (!status.ok()) return status;
    return admission.caller;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::unique_ptr<TokenStore> tokens_;
};

TEST_F(GateTest, WithoutTokensEveryoneMayDoEverything) {
  for (Gate* gate : {new Gate({}, nullptr), new Gate({}, tokens_.get())}) {
    const Caller caller = Decide(*gate, "", kCreate).value();
    EXPECT_EQ(caller.principal, "anonymous");
    EXPECT_TRUE(Decide(*gate, "Bearer nonsense", kSynchronize).ok());
    delete gate;
  }
}

TEST_F(GateTest, FirstTokenClosesTheServer) {
  Gate gate = Make({});
  EXPECT_TRUE(Decide(gate, "", kGet).ok());
  const std::string bearer = Bearer(v1::VIEWER);
  const absl::Status status = Decide(gate, "", kGet).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--token_file"));
  EXPECT_EQ(Decide(gate, bearer, kGet).value().principal, "ada");
  for (const std::string& wrong : {bearer + "0", bearer.substr(7),
                                   std::string("Basic YWRhOmFkYQ=="), std::string("Bearer ")}) {
    EXPECT_EQ(Decide(gate, wrong, kGet).status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST_F(GateTest, MethodsWithoutAnEntryAreDeniedToAllRoles) {
  Gate gate = Make({});
  const std::string viewer = Bearer(v1::VIEWER);
  const std::string admin = Bearer(v1::ADMIN);
  EXPECT_EQ(Decide(gate, viewer, kCreate).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Decide(gate, admin, kCreate).ok());
  EXPECT_EQ(Decide(gate, admin, "lengthwise.v1.NewService/Do").status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(GateTest, WorkersNeedTokenAndCertificateIfConfigured) {
  Gate gate = Make({.workers_need_certificate = true});
  const std::string worker = Bearer(v1::WORKER);
  const absl::Status status = Decide(gate, worker, kSynchronize).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tls_certificate"));
  EXPECT_TRUE(Decide(gate, worker, kSynchronize, true).ok());
  // A certificate is not a token, and other roles need no certificate.
  EXPECT_FALSE(Decide(gate, "", kSynchronize, true).ok());
  EXPECT_TRUE(Decide(gate, Bearer(v1::VIEWER), kGet).ok());
}

TEST_F(GateTest, QuotaCountsCallsByPrincipal) {
  Gate gate = Make({.quotas = {.calls_per_second = 1, .burst = 2}});
  const std::string first = Bearer(v1::SUBMITTER);
  const std::string second = Bearer(v1::VIEWER);
  const std::string worker = Bearer(v1::WORKER);
  EXPECT_TRUE(Decide(gate, first, kGet).ok());
  EXPECT_TRUE(Decide(gate, second, kGet).ok());
  EXPECT_EQ(Decide(gate, first, kGet).status().code(), absl::StatusCode::kResourceExhausted);
  for (int call = 0; call < 100; ++call) {
    EXPECT_TRUE(Decide(gate, worker, kSynchronize).ok());
  }
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Decide(gate, second, kGet).ok());
}

}  // namespace
}  // namespace lengthwise::server
