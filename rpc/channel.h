// Creates the gRPC channel from a client or a worker to the server, encrypted as configured and
// with the token in every call.
#ifndef LENGTHWISE_RPC_CHANNEL_H_
#define LENGTHWISE_RPC_CHANNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"
#include "rpc/settings.h"
#include "rpc/transport.h"

namespace lengthwise::rpc {

struct ChannelOptions {
  // HOST:PORT, or a list of them (rpc/address.h).
  std::string server;
  // Further settings, as in kSettings. Empty: not set.
  std::string token_file = {};
  std::string tls_ca = {};
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::string tls_server_name = {};
  // Whole seconds. How often the files of certificates are read again.
  absl::Duration certificates_interval = absl::Seconds(10);
  Pings pings = {};
  // Takes warnings that do not prevent a channel, such as an unknown host of several or a new token
  // file that cannot be used; may be empty. Calls of the channel call it, too, on any thread.
  std::function<void(const std::string&)> warn = {};
};

ChannelOptions ToChannelOptions(const Settings& settings);

// Creates a channel to `options.server`: to the first of its addresses, in order, that accepts a
// connection. With several addresses and TLS, the certificate must name the first one's host, or
// `tls_server_name`. The channel connects on first use, detects a dead connection while calls are
// open, bounds what the server may send (rpc/transport.h) and never uses a proxy, in addition to
// `arguments`. The token file and the certificates are read again when they change; connections
// that are open stay.
//
// Errors are those of token.h, certificates.h and, for several addresses, TargetOf
// (rpc/address.h). INVALID_ARGUMENT if a certificate is set without its key or without an
// authority. FAILED_PRECONDITION if the token would be sent to another machine in plain text.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const ChannelOptions& options,
                                                             grpc::ChannelArguments arguments);

// Explains a call's UNAVAILABLE if gRPC's message is about a peer that is no Lengthwise server or
// uses other encryption. FAILED_PRECONDITION with the remedy if a retry cannot help, else
// UNAVAILABLE. Returns OK for other causes, such as an unreachable server.
absl::Status ExplainRefusedConnection(const std::string& message, const ChannelOptions& options);

// Returns the innermost cause of gRPC's message that it cannot connect, which nests causes: "failed
// to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote
// host: Connection refused" becomes "Connection refused". Returns other messages as they are.
std::string ConnectFailure(const std::string& message);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_CHANNEL_H_
