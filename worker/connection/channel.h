// The channel to the server, and its errors as absl's.
#ifndef LENGTHWISE_WORKER_CONNECTION_CHANNEL_H_
#define LENGTHWISE_WORKER_CONNECTION_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"
#include "worker/connection/backoff.h"

namespace lengthwise::worker {

// Largest message that either side accepts.
inline constexpr int kMaxMessageBytes = 8 << 20;

// A plain-text channel to "host:port" that connects when first used, reconnects after `reconnect`,
// notices a dead peer within 40 s (keepalive), and never goes through a proxy.
std::shared_ptr<grpc::Channel> CreateServerChannel(const std::string& server,
                                                   const Backoff::Options& reconnect);

absl::Status ToStatus(const grpc::Status& status);

// Whether the same call may succeed later: the server is away, overloaded or restarting.
bool IsTransient(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_CHANNEL_H_
