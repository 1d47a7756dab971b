// Authentication and encryption with the real programs: an encrypted server, clients of several
// people and a worker, with and without valid tokens and certificates.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/files.h"
#include "proto/worker_service.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/testing/test_certificates.h"
#include "rpc/token.h"
#include "server/security/testing/test_issuer.h"
#include "server/security/token_store.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Collects everything the programs of these tests printed, and their command lines.
std::string& Seen() {
  static std::string& seen = *new std::string;
  return seen;
}

std::string Contents(const std::string& path) { return platform::ReadFile(path).value_or(""); }

void LookAtCommandLine(const platform::ChildProcess& process) {
  std::ifstream file(absl::StrCat("/proc/", process.pid(), "/cmdline"));
  std::string line(std::istreambuf_iterator<char>(file), {});
  std::replace(line.begin(), line.end(), '\0', ' ');
  absl::StrAppend(&Seen(), line, "\n");
}

// One encrypted server that requires tokens, shared by all tests.
class AccessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new std::string(testing::TempDir() + "/access");
    std::filesystem::remove_all(*directory_);
    std::filesystem::create_directories(File("home/.config/lengthwise"));
    house_ = new rpc::TestAuthority(*directory_, "house");
    stranger_ = new rpc::TestAuthority(*directory_, "stranger");
    const Result made =
        Run({kServer, "--data_dir", File("data"), "--create_admin_token", File("admin.token")});
    ASSERT_EQ(made.code, 0) << made.output;
    provider_ = new server::TestKey(server::TestKey::Rsa("2026"));
    server::WriteTestKeys(File("keys.json"), {provider_->Public()});
    const rpc::TestAuthority::Pair pair = house_->Issue("server");
    server_ = platform::ChildProcess::Start({.arguments = {kServer,
                                                           "--listen",
                                                           "127.0.0.1:0",
                                                           "--metrics_listen",
                                                           "",
                                                           "--data_dir",
                                                           File("data"),
                                                           "--ready_file",
                                                           File("ready"),
                                                           "--tls_certificate",
                                                           pair.certificate,
                                                           "--tls_key",
                                                           pair.key,
                                                           "--tls_client_ca",
                                                           house_->ca(),
                                                           "--heartbeat_interval",
                                                           "200ms",
                                                           "--allow_python_networks",
                                                           "--python_networks_from",
                                                           "admin",
                                                           "--oidc_issuer",
                                                           server::kTestIssuer,
                                                           "--oidc_audience",
                                                           server::kTestAudience,
                                                           "--oidc_keys",
                                                           File("keys.json")},
                                             .output_file = File("server.log")})
                  .value()
                  .release();
    const absl::Time deadline = absl::Now() + kDeadline;
    while (!std::filesystem::exists(File("ready"))) {
      ASSERT_FALSE(server_->WaitFor(absl::Milliseconds(10)).has_value())
          << Contents(File("server.log"));
      ASSERT_LT(absl::Now(), deadline);
    }
    LookAtCommandLine(*server_);
    std::ifstream ready(File("ready"));
    address_ = new std::string;
    std::getline(ready, *address_);
    // The configuration that all users share.
    std::ofstream(File("home/.config/lengthwise/config.yaml"))
        << "server: " << *address_ << "\ntls_ca: " << house_->ca() << "\n";
    MakeToken("ada", "submitter");
    MakeToken("grace", "submitter");
    MakeToken("eve", "viewer");
    MakeToken("gpus", "worker");
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static std::string File(const std::string& name) { return absl::StrCat(*directory_, "/", name); }

  // Runs a program to its end as a user whose home is the test's.
  static Result Run(std::vector<std::string> arguments,
                    std::vector<std::pair<std::string, std::string>> environment = {}) {
    environment.insert(environment.end(), {{"HOME", File("home")}, {"XDG_CONFIG_HOME", ""}});
    static int number = 0;
    Result result = RunProgram(std::move(arguments), File(absl::StrCat("output-", number++)),
                               std::move(environment), LookAtCommandLine);
    absl::StrAppend(&Seen(), result.output);
    return result;
  }
  // Runs `lengthwise ...` with the token of `who`; without a token if `who` is empty.
  static Result Client(const std::string& who, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kClient);
    if (!who.empty()) {
      arguments.insert(arguments.end(), {"--token_file", File(who + ".token")});
    }
    return Run(std::move(arguments));
  }
  static void MakeToken(const std::string& principal, const std::string& role) {
    const Result made = Client("admin", {"auth", "create-token", principal, "--role", role, "--out",
                                         File(principal + ".token")});
    ASSERT_EQ(made.code, 0) << made.output;
  }
  // Expects a client's failure with a one-line message and returns it.
  static std::string Refusal(const Result& result) {
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    return result.output;
  }
  // Runs a worker until it was idle for `idle` or is rejected.
  static Result Worker(const std::vector<std::string>& more, const std::string& idle = "60s") {
    std::vector<std::string> arguments = {kWorker, "--device",         "cpu", "--threads",
                                          "1",     "--exit_when_idle", idle};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(std::move(arguments));
  }

  static std::string* directory_;
  static std::string* address_;
  static rpc::TestAuthority* house_;
  static rpc::TestAuthority* stranger_;
  static server::TestKey* provider_;
  static platform::ChildProcess* server_;
};

