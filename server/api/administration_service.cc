// lengthwise.v1.AdministrationService: backups and the state of the server.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/version.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/timestamps.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

// Minimum time between responses. A copy reports progress far more often than anyone can read.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

// A backup, made on a thread of its own while a stream waits for its progress or its client.
class RunningBackup {
 public:
  RunningBackup(Backups& backups, const v1::BackUpRequest& request)
      : thread_([this, &backups, request] {
          absl::Status status = backups.BackUp(
              request, [this](const v1::BackUpResponse& response) { return Tell(response); });
          const platform::MutexLock lock(mutex_);
          ended_ = std::move(status);
          changed_.NotifyAll();
        }) {}
  // Ends the backup.
  ~RunningBackup() {
    given_up_ = true;
    thread_.join();
  }

  // Waits for newer progress than before, or the end. The last progress is not left out.
  absl::StatusOr<std::optional<v1::BackUpResponse>> Next() {
    const platform::MutexLock lock(mutex_);
    while (!progress_.has_value() && !ended_.has_value()) changed_.Wait(mutex_);
    if (!progress_.has_value() && !ended_->ok()) return *ended_;
    return std::exchange(progress_, std::nullopt);
  }

 private:
  bool Tell(const v1::BackUpResponse& response) {
    if (given_up_) return false;
    if (!response.complete() && absl::Now() < next_) return true;
    next_ = absl::Now() + kBetweenResponses;
    const platform::MutexLock lock(mutex_);
    progress_ = response;
    changed_.NotifyAll();
    return true;
  }

  std::atomic<bool> given_up_ = false;
  absl::Time next_ = absl::InfinitePast();
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::optional<v1::BackUpResponse> progress_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

class AdministrationService final : public v1::AdministrationService::CallbackService {
 public:
  AdministrationService(Backups& backups, TransferThreads& transfers, Calls& calls)
      : backups_(backups), transfers_(transfers), calls_(calls) {}

  grpc::ServerWriteReactor<v1::BackUpResponse>* BackUp(CallContext* context,
                                                       const v1::BackUpRequest* request) override {
    return calls_.Push<v1::BackUpResponse>(
        transfers_, context, request,
        [this](const auto& asked, const Caller&) -> absl::StatusOr<Next<v1::BackUpResponse>> {
          return [running = std::make_shared<RunningBackup>(backups_, asked)] {
            return running->Next();
          };
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
