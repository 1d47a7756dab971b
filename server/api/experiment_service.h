// lengthwise.v1.ExperimentService, implemented with the core.
#ifndef LENGTHWISE_SERVER_API_EXPERIMENT_SERVICE_H_
#define LENGTHWISE_SERVER_API_EXPERIMENT_SERVICE_H_

#include "platform/work_pool.h"
#include "proto/experiment_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/coordination/core.h"

namespace lengthwise::server {

class ExperimentService final : public v1::ExperimentService::CallbackService {
 public:
  // `watchers` read pages of events; `transfers` read models and large answers. All references must
  // outlive the service.
  ExperimentService(Core& core, platform::WorkPool& watchers, TransferThreads& transfers,
                    OpenStreams& streams, Calls& calls)
      : core_(core), watchers_(watchers), transfers_(transfers), streams_(streams), calls_(calls) {}

  grpc::ServerUnaryReactor* CreateExperiment(grpc::CallbackServerContext* context,
                                             const v1::CreateExperimentRequest* request,
                                             v1::CreateExperimentResponse* response) override;
  grpc::ServerUnaryReactor* ExtendExperiment(grpc::CallbackServerContext* context,
                                             const v1::ExtendExperimentRequest* request,
                                             v1::ExtendExperimentResponse* response) override;
  grpc::ServerUnaryReactor* EvaluateTrial(grpc::CallbackServerContext* context,
                                          const v1::EvaluateTrialRequest* request,
                                          v1::CreateExperimentResponse* response) override;
  grpc::ServerUnaryReactor* GetExperiment(grpc::CallbackServerContext* context,
                                          const v1::GetExperimentRequest* request,
                                          v1::Experiment* response) override;
  grpc::ServerUnaryReactor* FindExperiment(grpc::CallbackServerContext* context,
                                           const v1::FindExperimentRequest* request,
                                           v1::FindExperimentResponse* response) override;
  grpc::ServerUnaryReactor* ListExperiments(grpc::CallbackServerContext* context,
                                            const v1::ListExperimentsRequest* request,
                                            v1::ListExperimentsResponse* response) override;
  grpc::ServerUnaryReactor* CancelExperiment(grpc::CallbackServerContext* context,
                                             const v1::CancelExperimentRequest* request,
                                             v1::Experiment* response) override;
  grpc::ServerUnaryReactor* RetryTrials(grpc::CallbackServerContext* context,
                                        const v1::RetryTrialsRequest* request,
                                        v1::RetryTrialsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteExperiment(grpc::CallbackServerContext* context,
                                             const v1::DeleteExperimentRequest* request,
                                             v1::DeleteExperimentResponse* response) override;
  grpc::ServerUnaryReactor* GetTrial(grpc::CallbackServerContext* context,
                                     const v1::GetTrialRequest* request,
                                     v1::Trial* response) override;
  grpc::ServerUnaryReactor* ListTrials(grpc::CallbackServerContext* context,
                                       const v1::ListTrialsRequest* request,
                                       v1::ListTrialsResponse* response) override;
  grpc::ServerUnaryReactor* CancelTrial(grpc::CallbackServerContext* context,
                                        const v1::CancelTrialRequest* request,
                                        v1::Trial* response) override;
  grpc::ServerWriteReactor<v1::WatchExperimentResponse>* WatchExperiment(
      grpc::CallbackServerContext* context, const v1::WatchExperimentRequest* request) override;
  grpc::ServerUnaryReactor* QueryLossCurves(grpc::CallbackServerContext* context,
                                            const v1::QueryLossCurvesRequest* request,
                                            v1::QueryLossCurvesResponse* response) override;
  grpc::ServerUnaryReactor* SummarizeExperiment(grpc::CallbackServerContext* context,
                                                const v1::SummarizeExperimentRequest* request,
                                                v1::SummarizeExperimentResponse* response) override;
  grpc::ServerUnaryReactor* QueryLengthAccuracies(
      grpc::CallbackServerContext* context, const v1::QueryLengthAccuraciesRequest* request,
      v1::QueryLengthAccuraciesResponse* response) override;
  grpc::ServerWriteReactor<v1::AttentionMap>* QueryAttentionMaps(
      grpc::CallbackServerContext* context, const v1::QueryAttentionMapsRequest* request) override;
  grpc::ServerWriteReactor<v1::Projection>* QueryProjections(
      grpc::CallbackServerContext* context, const v1::QueryProjectionsRequest* request) override;
  grpc::ServerWriteReactor<v1::Event>* QueryAnalyses(
      grpc::CallbackServerContext* context, const v1::QueryAnalysesRequest* request) override;
  grpc::ServerWriteReactor<v1::DownloadModelResponse>* DownloadModel(
      grpc::CallbackServerContext* context, const v1::DownloadModelRequest* request) override;
  grpc::ServerReadReactor<v1::UploadDataRequest>* UploadData(
      grpc::CallbackServerContext* context, v1::UploadDataResponse* response) override;

 private:
  // PERMISSION_DENIED unless the caller may change the experiment `name`, or the experiment of the
  // trial `name`. Reads the store, unless the caller may change all experiments (Work::kChange).
  absl::Status CheckOwner(const Caller& caller, absl::string_view name);
  // Prepares and posts an extension, again if another one came in between.
  void Extend(const v1::ExtendExperimentRequest& asked,
              const Done<v1::ExtendExperimentResponse>& done);

  Core& core_;
  platform::WorkPool& watchers_;
  TransferThreads& transfers_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_EXPERIMENT_SERVICE_H_
