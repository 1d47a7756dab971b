// Parses "HOST:PORT" addresses and recognizes loopback ones.
#ifndef LENGTHWISE_RPC_ADDRESS_H_
#define LENGTHWISE_RPC_ADDRESS_H_

#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

// Returns HOST of "HOST:PORT"; empty if malformed or the port is not from 0 to 65535.
absl::string_view HostOf(absl::string_view address);

// Returns true if "HOST:PORT" is loopback: 127.0.0.0/8, [::1] or localhost.
bool IsLoopback(absl::string_view address);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_ADDRESS_H_