std::string* AccessTest::directory_ = nullptr;
std::string* AccessTest::address_ = nullptr;
rpc::TestAuthority* AccessTest::house_ = nullptr;
rpc::TestAuthority* AccessTest::stranger_ = nullptr;
server::TestKey* AccessTest::provider_ = nullptr;
platform::ChildProcess* AccessTest::server_ = nullptr;

TEST_F(AccessTest, RolesSufficeForAnExperiment) {
  EXPECT_THAT(Client("ada", {"auth", "whoami"}).output,
              HasSubstr(absl::StrCat("ada (submitter) at ", *address_, ", until 20")));
  const std::string specification = File("tiny.yaml");
  std::ofstream(specification) << kTinySpecification;
  EXPECT_THAT(Refusal(Client("eve", {"submit", specification})),
              HasSubstr("eve's token has the role viewer"));
  EXPECT_THAT(Refusal(Client("ada", {"submit", specification, "--owner", "grace"})),
              HasSubstr("cannot submit for grace"));
  const Result submitted = Client("ada", {"submit", specification});
  ASSERT_EQ(submitted.code, 0) << submitted.output;
  EXPECT_THAT(Refusal(Client("grace", {"cancel", "tiny"})), HasSubstr("tiny-1 is ada's"));
  EXPECT_THAT(Refusal(Client("grace", {"delete", "tiny-1", "--yes"})),
              HasSubstr("tiny-1 is ada's"));

  const rpc::TestAuthority::Pair pair = house_->Issue("gpus");
  const Result worked = Worker({"--token_file", File("gpus.token"), "--tls_certificate",
                                pair.certificate, "--tls_key", pair.key},
                               "3s");
  EXPECT_EQ(worked.code, 0) << worked.output;
  EXPECT_THAT(worked.output, HasSubstr("registered as"));
  const Result shown = Client("eve", {"list", "--output", "json"});
  const nlohmann::json experiment = nlohmann::json::parse(shown.output, nullptr, false);
  ASSERT_FALSE(experiment.is_discarded()) << shown.output;
  EXPECT_THAT(shown.output, AllOf(HasSubstr("\"owner\":\"ada\""), HasSubstr("\"succeeded\":1")));
}

TEST_F(AccessTest, CodeIsTakenFromAdministratorsAlone) {
  std::ofstream(File("net.py")) << "class Net: pass\n";
  const std::string specification = File("module.yaml");
  std::ofstream(specification) << absl::StrReplaceAll(
      kTinySpecification, {{"name: tiny", "name: module"},
                           {"{name: encoder, blocks: 1, heads: 2, d_model: 16}",
                            "{name: python, file: net.py, class: Net}"},
                           {"encodings: none", "encodings: own"}});
  EXPECT_THAT(Refusal(Client("ada", {"submit", specification})),
              HasSubstr("ada's token has the role submitter; this server takes the network "
                        "\"python\", whose code its workers run, from the role admin"));
  const Result submitted = Client("admin", {"submit", specification});
  EXPECT_EQ(submitted.code, 0) << submitted.output;
  EXPECT_EQ(Client("admin", {"cancel", "module-1"}).code, 0);
}

