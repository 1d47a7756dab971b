// lengthwise.v1.FleetService, implemented with the core.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "proto/fleet_service.pb.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "server/security/authorization.h"

namespace lengthwise::server {
namespace {

// Of what `workers` and `list` show.
constexpr int64_t kMaxHoldReasonBytes = 500;

}  // namespace

std::unique_ptr<Service> NewFleetService(Core& core, Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  service->Serve<v1::ListWorkersRequest, v1::ListWorkersResponse>(
      Work::kLookup, [&core](const auto&, const Caller&) { return core.reads().ListWorkers(); });
  service->Serve<v1::GetWantedWorkersRequest, v1::GetWantedWorkersResponse>(
      Work::kLookup,
      [&core](const auto& asked, const Caller&) { return core.reads().GetWantedWorkers(asked); });
  service->Serve<v1::HoldLeasesRequest, v1::HoldLeasesResponse>(
      Work::kMemory, [&core](const auto& asked, const Caller& caller, auto done) {
        const absl::Status status = CheckText("reason", asked.reason(), kMaxHoldReasonBytes);
        if (!status.ok()) return done(status);
        core.loop().Post<v1::HoldLeasesResponse>(
            [&core, asked, by = PrincipalOf(caller)] { return core.leases().Hold(asked, by); },
            std::move(done), /*bytes=*/0, BytesOfCall(asked));
      });
  service->Serve<v1::ResumeLeasesRequest, v1::ResumeLeasesResponse>(
      Work::kMemory, [&core](const auto& asked, const Caller&, auto done) {
        core.loop().Post<v1::ResumeLeasesResponse>(
            [&core, asked] { return core.leases().Resume(asked); }, std::move(done), /*bytes=*/0,
            BytesOfCall(asked));
      });
  return service;
}

}  // namespace lengthwise::server
