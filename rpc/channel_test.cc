// Tests the channel of clients and workers against real servers with their own certificates.
#include "rpc/channel.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "proto/fleet_service.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/testing/raw_server.h"
#include "rpc/testing/test_certificates.h"
#include "rpc/token.h"
#include "rpc/transport.h"

namespace lengthwise::rpc {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TokenOf(char digit) {
  return FormatTokenText({std::string(12, digit), std::string(64, digit)});
}

std::string Contents(const std::string& path) { return platform::ReadFile(path).value(); }

// Records the tokens that it receives.
class Server final : public v1::FleetService::Service {
 public:
  // Serves plain text without a pair. Requests client certificates of `client_ca`, if set.
  explicit Server(const TestAuthority::Pair* pair = nullptr, const std::string& client_ca = "",
                  const std::string& address = "127.0.0.1:0") {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (pair != nullptr) {
      grpc::SslServerCredentialsOptions tls(client_ca.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
      if (!client_ca.empty()) tls.pem_root_certs = Contents(client_ca);
      tls.pem_key_cert_pairs.push_back({Contents(pair->key), Contents(pair->certificate)});
      credentials = grpc::SslServerCredentials(tls);
    }
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, credentials, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Server() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    platform::MutexLock lock(mutex_);
    *response = answer_;
    const auto found = context->client_metadata().find("authorization");
    shown_.push_back(found == context->client_metadata().end()
                         ? ""
                         : std::string(found->second.data(), found->second.size()));
    has_certificate_ = context->auth_context()->IsPeerAuthenticated();
    authority_ = std::string(context->ExperimentalGetAuthority().data(),
                             context->ExperimentalGetAuthority().size());
    return grpc::Status::OK;
  }

  const std::string& address() const { return address_; }
  void Answer(v1::ListWorkersResponse answer) {
    platform::MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  std::vector<std::string> shown() {
    platform::MutexLock lock(mutex_);
    return shown_;
  }
  bool has_certificate() {
    platform::MutexLock lock(mutex_);
    return has_certificate_;
  }
  // The last call's.
  std::string authority() {
    platform::MutexLock lock(mutex_);
    return authority_;
  }

 private:
  platform::Mutex mutex_;
  v1::ListWorkersResponse answer_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> shown_ ABSL_GUARDED_BY(mutex_);
  bool has_certificate_ ABSL_GUARDED_BY(mutex_) = false;
  std::string authority_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Call(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  const auto channel = CreateChannel(options, arguments);
  if (!channel.ok()) return {grpc::StatusCode::INTERNAL, channel.status().ToString()};
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ListWorkersResponse response;
  return v1::FleetService::NewStub(*channel)->ListWorkers(&context, {}, &response);
}

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    house_ = std::make_unique<TestAuthority>(directory_, "house");
    stranger_ = std::make_unique<TestAuthority>(directory_, "stranger");
    server_pair_ = house_->Issue("server");
  }

  const std::string directory_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::unique_ptr<TestAuthority> house_;
  std::unique_ptr<TestAuthority> stranger_;
  TestAuthority::Pair server_pair_;
  const std::string token_file_ = directory_ + "/ada.token";
};

// Returns the explanation of a call that fails.
std::string Explained(const ChannelOptions& options) {
  const grpc::Status status = Call(options);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  const absl::Status explained = ExplainRefusedConnection(status.error_message(), options);
  EXPECT_FALSE(explained.ok()) << status.error_message();
  return std::string(explained.message());
}

TEST_F(ChannelTest, TokenIsSentOverTlsAndPlainLoopback) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  Server plain;
  Server encrypted(&server_pair_);
  EXPECT_TRUE(Call({.server = plain.address(), .token_file = token_file_}).ok());
  EXPECT_TRUE(
      Call({.server = encrypted.address(), .token_file = token_file_, .tls_ca = house_->ca()})
          .ok());
  EXPECT_TRUE(Call({.server = encrypted.address(), .tls_ca = house_->ca()}).ok());
  EXPECT_THAT(plain.shown(), ElementsAre("Bearer " + TokenOf('1')));
  EXPECT_THAT(encrypted.shown(), ElementsAre("Bearer " + TokenOf('1'), ""));
}

TEST_F(ChannelTest, TokenNeverLeavesTheMachineInPlainText) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  const absl::Status status =
      CreateChannel({.server = "head.example.org:7070", .token_file = token_file_}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("set tls_ca"));
  EXPECT_TRUE(CreateChannel({.server = "head.example.org:7070"}, {}).ok());
}