TEST_F(AccessTest, RejectedCallersGetOneLineOfAdvice) {
  // No token, an unknown token, a revoked one and an expired one.
  EXPECT_THAT(Refusal(Client("", {"list"})),
              AllOf(HasSubstr("asks for a token"), HasSubstr("--token_file")));
  const std::string other = rpc::FormatTokenText({std::string(12, '0'), std::string(64, '0')});
  ASSERT_TRUE(rpc::WriteTokenFile(File("other.token"), other).ok());
  EXPECT_THAT(Refusal(Client("other", {"list"})),
              AllOf(HasSubstr("does not know the token 000000000000"),
                    HasSubstr("lengthwise auth create-token")));
  MakeToken("gone", "viewer");
  const std::string id =
      rpc::ParseTokenText(rpc::ReadTokenFile(File("gone.token")).value()).value().token_id;
  EXPECT_EQ(Client("gone", {"list"}).code, 0);
  const auto revoked = Client("admin", {"auth", "revoke-token", id});
  EXPECT_EQ(revoked.code, 0);
  EXPECT_THAT(revoked.output, HasSubstr("of gone"));
  EXPECT_THAT(Refusal(Client("gone", {"list"})), HasSubstr("it was revoked"));
  {
    const auto store =
        server::TokenStore::Open(File("data"), [] { return absl::Now() - absl::Hours(1); }).value();
    v1::CreateTokenRequest request;
    request.set_principal("late");
    request.set_role(v1::VIEWER);
    request.mutable_lifetime()->set_seconds(60);
    ASSERT_TRUE(
        rpc::WriteTokenFile(File("late.token"), store->Create(request).value().text()).ok());
  }
  EXPECT_THAT(Refusal(Client("late", {"list"})),
              AllOf(HasSubstr("of late expired at 20"), HasSubstr("ask an administrator")));
  // A token file that other users can read.
  std::filesystem::copy_file(File("ada.token"), File("open.token"));
  chmod(File("open.token").c_str(), 0644);
  EXPECT_THAT(Refusal(Client("open", {"list"})), HasSubstr("chmod 600"));

  // A server with another authority's certificate, and a connection without TLS.
  EXPECT_THAT(Refusal(Client("ada", {"list", "--tls_ca", stranger_->ca()})),
              HasSubstr("is not the authority that signed it"));
  const Result plain = Run({kClient, "list", "--server", *address_}, {{"LENGTHWISE_CONFIG", ""}});
  EXPECT_THAT(Refusal(plain), AllOf(HasSubstr("if it speaks TLS, set tls_ca"),
                                    Not(HasSubstr("start `lengthwise_server`"))));
  EXPECT_THAT(Refusal(Run({kClient, "list", "--server", "head.example.org:7070", "--token_file",
                           File("ada.token")})),
              HasSubstr("in plain text"));
}

TEST_F(AccessTest, ProvidersTokensWorkBesideTheServers) {
  const auto write = [](const std::string& name, absl::Duration lifetime) {
    const auto claims = server::TestClaims("sam", "submitter", absl::Now() + lifetime);
    ASSERT_TRUE(rpc::WriteTokenFile(File(name + ".token"), provider_->Sign("RS256", claims)).ok());
  };
  write("sam", absl::Hours(1));
  write("sam_late", -absl::Seconds(1));
  EXPECT_THAT(Client("sam", {"auth", "whoami"}).output,
              HasSubstr(absl::StrCat("sam (submitter) at ", *address_, ", until 20")));
  EXPECT_THAT(Refusal(Client("sam", {"auth", "list-tokens"})),
              HasSubstr("sam's token has the role"));
  EXPECT_THAT(Refusal(Client("sam_late", {"list"})),
              AllOf(HasSubstr("of sam expired at 20"), HasSubstr("from the identity provider")));
  const server::TestKey other = server::TestKey::Rsa("2026");
  const auto claims = server::TestClaims("sam", "admin", absl::Now() + absl::Hours(1));
  ASSERT_TRUE(rpc::WriteTokenFile(File("forged.token"), other.Sign("RS256", claims)).ok());
  EXPECT_THAT(Refusal(Client("forged", {"list"})), HasSubstr("has a wrong signature"));
  // Sam leaves.
  EXPECT_THAT(Client("admin", {"auth", "revoke-token", "--principal", "sam"}).output,
              HasSubstr("Revoked all tokens of sam: 0."));
  EXPECT_THAT(Refusal(Client("sam", {"list"})), HasSubstr("revoked all tokens of sam"));
  EXPECT_THAT(Client("admin", {"auth", "list-tokens"}).output, HasSubstr("denied"));
}

TEST_F(AccessTest, WorkerNeedsTokenAndCertificate) {
  const auto refusal = [](const Result& result) {
    EXPECT_EQ(result.code, 1) << result.output;
    const size_t error = result.output.find("ERROR");
    EXPECT_NE(error, std::string::npos) << result.output;
    return result.output.substr(std::min(error, result.output.size()));
  };
  const rpc::TestAuthority::Pair right = house_->Issue("gpus");
  const rpc::TestAuthority::Pair wrong = stranger_->Issue("gpus");
  const rpc::TestAuthority::Pair over = house_->Issue("over", -absl::Minutes(1));
  const std::string token = File("gpus.token");
  EXPECT_THAT(refusal(Worker({"--token_file", token})),
              AllOf(HasSubstr("asks workers for a certificate"), HasSubstr("--tls_certificate")));
  EXPECT_THAT(refusal(Worker({"--tls_certificate", right.certificate, "--tls_key", right.key})),
              HasSubstr("asks for a token"));
  EXPECT_THAT(refusal(Worker({"--token_file", File("ada.token"), "--tls_certificate",
                              right.certificate, "--tls_key", right.key})),
              HasSubstr("takes the role worker or admin"));
  EXPECT_THAT(refusal(Worker({"--token_file", token, "--tls_certificate", wrong.certificate,
                              "--tls_key", wrong.key})),
              HasSubstr("does not accept the certificate"));
  EXPECT_THAT(refusal(Worker({"--token_file", token, "--tls_certificate", over.certificate,
                              "--tls_key", over.key})),
              HasSubstr("expired at"));
}

