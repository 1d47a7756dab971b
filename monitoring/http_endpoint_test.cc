#include "monitoring/http_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/families.h"
#include "monitoring/testing/scrape.h"
#include "platform/descriptors.h"
#include "prometheus/metric_family.h"

namespace lengthwise::monitoring {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// A connection to the endpoint, from one of the machine's own addresses, that has sent `text`.
platform::Descriptor Connect(const std::string& address, const std::string& text,
                             const char* from = "127.0.0.1") {
  platform::Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = inet_addr(from);
  EXPECT_EQ(bind(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  return client;
}

// What the endpoint still sends, until it closes the connection.
std::string ReadAll(const platform::Descriptor& client) {
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = recv(client.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(size));
  }
  return answer;
}

TEST(HttpEndpoint, UnfinishedRequestsDoNotBlockScrapes) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  std::vector<platform::Descriptor> unfinished;
  for (int i = 0; i < 300; ++i) {
    unfinished.push_back(Connect(endpoint->address(), "GET /metrics"));
    if (i % 50 != 0) continue;
    EXPECT_THAT(Scrape(endpoint->address()), HasSubstr("\nlengthwise_build_info"));
  }
  EXPECT_THAT(Scrape(endpoint->address()), HasSubstr("\nlengthwise_build_info"));
  EXPECT_EQ(ReadAll(unfinished.front()), "") << "ended by newer ones";
  EXPECT_EQ(ReadAll(unfinished.back()), "") << "ended by its deadline";
}

// More than a socket's buffers hold.
Families LargeMetrics() {
  prometheus::MetricFamily family = MakeFamily("process_open_fds");
  family.help = std::string(4 << 20, 'x');
  AddValue({}, 1, family);
  return {family};
}

TEST(HttpEndpoint, SlowReadersDoNotBlockOtherAddresses) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {LargeMetrics}).value();
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  std::vector<platform::Descriptor> slow;
  for (size_t i = 0; i < HttpEndpoint::kMostOfAnAddress; ++i) {
    slow.push_back(Connect(endpoint->address(), request, "127.0.0.2"));
  }
  EXPECT_THAT(Scrape(endpoint->address()), HasSubstr("\nprocess_open_fds 1\n"));
  // One more of the same address would wait for them.
  const platform::Descriptor refused = Connect(endpoint->address(), "", "127.0.0.2");
  EXPECT_EQ(ReadAll(refused), "");
  EXPECT_THAT(ReadAll(slow.front()), HasSubstr("\nprocess_open_fds 1\n"));
}

TEST(HttpEndpoint, AnswersWithTheStatusOfTheRequest) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const auto ask = [&](const std::string& request) {
    return ReadAll(Connect(endpoint->address(), request));
  };
  EXPECT_THAT(ask("GET /metrics?name=x HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(ask("GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\n\r\nbody"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("PRI * HTTP/2.0\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(ask(std::string(10'000, 'x')), "") << "too long";
}

TEST(HttpEndpoint, ProbeAnswersOnAPortOfItsOwn) {
  const auto probe = HttpEndpoint::StartProbe("127.0.0.1:0").value();
  EXPECT_THAT(ReadAll(Connect(probe->address(), "GET /healthz HTTP/1.1\r\n\r\n")),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(std::string(HttpEndpoint::StartProbe(probe->address()).status().message()),
              HasSubstr("--probe_listen"));
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
