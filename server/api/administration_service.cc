// lengthwise.v1.AdministrationService: backups and the state of the server.
#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/version.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/timestamps.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

// Minimum time between responses. A copy reports progress far more often than anyone can read.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

class AdministrationService final : public v1::AdministrationService::CallbackService {
 public:
  AdministrationService(Backups& backups, TransferThreads& transfers, Calls& calls)
      : backups_(backups), transfers_(transfers), calls_(calls) {}

  grpc::ServerWriteReactor<v1::BackUpResponse>* BackUp(CallContext* context,
                                                       const v1::BackUpRequest* request) override {
    return calls_.TellProgress<v1::BackUpResponse>(
        transfers_, context, request,
        [this](const auto& asked, const Caller&,
               const ProgressStream<v1::BackUpResponse>::Tell& tell) {
          absl::Time next = absl::InfinitePast();
          return backups_.BackUp(asked, [&](const v1::BackUpResponse& response) {
            if (!response.complete() && absl::Now() < next) return true;
            next = absl::Now() + kBetweenResponses;
            return tell(response);
          });
        });
  }

  UnaryReactor* GetStorage(CallContext* context, const v1::GetStorageRequest* request,
                           v1::Storage* response) override {
    return calls_.Serve(Work::kFiles, context, request, response,
                        [this](const auto&, const Caller&) { return backups_.GetStorage(); });
  }

  UnaryReactor* GetServer(CallContext* context, const v1::GetServerRequest* request,
                          v1::Server* response) override {
    return calls_.Serve(Work::kMemory, context, request, response,
                        [this](const auto&, const Caller&) -> absl::StatusOr<v1::Server> {
                          v1::Server server;
                          server.set_program_version(platform::kVersion);
                          server.set_source_revision(platform::kSourceRevision);
                          server.set_worker_api_version(platform::kWorkerApiVersion);
                          *server.mutable_start_time() = ToTimestamp(start_time_);
                          *server.mutable_time() = ToTimestamp(absl::Now());
                          return server;
                        });
  }

 private:
  Backups& backups_;
  TransferThreads& transfers_;
  Calls& calls_;
  const absl::Time start_time_ = absl::Now();
};

}  // namespace

std::unique_ptr<grpc::Service> NewAdministrationService(Backups& backups,
                                                        TransferThreads& transfers, Calls& calls) {
  return std::make_unique<AdministrationService>(backups, transfers, calls);
}

}  // namespace lengthwise::server
