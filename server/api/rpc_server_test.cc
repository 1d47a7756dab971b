#include "server/api/rpc_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/descriptors.h"
#include "platform/files.h"
#include "proto/catalogue_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "rpc/testing/test_certificates.h"
#include "server/api/reflection.grpc.pb.h"
#include "server/api/testing/byte_call.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

TEST(RpcServer, TwoServersCannotShareAPort) {
  TestServer test;
  const std::unique_ptr<RpcServer> first = RpcServer::Start({}, test.core()).value();
  RpcServer::Options options;
  options.edge.listen = first->address();
  const absl::Status status = RpcServer::Start(std::move(options), test.core()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot listen on " + first->address()));
}

TEST(RpcServer, AddressHasTheBoundPort) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  EXPECT_THAT(server->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
}

TEST(RpcServer, HealthIsServing) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  // grpc.health.v1.HealthCheckResponse: field 1 (status) = 1 (SERVING).
  EXPECT_EQ(CallWithBytes(server->address(), "/grpc.health.v1.Health/Check", ""), "\x08\x01");
  // The same for one service by name (field 1 of the request).
  EXPECT_EQ(CallWithBytes(server->address(), "/grpc.health.v1.Health/Check",
                          "\x0a\x1flengthwise.v1.ExperimentService"),
            "\x08\x01");
}

TEST(RpcServer, ReflectionListsEveryService) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  // grpc.reflection.v1alpha.ServerReflectionRequest: field 7 (list_services) = "*".
  const std::string answer =
      CallWithBytes(server->address(),
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  for (const char* service :
       {"ExperimentService", "WorkerService", "FleetService", "CatalogueService"}) {
    EXPECT_THAT(answer, HasSubstr(std::string("lengthwise.v1.") + service));
  }
}

TEST(RpcServer, TransportRefusesMessagesOverEightMebibytes) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  const auto stub = v1::ExperimentService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_description(std::string((8 << 20) + 1, 'x'));
  v1::CreateExperimentResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub->CreateExperiment(&context, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(test.core().reads().ListExperiments({})->experiments_size(), 0);
}

TEST(RpcServer, CompressedRequestIsRefused) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  const auto stub = v1::ExperimentService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_description(std::string(1 << 20, 'x'));
  v1::CreateExperimentResponse response;
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_EQ(stub->CreateExperiment(&context, request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(test.core().reads().ListExperiments({})->experiments_size(), 0);
}

TEST(RpcServer, ReachesItselfOnEveryKindOfAddress) {
  TestServer test;
  const std::string directory = testing::TempDir();
  rpc::TestAuthority authority(directory, "house");
  const rpc::TestAuthority::Pair pair = authority.Issue("server");
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    for (const bool with_tls : {false, true}) {
      RpcServer::Options options;
      options.edge.listen = std::string(host) + ":0";
      if (with_tls) {
        options.edge.encryption.certificate = platform::ReadFile(pair.certificate).value();
        options.edge.encryption.key = platform::ReadFile(pair.key).value();
      }
      // Only one client's connection fits; the server's own does not count.
      options.edge.connections = 1;
      const auto server = RpcServer::Start(std::move(options), test.core()).value();
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(server->edge().CheckReachable(absl::Seconds(30)), absl::OkStatus()) << host;
      }
    }
  }
}

