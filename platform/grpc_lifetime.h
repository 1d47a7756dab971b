// How long the gRPC library lives in a process.
#ifndef LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
#define LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_

namespace lengthwise::platform {

// Keeps gRPC initialized until the process ends; whoever makes the first server or channel calls
// it. Otherwise the end of the last server or channel shuts the library down and waits for its
// threads, one of which may be polling for a connection that is long closed: for 10 s, whenever
// the last thing that a connection did was to wait for a slow reader (gRPC 1.51, the backup poller
// of iomgr/tcp_posix.cc). Thread-safe; may be called often.
void KeepGrpcInitialized();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_GRPC_LIFETIME_H_
