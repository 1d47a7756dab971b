// Transport limits that client, worker and server share: message sizes and keepalive.
#ifndef LENGTHWISE_RPC_TRANSPORT_H_
#define LENGTHWISE_RPC_TRANSPORT_H_

#include <cstdint>

namespace lengthwise::rpc {

// Maximum size of a client's request. Its largest part, a specification, has at most 1 MiB.
inline constexpr int64_t kMaxClientRequestBytes = int64_t{4} << 20;
// Maximum size of any message. Workers' events may hold attention maps.
inline constexpr int kMaxMessageBytes = 8 << 20;

// Keepalive: each side pings a connection with open calls after `interval_ms` without data, and
// drops it if no answer arrives within `timeout_ms`. Both sides must use the same values; only
// tests change the defaults.
struct Pings {
  int interval_ms = 20'000;
  int timeout_ms = 20'000;
  // The server drops connections that ping more often. Half of the agreed interval, to tolerate
  // early timers.
  int least_interval_ms() const { return interval_ms / 2; }
};

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TRANSPORT_H_
