// Keeps the gRPC library initialized for the lifetime of a process.
#ifndef LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
#define LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_

namespace lengthwise::platform {

// Keeps gRPC initialized until the process exits. Call it before creating a server or channel.
// Otherwise destroying the last one shuts the library down, which joins its threads. That takes 10
// s if a connection's last operation waited for a slow reader, because a thread still polls for it
// (gRPC 1.51, the backup poller of iomgr/tcp_posix.cc). Thread-safe and idempotent.
//
// It also makes channels look for finished connection attempts ten times a second. No call waits
// while calls fail fast, so only gRPC's backup poller sees that an attempt has ended, by default
// every 5 s: each attempt then reached its own deadline before it was seen to have succeeded.
// $GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS sets another interval.
void KeepGrpcInitialized();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
