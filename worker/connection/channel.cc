#include "worker/connection/channel.h"

#include <cstdint>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "platform/grpc_lifetime.h"

namespace lengthwise::worker {

std::shared_ptr<grpc::Channel> CreateServerChannel(const std::string& server,
                                                   const Backoff::Options& reconnect) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  platform::KeepGrpcInitialized();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC's own default would wait up to two minutes before it notices that the server is back.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(reconnect.initial));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(reconnect.maximum));
  // In spite of its name, how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status ToStatus(const grpc::Status& status) {
  // The codes of both are those of google.rpc.Code.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace lengthwise::worker