TEST_F(ChannelTest, RenewedTokenNeedsNoNewChannel) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  Server server;
  const auto channel =
      CreateChannel({.server = server.address(), .token_file = token_file_}, {}).value();
  const auto stub = v1::FleetService::NewStub(channel);
  for (const char digit : {'1', '2'}) {
    ASSERT_TRUE(platform::WriteFileAtomically(token_file_, TokenOf(digit)).ok());
    grpc::ClientContext context;
    v1::ListWorkersResponse response;
    ASSERT_TRUE(stub->ListWorkers(&context, {}, &response).ok());
  }
  EXPECT_THAT(server.shown(), ElementsAre("Bearer " + TokenOf('1'), "Bearer " + TokenOf('2')));
}

// The authority and the client's certificate are replaced while the channel lives.
TEST_F(ChannelTest, RenewedCertificatesNeedNoNewChannel) {
  const auto replace = [&](const std::string& from, const std::string& name) {
    ASSERT_TRUE(platform::WriteFileAtomically(directory_ + "/" + name, Contents(from)).ok());
  };
  const auto use = [&](const TestAuthority& authority, const TestAuthority::Pair& client) {
    replace(authority.ca(), "ca.crt");
    replace(client.key, "client.key");
    replace(client.certificate, "client.crt");
    std::filesystem::permissions(directory_ + "/client.key", std::filesystem::perms::owner_read);
  };
  use(*house_, house_->Issue("client"));
  auto server = std::make_unique<Server>(&server_pair_, house_->ca());
  const std::string address = server->address();
  const auto channel = CreateChannel({.server = address,
                                      .tls_ca = directory_ + "/ca.crt",
                                      .tls_certificate = directory_ + "/client.crt",
                                      .tls_key = directory_ + "/client.key",
                                      .certificates_interval = absl::Seconds(1)},
                                     {})
                           .value();
  const auto stub = v1::FleetService::NewStub(channel);
  const auto call = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::ListWorkersResponse response;
    return stub->ListWorkers(&context, {}, &response);
  };
  ASSERT_TRUE(call().ok());
  EXPECT_TRUE(server->has_certificate());

  const TestAuthority::Pair next = stranger_->Issue("server");
  server.reset();
  server = std::make_unique<Server>(&next, stranger_->ca(), address);
  EXPECT_FALSE(call().ok()) << "the channel's authority has not signed this one";
  use(*stranger_, stranger_->Issue("client"));
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  grpc::Status status = call();
  while (!status.ok() && absl::Now() < deadline) status = call();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(server->has_certificate());
}

// Returns an address at which no server listens.
std::string DeadAddress() {
  Server server;
  return server.address();
}

TEST_F(ChannelTest, FindsTheServerAtAnyAddressOfAList) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  const std::string dead = DeadAddress();
  Server plain;
  EXPECT_TRUE(
      Call({.server = absl::StrCat(dead, ", ", plain.address()), .token_file = token_file_}).ok());
  EXPECT_THAT(plain.shown(), ElementsAre("Bearer " + TokenOf('1')));
  Server encrypted(&server_pair_);
  EXPECT_TRUE(
      Call({.server = absl::StrCat(dead, ",", encrypted.address()), .tls_ca = house_->ca()}).ok())
      << "the certificate names 127.0.0.1, the first address's host";
}

