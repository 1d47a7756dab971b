// Tests of the edge with and without gRPC behind it. rpc_server_test.cc tests it with calls.
#include "server/edge/edge.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "platform/descriptors.h"
#include "server/edge/header_block.h"
#include "server/edge/peers.h"

namespace lengthwise::server {
namespace {

using ::testing::MatchesRegex;

constexpr std::chrono::seconds kPatience(20);

// Stands for gRPC. Sends an empty SETTINGS frame on each connection, as gRPC does, and keeps the
// connection open.
class FakeGrpc final : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  void HandleNewConnection(NewConnectionParameters* parameters) override {
    const platform::Descriptor& connection = connections_.emplace_back(parameters->fd);
    constexpr std::array<char, 9> kSettings = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    EXPECT_EQ(write(connection.get(), kSettings.data(), kSettings.size()),
              static_cast<ssize_t>(kSettings.size()));
  }

 private:
  std::vector<platform::Descriptor> connections_;
};

// Stands for a gRPC whose answers have no end. It counts the connections that it has lost.
class EndlessAnswers final : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  explicit EndlessAnswers(std::atomic<int>& lost) : lost_(lost) {}
  ~EndlessAnswers() override {
    for (std::thread& each : writers_) each.join();
  }
  void HandleNewConnection(NewConnectionParameters* parameters) override {
    writers_.emplace_back([this, connection = platform::Descriptor(parameters->fd)] {
      Answer(connection.get());
      ++lost_;
    });
  }

