// What client, worker and server agree on below the API: how large messages may be and how a dead
// connection is noticed.
#ifndef LENGTHWISE_ACCESS_TRANSPORT_H_
#define LENGTHWISE_ACCESS_TRANSPORT_H_

#include <cstdint>

namespace lengthwise::access {

// Largest request of a client. Specifications, the largest part of one, have at most 1 MiB.
inline constexpr int64_t kMaxClientRequestBytes = int64_t{4} << 20;
// Largest message that the transport takes, of workers too: an event may hold an attention map.
inline constexpr int kMaxMessageBytes = 8 << 20;

// Each side pings a connection on which calls are open after so long without data, and takes it
// for dead when no answer came in time. The server breaks connections off that ping more often
// than every kLeastPingIntervalMs: half of what is agreed on, so that timers may be early.
inline constexpr int kPingIntervalMs = 20'000;
inline constexpr int kPingTimeoutMs = 20'000;
inline constexpr int kLeastPingIntervalMs = kPingIntervalMs / 2;

}  // namespace lengthwise::access

#endif  // LENGTHWISE_ACCESS_TRANSPORT_H_
