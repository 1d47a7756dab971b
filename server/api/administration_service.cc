#include "server/api/administration_service.h"

#include "platform/version.h"
#include "proto/timestamps.h"

namespace lengthwise::server {
namespace {

// Minimum time between responses. A copy reports progress far more often than anyone can read.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

}  // namespace

grpc::ServerWriteReactor<v1::BackUpResponse>* AdministrationService::BackUp(
    grpc::CallbackServerContext* context, const v1::BackUpRequest* request) {
  return calls_.TellProgress<v1::BackUpResponse>(
      transfers_, "lengthwise.v1.AdministrationService/BackUp", context, request,
      [this](const v1::BackUpRequest& asked, const Caller&,
             const ProgressStream<v1::BackUpResponse>::Tell& tell) {
        absl::Time next = absl::InfinitePast();
        return backups_.BackUp(asked, [&](const v1::BackUpResponse& response) {
          if (!response.complete() && absl::Now() < next) return true;
          next = absl::Now() + kBetweenResponses;
          return tell(response);
        });
      });
}

grpc::ServerUnaryReactor* AdministrationService::GetStorage(grpc::CallbackServerContext* context,
                                                            const v1::GetStorageRequest* request,
                                                            v1::Storage* response) {
  return calls_.Serve(
      Work::kFiles, "lengthwise.v1.AdministrationService/GetStorage", context, request, response,
      [this](const v1::GetStorageRequest&, const Caller&) { return backups_.GetStorage(); });
}

grpc::ServerUnaryReactor* AdministrationService::GetServer(grpc::CallbackServerContext* context,
                                                           const v1::GetServerRequest* request,
                                                           v1::Server* response) {
  return calls_.Serve(
      Work::kMemory, "lengthwise.v1.AdministrationService/GetServer", context, request, response,
      [this](const v1::GetServerRequest&, const Caller&) -> absl::StatusOr<v1::Server> {
        v1::Server server;
        server.set_program_version(platform::kVersion);
        server.set_source_revision(platform::kSourceRevision);
        server.set_worker_api_version(platform::kWorkerApiVersion);
        *server.mutable_start_time() = ToTimestamp(start_time_);
        *server.mutable_time() = ToTimestamp(absl::Now());
        return server;
      });
}

}  // namespace lengthwise::server
