// lengthwise.v1.FleetService over a Coordinator.
#ifndef LENGTHWISE_SERVER_SERVICES_FLEET_SERVICE_H_
#define LENGTHWISE_SERVER_SERVICES_FLEET_SERVICE_H_

#include "proto/fleet_service.grpc.pb.h"
#include "server/coordinator.h"

namespace lengthwise::server {

class FleetService final : public v1::FleetService::CallbackService {
 public:
  // `coordinator` outlives the service.
  explicit FleetService(Coordinator& coordinator) : coordinator_(coordinator) {}

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;

 private:
  Coordinator& coordinator_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_FLEET_SERVICE_H_
