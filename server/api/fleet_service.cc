#include "server/api/fleet_service.h"

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

grpc::ServerUnaryReactor* FleetService::GetWantedWorkers(grpc::CallbackServerContext* context,
                                                         const v1::GetWantedWorkersRequest* request,
                                                         v1::GetWantedWorkersResponse* response) {
  return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/GetWantedWorkers", context,
                      request, response,
                      [this](const v1::GetWantedWorkersRequest& asked, const Caller&) {
                        return reads_.GetWantedWorkers(asked);
                      });
}

}  // namespace lengthwise::server