TEST_F(ChannelTest, ListTakesTheNameOfTheCertificate) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  Server server(&server_pair_);
  const std::string port = server.address().substr(server.address().rfind(':'));
  ChannelOptions options = {.server = absl::StrCat("127.0.0.2", port, ",", server.address()),
                            .token_file = token_file_,
                            .tls_ca = house_->ca()};
  EXPECT_THAT(Explained(options), HasSubstr("set tls_server_name"))
      << "the certificate does not name 127.0.0.2, the first address's host";
  EXPECT_THAT(server.shown(), IsEmpty());
  options.tls_server_name = "localhost";
  const grpc::Status status = Call(options);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(server.shown(), ElementsAre("Bearer " + TokenOf('1')));
  EXPECT_EQ(server.authority(), "localhost") << "newer gRPC compares it with the certificate";
  options.tls_server_name = "other.example.org";
  EXPECT_THAT(Explained(options), HasSubstr("set tls_server_name"));
}

TEST_F(ChannelTest, AdviceOnAListNamesTheAddressThatFailed) {
  Server server(&server_pair_);
  const std::string port = server.address().substr(server.address().rfind(':'));
  EXPECT_THAT(Explained({.server = absl::StrCat("127.0.0.2", port, ",", server.address()),
                         .tls_ca = stranger_->ca(),
                         .tls_server_name = "localhost"}),
              HasSubstr(absl::StrCat("`openssl s_client -connect ", server.address(), " -CAfile ",
                                     stranger_->ca(), "`")));
  const ChannelOptions list = {.server = "head-1:1, head-2:2", .tls_ca = "/ca.pem"};
  EXPECT_THAT(std::string(ExplainRefusedConnection(
                              "failed to connect to all addresses; certificate verify failed", list)
                              .message()),
              HasSubstr("`openssl s_client -connect head-1:1 -CAfile /ca.pem`"))
      << "the first address, if the message names none";
}

// Messages of gRPC 1.51.
TEST(ExplainRefusedConnection, NamesThePortOfAnotherService) {
  const auto explain = [](const std::string& cause, const std::string& tls_ca) {
    const absl::Status status = ExplainRefusedConnection(
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9464: " + cause,
        {.server = "head:9464", .tls_ca = tls_ca});
    EXPECT_FALSE(status.ok()) << cause;
    return std::string(status.message());
  };
  for (const char* cause : {"Failed parsing HTTP/2", "Trying to connect an http1.x server"}) {
    EXPECT_THAT(explain(cause, ""), HasSubstr("head:9464 answers, but is no Lengthwise server"));
  }
  for (const char* cause :
       {"connection attempt timed out before receiving SETTINGS frame", "Handshake read failed"}) {
    EXPECT_THAT(explain(cause, "/ca.pem"),
                AllOf(HasSubstr("head:9464 accepts connections but does not answer"),
                      HasSubstr("--tls_certificate")));
  }
  EXPECT_THAT(explain("Ssl handshake failed: SSL_ERROR_SSL: wrong version number", "/ca.pem"),
              HasSubstr("not that of its metrics"));
  EXPECT_THAT(explain("Ssl handshake failed: SSL_ERROR_SSL: certificate verify failed", "system"),
              AllOf(HasSubstr("none of the system's authorities"),
                    HasSubstr("`openssl s_client -connect head:9464` shows which")));
}

TEST(ConnectFailureTest, ReducesOnlyNestedCauses) {
  EXPECT_EQ(ConnectFailure("failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:1"
                           ": Failed to connect to remote host: Connection refused"),
            "Connection refused");
  EXPECT_EQ(ConnectFailure("DNS resolution failed for h:1: C-ares status is not ARES_SUCCESS "
                           "qtype=A name=h is_balancer=0: Domain name not found"),
            "Domain name not found");
  EXPECT_EQ(ConnectFailure("not accepted: it has expired; `openssl s_client -connect h:1`"),
            "not accepted: it has expired; `openssl s_client -connect h:1`");
}

