#include "rpc/address.h"

#include <arpa/inet.h>

#include <string>

#include "absl/strings/numbers.h"

namespace lengthwise::rpc {

absl::string_view HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return {};
  }
  return address.substr(0, colon);
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = HostOf(address);
  if (host == "localhost" || host == "[::1]") return true;
  in_addr parsed;
  return inet_pton(AF_INET, std::string(host).c_str(), &parsed) == 1 &&
         (ntohl(parsed.s_addr) >> 24) == 127;
}

}  // namespace lengthwise::rpc
