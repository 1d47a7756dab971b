// lengthwise.v1.FleetService, implemented with the core's reads.
#ifndef LENGTHWISE_SERVER_API_FLEET_SERVICE_H_
#define LENGTHWISE_SERVER_API_FLEET_SERVICE_H_

#include "proto/fleet_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/coordination/reads.h"

namespace lengthwise::server {

class FleetService final : public v1::FleetService::CallbackService {
 public:
  // Both references must outlive the service.
  FleetService(Reads& reads, Calls& calls) : reads_(reads), calls_(calls) {}

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;

  grpc::ServerUnaryReactor* GetWantedWorkers(grpc::CallbackServerContext* context,
                                             const v1::GetWantedWorkersRequest* request,
                                             v1::GetWantedWorkersResponse* response) override;

 private:
  Reads& reads_;
  Calls& calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_FLEET_SERVICE_H_