TEST_F(ChannelTest, ChannelFollowsTheServerToAnotherAddress) {
  auto first = std::make_unique<Server>();
  auto second = std::make_unique<Server>();
  const auto channel =
      CreateChannel({.server = absl::StrCat(first->address(), ",", second->address())}, {}).value();
  const auto stub = v1::FleetService::NewStub(channel);
  const auto call = [&] {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::ListWorkersResponse response;
    return stub->ListWorkers(&context, {}, &response).ok();
  };
  ASSERT_TRUE(call());
  EXPECT_EQ(second->shown().size(), 0U);
  first.reset();
  // One call may still take the old connection and fail with it.
  ASSERT_TRUE(call() || call());
  EXPECT_EQ(second->shown().size(), 1U);
}

TEST_F(ChannelTest, TokenStaysHereIfOneAddressOfAListIsElsewhere) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  EXPECT_EQ(CreateChannel({.server = "127.0.0.1:1,10.0.0.1:1", .token_file = token_file_}, {})
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ChannelTest, PresentsCertificateIfRequested) {
  Server server(&server_pair_, house_->ca());
  const TestAuthority::Pair mine = house_->Issue("worker");
  EXPECT_TRUE(Call({.server = server.address(), .tls_ca = house_->ca()}).ok());
  EXPECT_FALSE(server.has_certificate());
  EXPECT_TRUE(Call({.server = server.address(),
                    .tls_ca = house_->ca(),
                    .tls_certificate = mine.certificate,
                    .tls_key = mine.key})
                  .ok());
  EXPECT_TRUE(server.has_certificate());
  const TestAuthority::Pair wrong = stranger_->Issue("worker");
  EXPECT_THAT(Explained({.server = server.address(),
                         .tls_ca = house_->ca(),
                         .tls_certificate = wrong.certificate,
                         .tls_key = wrong.key}),
              AllOf(HasSubstr("does not accept the certificate " + wrong.certificate),
                    HasSubstr("--tls_client_ca")));
}

TEST_F(ChannelTest, UnverifiedServerGetsNoToken) {
  ASSERT_TRUE(WriteTokenFile(token_file_, TokenOf('1')).ok());
  const TestAuthority::Pair over = house_->Issue("over", -absl::Minutes(5));
  Server server(&server_pair_);
  Server expired(&over);
  Server plain;
  EXPECT_THAT(
      Explained({.server = server.address(), .token_file = token_file_, .tls_ca = stranger_->ca()}),
      HasSubstr("is not the authority that signed it"));
  EXPECT_THAT(
      Explained({.server = expired.address(), .token_file = token_file_, .tls_ca = house_->ca()}),
      HasSubstr("it has expired, or"));
  EXPECT_THAT(Explained({.server = server.address(),
                         .token_file = token_file_,
                         .tls_ca = house_->ca(),
                         .tls_server_name = "other.example.org"}),
              HasSubstr("tls_server_name"));
  EXPECT_THAT(
      Explained({.server = plain.address(), .token_file = token_file_, .tls_ca = house_->ca()}),
      HasSubstr("does not speak TLS"));
  EXPECT_THAT(Explained({.server = server.address(), .token_file = token_file_}),
              HasSubstr("if it speaks TLS, set tls_ca"));
  EXPECT_THAT(server.shown(), IsEmpty());
  EXPECT_THAT(expired.shown(), IsEmpty());
  EXPECT_THAT(plain.shown(), IsEmpty());
}

TEST_F(ChannelTest, UnusableOptionsFailBeforeConnecting) {
  const TestAuthority::Pair over = house_->Issue("over", -absl::Minutes(5));
  const auto refusal = [](const ChannelOptions& options) {
    return std::string(CreateChannel(options, {}).status().message());
  };
  const std::string server = "127.0.0.1:1";
  EXPECT_THAT(refusal({.server = server,
                       .tls_ca = house_->ca(),
                       .tls_certificate = over.certificate,
                       .tls_key = over.key}),
              HasSubstr("expired at"));
  EXPECT_THAT(refusal({.server = server,
                       .tls_certificate = server_pair_.certificate,
                       .tls_key = server_pair_.key}),
              HasSubstr("needs tls_ca"));
  EXPECT_THAT(
      refusal(
          {.server = server, .tls_ca = house_->ca(), .tls_certificate = server_pair_.certificate}),
      HasSubstr("go together"));
  EXPECT_THAT(refusal({.server = server, .token_file = directory_ + "/none"}),
              HasSubstr("No such file"));
}

