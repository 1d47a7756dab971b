#include "server/services/fleet_service.h"

#include "absl/status/status.h"
#include "server/services/unary.h"

namespace lengthwise::server {

grpc::ServerUnaryReactor* FleetService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest* request,
                                                    v1::ListWorkersResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.FleetService/ListWorkers", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  *response = coordinator_.ListWorkers();
  return Answer(context, absl::OkStatus());
}

}  // namespace lengthwise::server
