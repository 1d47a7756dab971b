// grpc.reflection.v1alpha.ServerReflection for callers with a token. gRPC's own service admits
// everyone and holds a thread for each stream.
#ifndef LENGTHWISE_SERVER_API_REFLECTION_SERVICE_H_
#define LENGTHWISE_SERVER_API_REFLECTION_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "server/api/calls.h"
#include "server/api/open_streams.h"
#include "server/api/reflection.grpc.pb.h"

namespace lengthwise::server {

class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // `services` are their full names. The references must outlive the service.
  ReflectionService(std::vector<std::string> services, OpenStreams& streams, Calls& calls)
      : services_(std::move(services)), streams_(streams), calls_(calls) {}

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  const std::vector<std::string> services_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_REFLECTION_SERVICE_H_
