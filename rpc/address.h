// "HOST:PORT", and whether it leaves the machine.
#ifndef LENGTHWISE_RPC_ADDRESS_H_
#define LENGTHWISE_RPC_ADDRESS_H_

#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

// "HOST:PORT" -> "HOST"; empty when it is not of that form with a port from 0 to 65535.
absl::string_view HostOf(absl::string_view address);

// Whether "HOST:PORT" names this machine alone: 127.0.0.0/8, [::1] or localhost.
bool IsLoopback(absl::string_view address);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_ADDRESS_H_