TEST_F(AccessTest, ShowsConfigurationWithOrigins) {
  const Result shown = Client("ada", {"config", "--output", "csv"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr(absl::StrCat("server,", *address_, ",", File("home"))),
                    HasSubstr(absl::StrCat("token_file,", File("ada.token"), ",--token_file"))));
}

// Names that would leave the directory of artifacts or experiments if they were used as paths.
TEST_F(AccessTest, NamesCannotLeaveTheirDirectory) {
  const rpc::TestAuthority::Pair pair = house_->Issue("me");
  const auto right = rpc::CreateChannel({.server = *address_,
                                         .token_file = File("admin.token"),
                                         .tls_ca = house_->ca(),
                                         .tls_certificate = pair.certificate,
                                         .tls_key = pair.key},
                                        {});
  ASSERT_TRUE(right.ok()) << right.status();
  const auto workers = v1::WorkerService::NewStub(*right);
  const auto experiments = v1::ExperimentService::NewStub(*right);
  std::ofstream(File("secret")) << "not an artifact";
  for (const std::string& name :
       {std::string("experiments/../trials/.."), std::string("experiments/../../trials/x"),
        std::string("experiments/..%2f..%2fsecret/trials/x"), std::string("experiments/./trials/."),
        std::string("experiments//etc/trials/passwd"), std::string("/etc/passwd"),
        std::string("experiments/x\\..\\y/trials/x"), std::string("experiments/a\0b/trials/x", 25),
        std::string("experiments/a\nb/trials/x")}) {
    const auto refused = [&](const grpc::Status& status) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
          << name << ": " << status.error_message();
    };
    {
      grpc::ClientContext context;
      v1::Trial trial;
      v1::GetTrialRequest request;
      request.set_name(name);
      refused(experiments->GetTrial(&context, request, &trial));
    }
    {
      grpc::ClientContext context;
      v1::DownloadArtifactRequest request;
      request.set_trial(name);
      request.set_sha256(std::string(64, 'a'));
      v1::DownloadArtifactResponse response;
      const auto reader = workers->DownloadArtifact(&context, request);
      EXPECT_FALSE(reader->Read(&response));
      refused(reader->Finish());
    }
    {
      grpc::ClientContext context;
      v1::UploadArtifactResponse response;
      const auto writer = workers->UploadArtifact(&context, &response);
      v1::UploadArtifactRequest request;
      request.mutable_header()->set_trial(name);
      request.mutable_header()->set_sha256(std::string(64, 'a'));
      writer->Write(request);
      writer->WritesDone();
      refused(writer->Finish());
    }
  }
  // A well-formed name of a missing trial, and a checksum that is a path.
  grpc::ClientContext context;
  v1::DownloadArtifactRequest request;
  request.set_trial("experiments/tiny-1/trials/x");
  request.set_sha256("../../../secret");
  v1::DownloadArtifactResponse response;
  const auto reader = workers->DownloadArtifact(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Runs last: searches everything that the other tests made the programs print.
TEST_F(AccessTest, ZSecretsDoNotLeak) {
  server_->Terminate(kDeadline);
  const std::string log = Contents(File("server.log"));
  EXPECT_THAT(log, AllOf(HasSubstr("with TLS"), HasSubstr("stopped")));
  std::string stored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(File("data"))) {
    if (!entry.is_regular_file()) continue;
    absl::StrAppend(&stored, Contents(entry.path().string()));
    struct stat status;
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0u) << entry.path() << " can be read by others";
  }
  EXPECT_THAT(Seen(), AllOf(HasSubstr("lengthwise_server"), HasSubstr("create-token")));
  int tokens = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*directory_)) {
    if (entry.path().extension() != ".token") continue;
    const std::string text = absl::StrReplaceAll(Contents(entry.path().string()), {{"\n", ""}});
    const auto own = rpc::ParseTokenText(text);
    // Of a provider's token the signature.
    const std::string secret = own.ok() ? own->secret : text.substr(text.rfind('.') + 1);
    ++tokens;
    for (const std::string& where : {log, Seen(), stored}) {
      EXPECT_EQ(where.find(secret), std::string::npos) << entry.path();
    }
  }
  EXPECT_GE(tokens, 7);
}

}  // namespace
}  // namespace lengthwise::end_to_end