 private:
  static void Answer(int connection) {
    std::string waiting = {0, 0, 0, 4, 0, 0, 0, 0, 0};  // SETTINGS
    bool has_call = false;
    while (true) {
      std::array<char, 1000> bytes;
      const ssize_t received = recv(connection, bytes.data(), bytes.size(), 0);
      if (received == 0 || (received < 0 && errno != EAGAIN)) return;
      // More than the preface.
      has_call = has_call || received > 24;
      const ssize_t sent = send(connection, waiting.data(), waiting.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) waiting.erase(0, sent);
      // A frame of 16,000 bytes whose type nobody knows.
      if (waiting.empty() && has_call) {
        waiting = std::string{0, 0x3e, static_cast<char>(0x80), 100, 0, 0, 0, 0, 0};
        waiting.resize(9 + 16'000);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  std::atomic<int>& lost_;
  std::vector<std::thread> writers_;
};

// The servers of these tests know two tokens.
absl::StatusOr<Edge::Account> Admit(const Peer&, absl::string_view, absl::string_view token) {
  if (token == "good") return Edge::Account{.name = "ada"};
  if (token == "half") return Edge::Account{.name = "grace", .most_connections = 0.5};
  return absl::UnauthenticatedError("not good");
}

void Start(Edge& edge) { edge.Start(std::make_unique<FakeGrpc>(), Admit); }

// Makes a call with `token`. Returns when the edge has decided about it: it tells `expected`.
void Call(const platform::Descriptor& connection, const std::string& token,
          absl::string_view expected) {
  const std::string block = WriteHeaderBlock({{":path", "/a.B/C"}, {"authorization", token}});
  std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  // HEADERS with END_HEADERS on stream 1, and on stream 3 a call that is refused in any case,
  // because it announces a message of 16 MiB.
  for (const char stream : {1, 3}) {
    sent += std::string{0, 0, static_cast<char>(block.size()), 1, 4, 0, 0, 0, stream} + block;
  }
  sent += std::string{0, 0, 5, 0, 0, 0, 0, 0, 3, 0, 1, 0, 0, 0};
  EXPECT_EQ(send(connection.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  std::string answer;
  std::array<char, 256> bytes;
  while (!absl::StrContains(answer, expected)) {
    const ssize_t size = recv(connection.get(), bytes.data(), bytes.size(), 0);
    ASSERT_GT(size, 0);
    answer.append(bytes.data(), size);
  }
}

// A connection from an address of this machine, which sends nothing. Returns when the edge has sent
// the first bytes or has refused the connection.
platform::Descriptor Connect(const Edge& edge, const char* address) {
  platform::Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from = {};
  from.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, address, &from.sin_addr), 1);
  EXPECT_EQ(bind(connection.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& where = edge.address();
  to.sin_port = htons(std::stoi(where.substr(where.rfind(':') + 1)));
  EXPECT_EQ(connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const timeval patience = {.tv_sec = kPatience.count(), .tv_usec = 0};
  EXPECT_EQ(setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  char byte = 0;
  EXPECT_GE(recv(connection.get(), &byte, 1, 0), 0) << std::strerror(errno);
  return connection;
}

bool IsOpen(const platform::Descriptor& connection) {
  std::array<char, 64> bytes;
  ssize_t received = 0;
  while ((received = recv(connection.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) {
  }
  return received < 0 && errno == EAGAIN;
}

// Waits until `count` of the connections are open. Returns the number that are.
int64_t AwaitOpen(const std::vector<platform::Descriptor>& connections, int64_t count) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const int64_t open = std::count_if(connections.begin(), connections.end(), IsOpen);
    if (open == count || std::chrono::steady_clock::now() > deadline) return open;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Edge, UnreachableWhileNothingAnswers) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(edge.ok()) << edge.status();
  const absl::Status status = (*edge)->CheckReachable(absl::Milliseconds(50));
  EXPECT_EQ(status, absl::UnavailableError("nothing answers"));
}

TEST(Edge, ListensOnEveryKindOfAddress) {
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const auto edge = Edge::Listen({.listen = std::string(host) + ":0"});
    ASSERT_TRUE(edge.ok()) << edge.status();
    EXPECT_THAT((*edge)->address(), MatchesRegex(std::string(host) + ":[1-9][0-9]*"));
  }
}

TEST(Edge, AddressOfAnotherMachineIsRefused) {
  EXPECT_EQ(Edge::Listen({.listen = "192.0.2.1:0"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Edge, AddressGetsHalfOfTheConnections) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 4});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (int i = 0; i < 3; ++i) connections.push_back(Connect(**edge, "127.0.0.2"));
  // The third one is refused, or replaces the first one if that is two seconds old.
  EXPECT_EQ(AwaitOpen(connections, 2), 2);
  const platform::Descriptor other = Connect(**edge, "127.0.0.3");
  EXPECT_TRUE(IsOpen(other));
  EXPECT_EQ(AwaitOpen(connections, 2), 2);
}

TEST(Edge, ConnectionsStayWithinTheLimit) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 4});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (const char* address : {"127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"}) {
    connections.push_back(Connect(**edge, address));
  }
  EXPECT_EQ(AwaitOpen(connections, 4), 4);
  // A new address replaces a connection without a valid call.
  connections.push_back(Connect(**edge, "127.0.0.4"));
  EXPECT_EQ(AwaitOpen(connections, 4), 4);
  EXPECT_TRUE(IsOpen(connections.back()));
}

TEST(Edge, NewcomersReplaceTheOldestConnections) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 4});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (int i = 0; i < 40; ++i) {
    connections.push_back(Connect(**edge, ("127.0.1." + std::to_string(i + 1)).c_str()));
  }
  EXPECT_EQ(AwaitOpen(connections, 4), 4);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(IsOpen(connections[i]), i >= 36) << i;
}

TEST(Edge, ConnectionsWithAValidCallAreKept) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 4});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (const char* address : {"127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"}) {
    connections.push_back(Connect(**edge, address));
    Call(connections.back(), "good", "a message has");
  }
  // Those of its own address are as many as it may have, and there is no room for another address.
  for (const char* address : {"127.0.0.2", "127.0.0.4"}) {
    EXPECT_FALSE(IsOpen(Connect(**edge, address))) << address;
  }
  EXPECT_EQ(AwaitOpen(connections, 4), 4);
}

TEST(Edge, PrincipalGetsItsPartOfTheConnections) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 4});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (const char* address : {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}) {
    connections.push_back(Connect(**edge, address));
    Call(connections.back(), "half", connections.size() < 3 ? "a message has" : "2 connections");
  }
  // Its further connections make room for a newcomer.
  const platform::Descriptor other = Connect(**edge, "127.0.0.6");
  EXPECT_TRUE(IsOpen(other));
  EXPECT_EQ(AwaitOpen(connections, 3), 3);
  EXPECT_TRUE(IsOpen(connections[0]));
  EXPECT_TRUE(IsOpen(connections[1]));
  Call(other, "good", "a message has");
}

