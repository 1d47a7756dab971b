#include "monitoring/http_endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/scrape.h"

namespace lengthwise::monitoring {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(HttpEndpoint, ExportsBuildAndProcessUsage) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const std::string text = Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_build_info{program=\"test\",version=\""));
  EXPECT_THAT(text, HasSubstr("\n# TYPE process_cpu_seconds_total counter\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes "));
}

TEST(HttpEndpoint, AnswersHeadWithoutABody) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  EXPECT_THAT(Scrape(endpoint->address(), "HEAD"), EndsWith("\r\n\r\n"));
}

TEST(HttpEndpoint, UnfinishedRequestsDoNotBlockScrapes) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const std::string& address = endpoint->address();
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  std::vector<int> half_open;
  for (int i = 0; i < 8; ++i) {
    half_open.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(half_open.back(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    ASSERT_EQ(send(half_open.back(), "GET /metrics", 12, MSG_NOSIGNAL), 12);
  }
  EXPECT_THAT(Scrape(address), HasSubstr("\nlengthwise_build_info"));
  // The unfinished requests are still open, so the scrape did not wait for them.
  char byte = 0;
  for (const int each : half_open) {
    EXPECT_EQ(recv(each, &byte, 1, MSG_DONTWAIT), -1);
    close(each);
  }
}

TEST(HttpEndpoint, TakenPortIsNamed) {
  const auto first = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const absl::Status status = HttpEndpoint::Start(first->address(), "test", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(first->address()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--metrics_listen"));
}

}  // namespace
}  // namespace lengthwise::monitoring
