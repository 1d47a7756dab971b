// The transport that client, worker and server share: message sizes, keepalive and the lifetime of
// the gRPC library.
#ifndef LENGTHWISE_RPC_TRANSPORT_H_
#define LENGTHWISE_RPC_TRANSPORT_H_

#include <cstdint>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"

namespace lengthwise::rpc {

// Maximum size of a message of a user. Its largest part, a specification or a chunk of a file, has
// at most 1 MiB. In memory it may need sixty times its bytes, before a handler sees it.
inline constexpr int64_t kMaxClientRequestBytes = int64_t{2} << 20;
// Maximum size of any message. Workers' events may hold attention maps.
inline constexpr int kMaxMessageBytes = 8 << 20;
// Maximum size of an answer to a client. It may hold a million accuracies.
inline constexpr int kMaxAnswerBytes = 64 << 20;
// Maximum memory of a channel for what its peer sends. gRPC 1.51 receives a whole message before it
// compares its size with the limit, so a peer could announce 4 GiB. At this limit it ends a call
// with RESOURCE_EXHAUSTED instead. Three times the largest answer: a call may receive the next
// message while the caller parses the last, and on a busy machine gRPC frees the one before later.
inline constexpr int kMaxReceivedBytes = 3 * kMaxAnswerBytes;

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

// Keeps gRPC initialized until the process exits. Call it before creating a server or channel.
// Otherwise destroying the last one shuts the library down, which joins its threads. That takes 10
// s if a connection's last operation waited for a slow reader, because a thread still polls for it
// (gRPC 1.51, the backup poller of iomgr/tcp_posix.cc). Thread-safe and idempotent.
//
// It also makes channels look for finished connection attempts ten times a second. No call waits
// while calls fail fast, so only gRPC's backup poller sees that an attempt has ended, by default
// every 5 s: each attempt then reached its own deadline before it was seen to have succeeded.
// $GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS sets another interval.
//
// And it ends Abseil's search for deadlocks at each lock, which Debian's build makes for gRPC's.
inline void KeepGrpcInitialized() {
  static const bool initialized = [] {
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100", /*overwrite=*/0);
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc_init();
    return true;
  }();
  static_cast<void>(initialized);
}

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TRANSPORT_H_
