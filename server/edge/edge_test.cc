// Tests of the edge with and without gRPC behind it. rpc_server_test.cc tests it with calls.
#include "server/edge/edge.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::MatchesRegex;

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

TEST(Edge, MalformedCertificateIsRefused) {
  Edge::Options options;
  options.listen = "127.0.0.1:0";
  options.encryption = {.certificate = "-----BEGIN CERTIFICATE-----\nnone\n", .key = "none"};
  EXPECT_EQ(Edge::Listen(std::move(options)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lengthwise::server
