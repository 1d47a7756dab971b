// lengthwise.v1.FleetService, implemented with the core.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/fleet_service.grpc.pb.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "server/security/authorization.h"

namespace lengthwise::server {
namespace {

// Of what `workers` and `list` show.
constexpr int64_t kMaxHoldReasonBytes = 500;

class FleetService final : public v1::FleetService::CallbackService {
 public:
  FleetService(Core& core, Calls& calls) : core_(core), calls_(calls) {}

  grpc::ServerUnaryReactor* ListWorkers(CallContext* context, const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/ListWorkers", context, request,
                        response,
                        [this](const v1::ListWorkersRequest&,
                               const Caller&) -> absl::StatusOr<v1::ListWorkersResponse> {
                          return core_.reads().ListWorkers();
                        });
  }

  grpc::ServerUnaryReactor* GetWantedWorkers(CallContext* context,
                                             const v1::GetWantedWorkersRequest* request,
                                             v1::GetWantedWorkersResponse* response) override {
    return calls_.Serve(Work::kLookup, "lengthwise.v1.FleetService/GetWantedWorkers", context,
                        request, response,
                        [this](const v1::GetWantedWorkersRequest& asked, const Caller&) {
                          return core_.reads().GetWantedWorkers(asked);
                        });
  }

  grpc::ServerUnaryReactor* HoldLeases(CallContext* context, const v1::HoldLeasesRequest* request,
                                       v1::HoldLeasesResponse* response) override {
    return calls_.Serve(
        Work::kMemory, "lengthwise.v1.FleetService/HoldLeases", context, request, response,
        [this](const v1::HoldLeasesRequest& asked, const Caller& caller,
               Done<v1::HoldLeasesResponse> done) {
          const absl::Status status = CheckText("reason", asked.reason(), kMaxHoldReasonBytes);
          if (!status.ok()) return done(status);
          core_.loop().Post<v1::HoldLeasesResponse>(
              [this, asked, by = PrincipalOf(caller)] { return core_.leases().Hold(asked, by); },
              std::move(done), /*bytes=*/0, BytesOfCall(asked));
        });
  }

  grpc::ServerUnaryReactor* ResumeLeases(CallContext* context,
                                         const v1::ResumeLeasesRequest* request,
                                         v1::ResumeLeasesResponse* response) override {
    return calls_.Serve(
        Work::kMemory, "lengthwise.v1.FleetService/ResumeLeases", context, request, response,
        [this](const v1::ResumeLeasesRequest& asked, const Caller&,
               Done<v1::ResumeLeasesResponse> done) {
          core_.loop().Post<v1::ResumeLeasesResponse>(
              [this, asked] { return core_.leases().Resume(asked); }, std::move(done),
              /*bytes=*/0, BytesOfCall(asked));
        });
  }

 private:
  Core& core_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewFleetService(Core& core, Calls& calls) {
  return std::make_unique<FleetService>(core, calls);
}

}  // namespace lengthwise::server
