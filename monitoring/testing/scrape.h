// Scrapes an endpoint as Prometheus does, for tests.
#ifndef LENGTHWISE_MONITORING_TESTING_SCRAPE_H_
#define LENGTHWISE_MONITORING_TESTING_SCRAPE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::monitoring {

// Returns the answer to GET http://ADDRESS/metrics, or to another method. `address` is a local
// port, "127.0.0.1:PORT". Adds a test failure if the status is not 200.
inline std::string Scrape(const std::string& address, const std::string& method = "GET") {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const std::string request = method + " /metrics HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(connection, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = read(connection, buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, size);
  }
  close(connection);
  EXPECT_THAT(answer, testing::HasSubstr(" 200 OK"));
  return answer;
}

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_TESTING_SCRAPE_H_
