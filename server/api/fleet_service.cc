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

  UnaryReactor* ListWorkers(CallContext* context, const v1::ListWorkersRequest* request,
                            v1::ListWorkersResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto&, const Caller&) -> absl::StatusOr<v1::ListWorkersResponse> {
          return core_.reads().ListWorkers();
        });
  }

  UnaryReactor* GetWantedWorkers(CallContext* context, const v1::GetWantedWorkersRequest* request,
                                 v1::GetWantedWorkersResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto& asked, const Caller&) { return core_.reads().GetWantedWorkers(asked); });
  }

  UnaryReactor* HoldLeases(CallContext* context, const v1::HoldLeasesRequest* request,
                           v1::HoldLeasesResponse* response) override {
    return calls_.Serve(
        Work::kMemory, context, request, response,
        [this](const auto& asked, const Caller& caller, auto done) {
          const absl::Status status = CheckText("reason", asked.reason(), kMaxHoldReasonBytes);
          if (!status.ok()) return done(status);
          core_.loop().Post<v1::HoldLeasesResponse>(
              [this, asked, by = PrincipalOf(caller)] { return core_.leases().Hold(asked, by); },
              std::move(done), /*bytes=*/0, BytesOfCall(asked));
        });
  }

  UnaryReactor* ResumeLeases(CallContext* context, const v1::ResumeLeasesRequest* request,
                             v1::ResumeLeasesResponse* response) override {
    return calls_.Serve(Work::kMemory, context, request, response,
                        [this](const auto& asked, const Caller&, auto done) {
                          core_.loop().Post<v1::ResumeLeasesResponse>(
                              [this, asked] { return core_.leases().Resume(asked); },
                              std::move(done),
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