TEST(Edge, AnswersThatAreNotReadEndTheConnection) {
  std::atomic<int> lost = 0;
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .message_bytes = 100'000});
  ASSERT_TRUE(edge.ok()) << edge.status();
  (*edge)->Start(std::make_unique<EndlessAnswers>(lost), Admit);
  const platform::Descriptor connection = Connect(**edge, "127.0.0.2");
  Call(connection, "good", "a message has");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (lost == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(lost, 1);
}

// The edge holds one of its frames back for a rate, and may not take it then, because the answers
// wait.
TEST(Edge, HeldFrameOfAStoppedReaderDelaysNobody) {
  std::atomic<int> lost = 0;
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(edge.ok()) << edge.status();
  (*edge)->Start(std::make_unique<EndlessAnswers>(lost), Admit);
  const platform::Descriptor stopped = Connect(**edge, "127.0.0.2");
  Call(stopped, "good", "a message has");
  // PRIORITY frames for some seconds, at 100 a second.
  std::string frames;
  for (int i = 0; i < 1000; ++i) frames += std::string{0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
  EXPECT_EQ(send(stopped.get(), frames.data(), frames.size(), 0),
            static_cast<ssize_t>(frames.size()));
  for (int i = 0; i < 50 && !HasFailure(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Connect(**edge, "127.0.0.3");
  }
}

// Otherwise its connections would keep others out until they close.
TEST(Edge, ConnectionsEndWhenTheirCredentialsAreRevoked) {
  std::atomic<bool> revoked = false;
  const auto edge =
      Edge::Listen({.listen = "127.0.0.1:0", .recheck_interval = absl::Milliseconds(1)});
  ASSERT_TRUE(edge.ok()) << edge.status();
  (*edge)->Start(std::make_unique<FakeGrpc>(),
                 [&](const Peer& peer, absl::string_view method, absl::string_view token) {
                   absl::StatusOr<Edge::Account> account = Admit(peer, method, token);
                   if (token == "half") {
                     account->recheck = [&] {
                       return revoked ? absl::UnauthenticatedError("revoked") : absl::OkStatus();
                     };
                   }
                   return account;
                 });
  const platform::Descriptor kept = Connect(**edge, "127.0.0.2");
  const platform::Descriptor ended = Connect(**edge, "127.0.0.2");
  Call(kept, "good", "a message has");
  Call(ended, "half", "a message has");
  EXPECT_TRUE(IsOpen(ended));
  revoked = true;
  std::string answer;
  std::array<char, 256> bytes;
  while (true) {
    const ssize_t size = recv(ended.get(), bytes.data(), bytes.size(), 0);
    if (size <= 0) break;
    answer.append(bytes.data(), size);
  }
  EXPECT_TRUE(absl::StrContains(answer, "revoked")) << "in the GOAWAY";
  EXPECT_TRUE(IsOpen(kept));
}

TEST(Edge, RefusedCallsKeepNoConnection) {
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0", .connections = 2});
  ASSERT_TRUE(edge.ok()) << edge.status();
  Start(**edge);
  std::vector<platform::Descriptor> connections;
  for (const char* address : {"127.0.0.2", "127.0.0.3"}) {
    connections.push_back(Connect(**edge, address));
    Call(connections.back(), "bad", "not good");
  }
  EXPECT_TRUE(IsOpen(Connect(**edge, "127.0.0.4")));
}

// Signatures take long. A flood of tokens that must be checked costs one decision for a connection
// at a time, and delays neither the relaying thread nor addresses that are known.
TEST(Edge, FloodOfSlowDecisionsDelaysNoKnownAddress) {
  std::atomic<int> slow = 0;
  std::promise<void> decide;
  const std::shared_future<void> decided = decide.get_future().share();
  const auto edge = Edge::Listen({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(edge.ok()) << edge.status();
  (*edge)->Start(std::make_unique<FakeGrpc>(),
                 [&](const Peer& peer, absl::string_view method, absl::string_view token) {
                   if (token == "slow") {
                     ++slow;
                     decided.wait_for(kPatience);
                   }
                   return Admit(peer, method, token);
                 });
  Call(Connect(**edge, "127.0.0.2"), "good", "a message has");
  std::vector<platform::Descriptor> flood;
  const std::string block = WriteHeaderBlock({{":path", "/a.B/C"}, {"authorization", "slow"}});
  std::string calls = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const char stream : {1, 3, 5, 7}) {
    calls += std::string{0, 0, static_cast<char>(block.size()), 1, 4, 0, 0, 0, stream} + block;
  }
  for (int i = 0; i < 20; ++i) {
    flood.push_back(Connect(**edge, "127.0.0.3"));
    ASSERT_EQ(send(flood.back().get(), calls.data(), calls.size(), 0),
              static_cast<ssize_t>(calls.size()));
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (slow == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  Call(Connect(**edge, "127.0.0.2"), "good", "a message has");
  Call(Connect(**edge, "127.0.0.2"), "bad", "not good");
  EXPECT_EQ(slow, 1);
  decide.set_value();
  std::string answers;
  std::array<char, 256> bytes;
  while (!absl::StrContains(answers, "not good")) {
    const ssize_t size = recv(flood.back().get(), bytes.data(), bytes.size(), 0);
    ASSERT_GT(size, 0);
    answers.append(bytes.data(), size);
  }
}

// THREAT_MODEL.md states them.
TEST(Edge, DefaultLimitsAreDocumented) {
  const Edge::Options options = {};
  EXPECT_EQ(options.untrusted_connections, 512);
  EXPECT_EQ(options.untrusted_connections_per_address, 128);
  EXPECT_EQ(options.message_bytes, 256 << 20);
  EXPECT_EQ(options.limits.stranger.most_streams_of_a_connection, 16);
  EXPECT_EQ(options.limits.stranger.most_message_bytes, 256);
  platform::TokenBucket streams = options.limits.stranger.new_streams;
  EXPECT_EQ(streams.Take(absl::UnixEpoch(), 50), absl::ZeroDuration());
  EXPECT_EQ(streams.Take(absl::UnixEpoch()), absl::Milliseconds(50));
  EXPECT_EQ(Edge::Account().limits.most_streams, 8192);
  EXPECT_EQ(FrameGuard::Principal::kStreamRate, 20'000);
  EXPECT_EQ(Edge::Account().limits.most_message_bytes, 8 << 20);
  EXPECT_EQ(options.limits.control_rate, 100);
  EXPECT_EQ(options.limits.header_bytes, 16 << 10);
}

TEST(Peers, SocketsNameTellsTheClient) {
  const Peer known = {.address = "10.0.0.7:40412", .has_certificate = true};
  EXPECT_EQ(SocketName(known, "7-ab-1"), "lengthwise-7-ab-1=certified=10.0.0.7:40412");
  const Peer read = PeerOf("unix-abstract:" + SocketName(known, "7-ab-1"));
  EXPECT_EQ(read.address, "10.0.0.7:40412");
  EXPECT_TRUE(read.has_certificate);
  // gRPC encodes the brackets.
  const Peer other = PeerOf("unix-abstract:lengthwise-1==%5B2001:db8::7%5D:40412");
  EXPECT_EQ(other.address, "[2001:db8::7]:40412");
  EXPECT_FALSE(other.has_certificate);
  EXPECT_EQ(PeerOf("unix:").address, "unix:");
  EXPECT_FALSE(PeerOf("unix:/tmp/lengthwise-=certified=x").has_certificate);
}

TEST(Edge, MalformedCertificateIsRefused) {
  Edge::Options options;
  options.listen = "127.0.0.1:0";
  options.encryption = {.certificate = "-----BEGIN CERTIFICATE-----\nnone\n", .key = "none"};
  EXPECT_EQ(Edge::Listen(std::move(options)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lengthwise::server
