// What client, worker and server agree on below the API: how large messages may be and how a dead
// connection is noticed.
#ifndef LENGTHWISE_RPC_TRANSPORT_H_
#define LENGTHWISE_RPC_TRANSPORT_H_

#include <cstdint>

namespace lengthwise::rpc {

// Largest request of a client. Specifications, the largest part of one, have at most 1 MiB.
inline constexpr int64_t kMaxClientRequestBytes = int64_t{4} << 20;
// Largest message that the transport takes, of workers too: an event may hold an attention map.
inline constexpr int kMaxMessageBytes = 8 << 20;

// Each side pings a connection on which calls are open after `interval_ms` without data, and takes
// it for dead when no answer came in `timeout_ms`. Others than the default are for tests, and for
// both sides.
struct Pings {
  int interval_ms = 20'000;
  int timeout_ms = 20'000;
  // The server breaks connections off that ping more often: half of what is agreed on, so that
  // timers may be early.
  int least_interval_ms() const { return interval_ms / 2; }
};

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TRANSPORT_H_
