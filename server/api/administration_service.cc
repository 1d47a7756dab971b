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
#include "proto/administration_service.pb.h"
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

}  // namespace

std::unique_ptr<Service> NewAdministrationService(Backups& backups, TransferThreads& transfers,
                                                  Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  service->Push<v1::BackUpRequest, v1::BackUpResponse>(
      transfers,
      [&backups](const auto& asked, const Caller&) -> absl::StatusOr<Next<v1::BackUpResponse>> {
        return
            [running = std::make_shared<RunningBackup>(backups, asked)] { return running->Next(); };
      });
  service->Serve<v1::GetStorageRequest, v1::Storage>(
      Work::kFiles, [&backups](const auto&, const Caller&) { return backups.GetStorage(); });
  service->Serve<v1::GetServerRequest, v1::Server>(
      Work::kMemory, [start_time = absl::Now()](const auto&, const Caller&) {
        v1::Server server;
        server.set_program_version(platform::kVersion);
        server.set_source_revision(platform::kSourceRevision);
        server.set_worker_api_version(platform::kWorkerApiVersion);
        *server.mutable_start_time() = ToTimestamp(start_time);
        *server.mutable_time() = ToTimestamp(absl::Now());
        return server;
      });
  return service;
}

}  // namespace lengthwise::server