const std::pair<std::string, std::string> kGrpc = {"content-type", "application/grpc"};

// gRPC 1.51 aborts on the first two if it retries.
TEST(RawAnswerTest, ProxysPageIsAnUnreachableServer) {
  const std::vector<RawServer::Answer> pages = {
      {},
      {.headers = {kGrpc}},
      {.headers = {{"content-type", "text/html"}}, .data = "<p>healthy"},
      {.headers = {kGrpc}, .data = MessagePrefix(0)},
      {.headers = {kGrpc, {"grpc-status", "0"}}}};
  for (size_t i = 0; i < pages.size(); ++i) {
    RawServer server(pages[i]);
    const absl::Status status = ToStatus(Call({.server = server.address()}));
    EXPECT_TRUE(absl::IsUnavailable(status)) << i << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("no Lengthwise server, but perhaps a proxy"))
        << i;
    EXPECT_EQ(server.calls(), 1) << i;
  }
}

TEST(RawAnswerTest, UnknownStatusHasAMessage) {
  for (const std::string code : {"17", "99", "-1", "4294967296", "abc"}) {
    RawServer server({.headers = {kGrpc, {"grpc-status", code}}});
    const absl::Status status = ToStatus(Call({.server = server.address()}));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnknown) << code;
    EXPECT_THAT(std::string(status.message()), HasSubstr("gave no reason")) << code;
  }
}

TEST(RawAnswerTest, AnnouncedMessageIsNotBuffered) {
  // Beyond the limit: what HTTP/2's windows and the sockets hold.
  constexpr int64_t kInFlight = 32 << 20;
  constexpr int64_t kAnnounced = 3 * (kMaxReceivedBytes + kInFlight);
  RawServer server({.headers = {kGrpc},
                    .data = MessagePrefix(kAnnounced),
                    .zeros = kAnnounced,
                    .trailers = {{"grpc-status", "0"}}});
  EXPECT_EQ(ToStatus(Call({.server = server.address()})),
            absl::ResourceExhaustedError("the answer is larger than this program accepts"));
  EXPECT_LE(server.sent(), kMaxReceivedBytes + kInFlight);
}

TEST(RawAnswerTest, CompressedMessageIsNotUnpacked) {
  RawServer server({.headers = {kGrpc, {"grpc-encoding", "gzip"}},
                    .data = MessagePrefix(1, /*compressed=*/true) + "x",
                    .trailers = {{"grpc-status", "0"}}});
  // What gRPC notices first: the compression, or that the answer has no message without it.
  EXPECT_THAT(std::string(ToStatus(Call({.server = server.address()})).message()),
              AnyOf(HasSubstr("'gzip' is disabled"), HasSubstr("No message returned")));
}

TEST_F(ChannelTest, LargestAnswersArrive) {
  v1::ListWorkersResponse answer;
  answer.add_workers()->set_worker_id(std::string(kMaxAnswerBytes - 100, 'x'));
  for (const TestAuthority::Pair* pair :
       {static_cast<TestAuthority::Pair*>(nullptr), &server_pair_}) {
    Server server(pair);
    server.Answer(answer);
    const auto channel =
        CreateChannel({.server = server.address(), .tls_ca = pair == nullptr ? "" : house_->ca()},
                      {})
            .value();
    const auto stub = v1::FleetService::NewStub(channel);
    for (int call = 0; call < 3; ++call) {
      grpc::ClientContext context;
      v1::ListWorkersResponse response;
      const grpc::Status status = stub->ListWorkers(&context, {}, &response);
      ASSERT_TRUE(status.ok()) << call << ": " << status.error_message();
      EXPECT_EQ(response.ByteSizeLong(), answer.ByteSizeLong());
    }
  }
}

}  // namespace
}  // namespace lengthwise::rpc
