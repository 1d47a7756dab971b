// lengthwise.v1.AdministrationService: backups and the state of the server.
#ifndef LENGTHWISE_SERVER_API_ADMINISTRATION_SERVICE_H_
#define LENGTHWISE_SERVER_API_ADMINISTRATION_SERVICE_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/administration_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/api/push_stream.h"
#include "server/coordination/backups.h"

namespace lengthwise::server {

class AdministrationService final : public v1::AdministrationService::CallbackService {
 public:
  // Backups run on `transfers`. All references must outlive the service.
  AdministrationService(Backups& backups, TransferThreads& transfers, Calls& calls)
      : backups_(backups), transfers_(transfers), calls_(calls) {}

  grpc::ServerWriteReactor<v1::BackUpResponse>* BackUp(grpc::CallbackServerContext* context,
                                                       const v1::BackUpRequest* request) override;
  grpc::ServerUnaryReactor* GetStorage(grpc::CallbackServerContext* context,
                                       const v1::GetStorageRequest* request,
                                       v1::Storage* response) override;
  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::Server* response) override;

 private:
  Backups& backups_;
  TransferThreads& transfers_;
  Calls& calls_;
  const absl::Time start_time_ = absl::Now();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ADMINISTRATION_SERVICE_H_
