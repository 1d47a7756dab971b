// lengthwise.v1.WorkerService, implemented with the core.
#ifndef LENGTHWISE_SERVER_API_WORKER_SERVICE_H_
#define LENGTHWISE_SERVER_API_WORKER_SERVICE_H_

#include "proto/worker_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/coordination/core.h"

namespace lengthwise::server {

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  // `downloads` and `uploads` serve only workers' checkpoints, one direction each, so that neither
  // users who download models nor a resuming fleet delay uploads. All references must outlive the
  // service.
  WorkerService(Core& core, TransferThreads& downloads, TransferThreads& uploads,
                OpenStreams& streams, Calls& calls)
      : core_(core), downloads_(downloads), uploads_(uploads), streams_(streams), calls_(calls) {}

  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override;
  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const v1::RegisterWorkerRequest* request,
                                           v1::RegisterWorkerResponse* response) override;
  grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>* StreamEvents(
      grpc::CallbackServerContext* context) override;
  grpc::ServerReadReactor<v1::UploadArtifactRequest>* UploadArtifact(
      grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) override;
  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override;
  grpc::ServerUnaryReactor* SignTransfer(grpc::CallbackServerContext* context,
                                         const v1::SignTransferRequest* request,
                                         v1::SignTransferResponse* response) override;

 private:
  Core& core_;
  TransferThreads& downloads_;
  TransferThreads& uploads_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_WORKER_SERVICE_H_
