#include "server/services/fleet_service.h"

#include "absl/status/statusor.h"

namespace lengthwise::server {

grpc::ServerUnaryReactor* FleetService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest* request,
                                                    v1::ListWorkersResponse* response) {
  return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/ListWorkers", context, request,
                      response,
                      [this](const v1::ListWorkersRequest&,
                             const Caller&) -> absl::StatusOr<v1::ListWorkersResponse> {
                        return reads_.ListWorkers();
                      });
}

}  // namespace lengthwise::server
