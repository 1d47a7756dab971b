// A stream that is refused before it begins.
#ifndef LENGTHWISE_SERVER_SERVICES_REFUSED_STREAM_H_
#define LENGTHWISE_SERVER_SERVICES_REFUSED_STREAM_H_

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/services/status.h"

namespace lengthwise::server {

// `Reactor` is gRPC's of the method: ServerWriteReactor<T>, ServerReadReactor<T>,
// ServerBidiReactor<T, U>. gRPC owns it.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_REFUSED_STREAM_H_
