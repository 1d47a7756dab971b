// Creates the channel to the server and converts gRPC's errors to absl::Status.
#ifndef LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_
#define LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "rpc/channel.h"
#include "worker/connection/backoff.h"

namespace lengthwise::worker {

// A channel that connects when first used, reconnects after `reconnect`, notices a dead peer within
// 40 s (keepalive), and never goes through a proxy. Errors are those of rpc/channel.h: files
// that are not there or cannot be used; none for an address alone.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateServerChannel(
    const rpc::ChannelOptions& options, const Backoff::Options& reconnect);

using rpc::ToStatus;

// Returns true if a retry may succeed: the server is away, overloaded or restarting, or the
// worker's token may be renewed (its file is read again).
bool IsTransient(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_
