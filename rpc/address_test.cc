#include "rpc/address.h"

#include "gtest/gtest.h"

namespace lengthwise::rpc {
namespace {

TEST(Address, OnlyLocalAddressesAreLoopback) {
  for (const char* address : {"127.0.0.1:7070", "127.1.2.3:1", "localhost:7070", "[::1]:7070"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  // What looks like one but is not: another host's name, a number that resolvers read otherwise.
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

}  // namespace
}  // namespace lengthwise::rpc
