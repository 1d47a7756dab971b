// Keeps the gRPC library initialized for the lifetime of a process.
#ifndef LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
#define LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_

namespace lengthwise::platform {

// Keeps gRPC initialized until the process exits. Call it before creating a server or channel.
// Otherwise destroying the last one shuts the library down, which joins its threads. That takes 10
// s if a connection's last operation waited for a slow reader, because a thread still polls for it
// (gRPC 1.51, the backup poller of iomgr/tcp_posix.cc). Thread-safe and idempotent.
void KeepGrpcInitialized();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
