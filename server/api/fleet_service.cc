// lengthwise.v1.FleetService, implemented with the core's reads.
#include <memory>

#include "absl/status/statusor.h"
#include "proto/fleet_service.grpc.pb.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

class FleetService final : public v1::FleetService::CallbackService {
 public:
  FleetService(Reads& reads, Calls& calls) : reads_(reads), calls_(calls) {}

  grpc::ServerUnaryReactor* ListWorkers(CallContext* context, const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/ListWorkers", context, request,
                        response,
                        [this](const v1::ListWorkersRequest&,
                               const Caller&) -> absl::StatusOr<v1::ListWorkersResponse> {
                          return reads_.ListWorkers();
                        });
  }

  grpc::ServerUnaryReactor* GetWantedWorkers(CallContext* context,
                                             const v1::GetWantedWorkersRequest* request,
                                             v1::GetWantedWorkersResponse* response) override {
    return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/GetWantedWorkers", context,
                        request, response,
                        [this](const v1::GetWantedWorkersRequest& asked, const Caller&) {
                          return reads_.GetWantedWorkers(asked);
                        });
  }

 private:
  Reads& reads_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewFleetService(Reads& reads, Calls& calls) {
  return std::make_unique<FleetService>(reads, calls);
}

}  // namespace lengthwise::server
