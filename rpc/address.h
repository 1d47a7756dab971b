// Parses server addresses: "HOST:PORT", or a comma-separated list of them for a server with
// standbys, where one address serves at a time. After a failover the channel finds the server at
// another address of the list.
#ifndef LENGTHWISE_RPC_ADDRESS_H_
#define LENGTHWISE_RPC_ADDRESS_H_

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

// Returns true if every address of the list names this machine: 127.0.0.0/8, [::1] or localhost.
bool IsLoopback(absl::string_view list);

// Returns the target for gRPC. A single address is returned unchanged, because gRPC resolves its
// host name at each connection. gRPC does not accept a list of names, so the names of several
// addresses are resolved here, once, and unknown names are dropped.
//
// INVALID_ARGUMENT if an address is not HOST:PORT, or if the list mixes IPv4 and IPv6, which gRPC
// does not accept; UNAVAILABLE if none of several names is known.
absl::StatusOr<std::string> TargetOf(absl::string_view list);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_ADDRESS_H_
