// Parses server addresses: "HOST:PORT", or a comma-separated list of them for a server with
// standbys, where one address serves at a time. After a failover the channel finds the server at
// another address of the list. A private server has the address "unix:/PATH", which stands alone.
#ifndef LENGTHWISE_RPC_ADDRESS_H_
#define LENGTHWISE_RPC_ADDRESS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

// Returns HOST of "HOST:PORT". Empty if the text has another form or the port is not within 0 to
// 65535.
absl::string_view HostOf(absl::string_view address);

// Returns the addresses of a list, trimmed. Empty if one of them is not HOST:PORT.
std::vector<absl::string_view> AddressesOf(absl::string_view list);

// Returns the path of a Unix socket's address; empty for other addresses.
absl::string_view SocketOf(absl::string_view address);

// Returns true if every address of the list names this machine: 127.0.0.0/8, [::1], localhost or a
// Unix socket.
bool IsLoopback(absl::string_view list);

// Returns the gRPC target. A single address stays as it is: gRPC looks its host name up at each
// connection. gRPC has no list of names, so the names of several addresses are looked up here,
// once. Addresses whose host is unknown now are left out, with a call of `warn` for each;
// duplicates are left out, too.
//
// Errors: INVALID_ARGUMENT for an address that is not HOST:PORT, and for IPv4 beside IPv6, which
// gRPC cannot have in one list; UNAVAILABLE if no name of several is known.
absl::StatusOr<std::string> TargetOf(absl::string_view list,
                                     const std::function<void(const std::string&)>& warn = nullptr);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_ADDRESS_H_
