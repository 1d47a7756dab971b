#include "rpc/address.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MATCHER_P(HasMessage, inner, "") {
  return testing::ExplainMatchResult(inner, std::string(arg.message()), result_listener);
}

TEST(Address, OnlyThisMachinesOwnAddressesAreLoopback) {
  for (const char* address : {"127.0.0.1:7070", "127.1.2.3:1", "localhost:7070", "[::1]:7070"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  // Addresses that only look like loopback: another host's name, or a number that resolvers read
  // differently.
  for (const char* address : {"0.0.0.0:7070", "127.0.0.1.example.org:7070", "localhost.example:1",
                              "[::]:7070", "10.0.0.1:7070", "127.0.0.1", "128.0.0.1:1", "",
                              "127.0.0.1@example.org:80", "dns:127.0.0.1:80"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(Address, HasAHostAndAPort) {
  EXPECT_EQ(HostOf("node7:7070"), "node7");
  EXPECT_EQ(HostOf("[::1]:0"), "[::1]");
  for (const char* wrong : {"node7", ":7070", "node7:", "node7:70707", "node7:-1", "node7:x"}) {
    EXPECT_EQ(HostOf(wrong), "") << wrong;
  }
}

TEST(Address, ListHasEveryAddressOrIsRefused) {
  EXPECT_THAT(AddressesOf("a:1"), ElementsAre("a:1"));
  EXPECT_THAT(AddressesOf("a:1, b:2,[::1]:3"), ElementsAre("a:1", "b:2", "[::1]:3"));
  for (const char* wrong : {"", ",", "a:1,", ",a:1", "a:1,b", "a:1,,b:2"}) {
    EXPECT_THAT(AddressesOf(wrong), IsEmpty()) << wrong;
  }
}

TEST(Address, UnixSocketStandsAlone) {
  EXPECT_EQ(SocketOf("unix:/tmp/a/b"), "/tmp/a/b");
  EXPECT_EQ(SocketOf("unix:1"), "") << "a host";
  EXPECT_THAT(AddressesOf("unix:/tmp/a"), ElementsAre("unix:/tmp/a"));
  EXPECT_EQ(*TargetOf("unix:/tmp/a"), "unix:/tmp/a");
  EXPECT_TRUE(IsLoopback("unix:/tmp/a"));
  EXPECT_THAT(AddressesOf("a:1,unix:/tmp/a"), IsEmpty());
}

TEST(Address, ListIsLoopbackIfAllOfItIs) {
  EXPECT_TRUE(IsLoopback("127.0.0.1:7070, localhost:7071"));
  EXPECT_FALSE(IsLoopback("127.0.0.1:7070,10.0.0.1:7070"));
  EXPECT_FALSE(IsLoopback("10.0.0.1:7070,127.0.0.1:7070"));
}

TEST(Address, SingleAddressIsLookedUpByGrpc) {
  EXPECT_EQ(*TargetOf("no-such-host.invalid:7070"), "no-such-host.invalid:7070");
  EXPECT_EQ(*TargetOf("[::1]:7070"), "[::1]:7070");
}

TEST(Address, ListIsLookedUpAtOnce) {
  EXPECT_EQ(*TargetOf("127.0.0.1:1,127.0.0.2:2"), "ipv4:127.0.0.1:1,127.0.0.2:2");
  EXPECT_EQ(*TargetOf("[::1]:1,[::2]:2"), "ipv6:[::1]:1,[::2]:2");
  EXPECT_EQ(*TargetOf("localhost:1,127.0.0.2:2"), "ipv4:127.0.0.1:1,127.0.0.2:2");
  EXPECT_EQ(*TargetOf("no-such-host.invalid:1,127.0.0.2:2"), "ipv4:127.0.0.2:2")
      << "the machine may be gone, and its name with it";
}

TEST(Address, ListHasEachAddressOnce) {
  EXPECT_EQ(*TargetOf("localhost:1,127.0.0.1:1,127.0.0.1:2,127.0.0.1:1"),
            "ipv4:127.0.0.1:1,127.0.0.1:2");
  EXPECT_EQ(*TargetOf("[::1]:1,[0::1]:1"), "ipv6:[::1]:1");
}

TEST(Address, ListWarnsOfUnknownHosts) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  EXPECT_TRUE(TargetOf("127.0.0.1:1,127.0.0.2:2", warn).ok());
  EXPECT_FALSE(TargetOf("no-such-host.invalid:1,no-such-host.invalid:2", warn).ok());
  EXPECT_THAT(warnings, IsEmpty()) << "an error names its cause itself";
  EXPECT_TRUE(TargetOf("127.0.0.2:2,no-such-host.invalid:1", warn).ok());
  EXPECT_THAT(warnings,
              ElementsAre("the server address no-such-host.invalid:1 is left out until the next "
                          "start, because its host is unknown; check the name, or give an IP "
                          "address"));
}

TEST(Address, ListThatCannotBeConnectedToIsRefused) {
  EXPECT_THAT(TargetOf("a:1,b").status(), HasMessage(HasSubstr("is not HOST:PORT")));
  EXPECT_THAT(TargetOf("no-such-host.invalid:1,no-such-host.invalid:2").status(),
              HasMessage(HasSubstr("none of the hosts of no-such-host.invalid:1,")));
  EXPECT_THAT(TargetOf("127.0.0.1:1,[::1]:2").status(),
              HasMessage(HasSubstr("IPv6 addresses ([::1]:2); give addresses of one kind")));
}

}  // namespace
}  // namespace lengthwise::rpc