// A connection that sends nothing.
platform::Descriptor Connect(const std::string& address) {
  platform::Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  EXPECT_EQ(connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return connection;
}

// A call that every server answers.
bool Answers(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ListCatalogueEntriesResponse response;
  return v1::CatalogueService::NewStub(channel)->ListCatalogueEntries(&context, {}, &response).ok();
}

TEST(RpcServer, ConnectionsWithoutACallAreLimited) {
  TestServer test;
  RpcServer::Options options;
  options.edge.untrusted_connections_per_address = 3;
  const std::unique_ptr<RpcServer> server =
      RpcServer::Start(std::move(options), test.core()).value();
  const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(Answers(channel));
  std::vector<platform::Descriptor> connections;
  for (int i = 0; i < 4; ++i) connections.push_back(Connect(server->address()));
  // The fourth is closed without a byte from gRPC.
  char byte = 0;
  EXPECT_EQ(recv(connections.back().get(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(connections.front().get(), &byte, 1, 0), 1);
  EXPECT_TRUE(Answers(channel));
}

// True if the server has closed the connection, after what it sent.
bool IsClosed(const platform::Descriptor& connection) {
  char bytes[4096];
  ssize_t received = 0;
  while ((received = recv(connection.get(), bytes, sizeof(bytes), 0)) > 0) {
  }
  return received == 0;
}

TEST(RpcServer, NewConnectionEndsTheOldestWithoutACall) {
  TestServer test;
  RpcServer::Options options;
  options.edge.untrusted_connections = 3;
  const std::unique_ptr<RpcServer> server =
      RpcServer::Start(std::move(options), test.core()).value();
  std::vector<platform::Descriptor> connections;
  for (int i = 0; i < 4; ++i) connections.push_back(Connect(server->address()));
  EXPECT_TRUE(IsClosed(connections.front()));
  char byte = 0;
  EXPECT_EQ(recv(connections.back().get(), &byte, 1, 0), 1);
}

TEST(RpcServer, UnfinishedMessagesAreLimited) {
  TestServer test;
  for (const int64_t limit : {10 << 10, 16 << 20}) {
    RpcServer::Options options;
    options.edge.message_bytes = limit;
    const std::unique_ptr<RpcServer> server =
        RpcServer::Start(std::move(options), test.core()).value();
    const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
    v1::CreateExperimentRequest request;
    request.mutable_specification()->set_description(std::string(1 << 20, 'x'));
    v1::CreateExperimentResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        v1::ExperimentService::NewStub(channel)->CreateExperiment(&context, request, &response);
    // The request is invalid, which only a server that took it can say.
    EXPECT_EQ(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT, limit > 1 << 20)
        << status.error_message();
  }
}

TEST(RpcServer, ReflectionDescribesAService) {
  TestServer test;
  test.Serve();
  // Field 4 (file_containing_symbol), and field 3 (file_by_filename).
  const std::string service = "lengthwise.v1.FleetService", file = "proto/event.proto";
  const std::vector<std::string> requests = {"\x22\x1a" + service, "\x1a\x11" + file};
  for (const std::string& request : requests) {
    const std::string answer = CallWithBytes(
        test.address(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", request);
    EXPECT_THAT(answer, HasSubstr(request == requests[0] ? "GetWantedWorkers" : "TrainingPoints"));
  }
  EXPECT_THAT(
      CallWithBytes(test.address(),
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x22\x01x"),
      HasSubstr("no such file or name"));
}

// The answer would repeat it, on each of thousands of streams whose client reads nothing.
TEST(RpcServer, LargeReflectionRequestGetsNoAnswer) {
  using grpc::reflection::v1alpha::ServerReflection;
  TestServer test;
  test.Serve();
  const auto stub = ServerReflection::NewStub(test.Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stream = stub->ServerReflectionInfo(&context);
  grpc::reflection::v1alpha::ServerReflectionRequest request;
  request.set_file_containing_symbol(std::string(5000, 'x'));
  ASSERT_TRUE(stream->Write(request));
  grpc::reflection::v1alpha::ServerReflectionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
}

TEST(RpcServer, CertificateOfAnotherAuthorityIsRefused) {
  TestServer test;
  rpc::TestAuthority authority(testing::TempDir(), "house");
  rpc::TestAuthority stranger(testing::TempDir(), "stranger");
  const auto read = [](const std::string& path) { return platform::ReadFile(path).value(); };
  const rpc::TestAuthority::Pair own = authority.Issue("server");
  RpcServer::Options options;
  options.edge.encryption = {.certificate = read(own.certificate),
                             .key = read(own.key),
                             .client_authority = read(authority.ca())};
  const std::unique_ptr<RpcServer> server =
      RpcServer::Start(std::move(options), test.core()).value();
  const auto call = [&](const grpc::SslCredentialsOptions& credentials) {
    return Answers(grpc::CreateChannel(server->address(), grpc::SslCredentials(credentials)));
  };
  const rpc::TestAuthority::Pair known = authority.Issue("client"),
                                 foreign = stranger.Issue("client");
  grpc::SslCredentialsOptions credentials = {.pem_root_certs = read(authority.ca())};
  EXPECT_TRUE(call(credentials)) << "only workers need one";
  credentials.pem_private_key = read(foreign.key);
  credentials.pem_cert_chain = read(foreign.certificate);
  EXPECT_FALSE(call(credentials));
  credentials.pem_private_key = read(known.key);
  credentials.pem_cert_chain = read(known.certificate);
  EXPECT_TRUE(call(credentials));
}

TEST(RpcServer, NewCertificateIsForNewConnections) {
  TestServer test;
  rpc::TestAuthority old_authority(testing::TempDir(), "old"), authority(testing::TempDir(), "new");
  const auto read = [](const std::string& path) { return platform::ReadFile(path).value(); };
  const auto encryption = [&](rpc::TestAuthority& of) {
    const rpc::TestAuthority::Pair pair = of.Issue("server");
    return Encryption{.certificate = read(pair.certificate), .key = read(pair.key)};
  };
  RpcServer::Options options;
  options.edge.encryption = encryption(old_authority);
  const std::unique_ptr<RpcServer> server =
      RpcServer::Start(std::move(options), test.core()).value();
  const auto connect = [&](const rpc::TestAuthority& to) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        server->address(), grpc::SslCredentials({.pem_root_certs = read(to.ca())}), arguments);
  };
  const auto before = connect(old_authority);
  EXPECT_TRUE(Answers(before));
  EXPECT_FALSE(server->edge().SetEncryption({.certificate = "no PEM", .key = "no PEM"}).ok());
  EXPECT_TRUE(Answers(connect(old_authority))) << "what cannot be used changes nothing";
  ASSERT_EQ(server->edge().SetEncryption(encryption(authority)), absl::OkStatus());
  EXPECT_TRUE(Answers(before)) << "the connection stays";
  EXPECT_TRUE(Answers(connect(authority)));
  EXPECT_FALSE(Answers(connect(old_authority)));
}

TEST(RpcServer, StopAnswersACallThatWaitsForALease) {
  TestServer test;
  test.Serve();
  RpcServer* const server = &test.rpc();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  ASSERT_EQ(test.calls().Register("n07"), absl::OkStatus());
  grpc::Status status;
  std::thread worker([&] {
    v1::SynchronizeRequest request = test.calls().CallOf("n07");
    request.set_wants_lease(true);
    request.mutable_wait()->set_seconds(60);
    v1::SynchronizeResponse response;
    grpc::ClientContext context;
    status = stub->Synchronize(&context, request, &response);
  });
  ASSERT_TRUE(TestServer::Await([&] { return test.core().waiting_calls() == 1; }));
  server->Stop(absl::Seconds(30));
  worker.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is stopping; try again");
}

}  // namespace
}  // namespace lengthwise::server
