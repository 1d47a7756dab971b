// Creates the channel to the server and converts gRPC's errors to absl::Status.
#ifndef LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_
#define LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_

#include <functional>
#include <future>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "rpc/channel.h"
#include "worker/connection/backoff.h"
#include "worker/connection/reachability.h"

namespace lengthwise::worker {

// A channel that connects when first used, reconnects after `reconnect`, notices a dead peer within
// 40 s (keepalive), and never goes through a proxy. Errors are those of rpc/channel.h; only
// UNAVAILABLE, if no host of several is known, may be temporary.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateServerChannel(
    const rpc::ChannelOptions& options, const Backoff::Options& reconnect);

// Repeats `connect` until it returns anything but UNAVAILABLE, waiting as `reconnect` says.
// `status` is the result of its first call. Logs through `reachability`. Returns CANCELLED once
// `stop` is ready, and DEADLINE_EXCEEDED at `end`; does not interrupt a call.
absl::Status RetryWhileUnavailable(absl::Status status,
                                   const std::function<absl::Status()>& connect,
                                   const Backoff::Options& reconnect, Reachability& reachability,
                                   TimePoint end, const std::shared_future<void>& stop);

using rpc::ToStatus;

// Returns true if a retry may succeed: the server is away, overloaded or restarting, or the
// worker's token may be renewed (its file is read again).
bool IsTransient(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_SERVER_CHANNEL_H_
