#include "rpc/address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lengthwise::rpc {
namespace {

bool IsLoopbackHost(absl::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr parsed;
  return inet_pton(AF_INET, std::string(host).c_str(), &parsed) == 1 &&
         (ntohl(parsed.s_addr) >> 24) == 127;
}

// Returns the host's numeric addresses of one family; empty if it has none.
std::vector<std::string> LookUp(absl::string_view host, int family) {
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.push_back(family == AF_INET6 ? absl::StrCat("[", text, "]") : text);
    }
  }
  return addresses;
}

}  // namespace

absl::string_view HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return {};
  }
  return address.substr(0, colon);
}

absl::string_view SocketOf(absl::string_view address) {
  return absl::StartsWith(address, "unix:/") ? absl::StripPrefix(address, "unix:")
                                             : absl::string_view();
}

std::vector<absl::string_view> AddressesOf(absl::string_view list) {
  if (!SocketOf(list).empty()) return {list};
  std::vector<absl::string_view> addresses = absl::StrSplit(list, ',');
  for (absl::string_view& address : addresses) {
    address = absl::StripAsciiWhitespace(address);
    if (HostOf(address).empty()) return {};
  }
  return addresses;
}

bool IsLoopback(absl::string_view list) {
  const std::vector<absl::string_view> addresses = AddressesOf(list);
  return !addresses.empty() &&
         std::all_of(addresses.begin(), addresses.end(), [](absl::string_view address) {
           return !SocketOf(address).empty() || IsLoopbackHost(HostOf(address));
         });
}

absl::StatusOr<std::string> TargetOf(absl::string_view list,
                                     const std::function<void(const std::string&)>& warn) {
  const std::vector<absl::string_view> addresses = AddressesOf(list);
  if (addresses.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", list, "\" is not HOST:PORT or a comma-separated list of them"));
  }
  if (addresses.size() == 1) return std::string(addresses[0]);
  std::vector<std::string> ipv4, ipv6;
  std::vector<absl::string_view> unknown;
  for (const absl::string_view address : addresses) {
    const absl::string_view host = HostOf(address);
    const absl::string_view port = address.substr(host.size());
    std::vector<std::string> numbers = LookUp(host, AF_INET);
    const bool is_ipv4 = !numbers.empty();
    if (!is_ipv4) numbers = LookUp(host, AF_INET6);
    if (numbers.empty()) unknown.push_back(address);
    std::vector<std::string>& known = is_ipv4 ? ipv4 : ipv6;
    for (const std::string& number : numbers) {
      // Resolvers repeat an address that stands in several lines of /etc/hosts.
      std::string numeric = absl::StrCat(number, port);
      if (std::find(known.begin(), known.end(), numeric) == known.end()) {
        known.push_back(std::move(numeric));
      }
    }
  }
  if (ipv4.empty() && ipv6.empty()) {
    return absl::UnavailableError(absl::StrCat("none of the hosts of ", list,
                                               " is known; check the names, or give IP addresses"));
  }
  if (!ipv4.empty() && !ipv6.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        list, " has IPv4 addresses (", absl::StrJoin(ipv4, ", "), ") and IPv6 addresses (",
        absl::StrJoin(ipv6, ", "), "); give addresses of one kind"));
  }
  for (const absl::string_view address : unknown) {
    if (!warn) break;
    warn(absl::StrCat("the server address ", address,
                      " is left out until the next start, because its host is unknown; check the "
                      "name, or give an IP address"));
  }
  return ipv6.empty() ? absl::StrCat("ipv4:", absl::StrJoin(ipv4, ","))
                      : absl::StrCat("ipv6:", absl::StrJoin(ipv6, ","));
}

}  // namespace lengthwise::rpc
