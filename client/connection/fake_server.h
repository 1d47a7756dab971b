// A scripted server in the test's process, on 127.0.0.1 and a free port. It gives answers that
// real_server.h never gives: streams that break at a chosen point, damaged or oversized answers,
// hostile text, releases that lack a call. It also records the requests that a command sent.
#ifndef LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "platform/mutex.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/fleet_service.grpc.pb.h"

namespace lengthwise::client {

// Answers from the data that the test added. Thread-safe.
class FakeServer : public v1::ExperimentService::Service,
                   public v1::FleetService::Service,
                   public v1::AdministrationService::Service,
                   public v1::AccessService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }

  // Adds an experiment with a queued trial for each encoding. "e-1" becomes "experiments/e-1".
  void AddExperiment(const std::string& id, const std::vector<std::string>& encodings);
  // Adds queued trials to an experiment (full name), as an extension does.
  void AddTrials(const std::string& experiment, const std::vector<std::string>& encodings);
  // Sets every free-text field of an experiment (full name) and its trials.
  void SetText(const std::string& experiment, const std::string& text);
  // Sets the state of a trial and its experiment's counts.
  void SetState(const std::string& trial, v1::TrialState state);
  void AddEvaluation(const v1::QueryLengthAccuraciesResponse::Evaluation& evaluation);
  // The curve names its trial by full name.
  void AddLossCurve(const v1::QueryLossCurvesResponse::Curve& curve);
  void AddProjection(const std::string& trial, const v1::Projection& projection);
  // Adds an analysis to the trial of `event`.
  void AddAnalysis(const v1::Event& event);
  // Replaces the trial's specification.
  void SetSpecification(const std::string& trial, const v1::TrialSpecification& specification);
  void AddWorker(const v1::Worker& worker);
  void SetWantedWorkers(const v1::GetWantedWorkersResponse& wanted);
  void SetStorage(const v1::Storage& storage);
  // Its times are seconds relative to the time of the call.
  void SetServer(const v1::Server& server);
  // Sets the answer of GetCaller and GetServer. Default: the anonymous administrator.
  void SetCaller(const grpc::Status& status, const v1::Caller& caller);
  void SetSummary(const std::string& experiment, v1::SummarizeExperimentResponse summary);
  // A `sha256` that does not match the bytes simulates damage in transit. Empty: the matching one.
  void SetModel(const std::string& trial, int64_t step, const std::string& bytes,
                const std::string& sha256 = "");
  void AddAttentionMap(const std::string& trial, const v1::AttentionMap& map);

  // One answer of WatchExperiment: the responses, then the status. Each call consumes one script.
  struct WatchScript {
    std::vector<v1::WatchExperimentResponse> responses;
    grpc::Status status;
    // Encodings of trials that are added to the experiment first.
    std::vector<std::string> added = {};
  };
  void AddWatchScript(WatchScript script);
  // The requests received.
  std::vector<v1::WatchExperimentRequest> watch_requests();
  std::vector<v1::CreateExperimentRequest> create_requests();
  std::vector<v1::EvaluateTrialRequest> evaluate_requests();

 private:
  using Context = grpc::ServerContext;
  grpc::Status CreateExperiment(Context*, const v1::CreateExperimentRequest* request,
                                v1::CreateExperimentResponse* response) override;
  // Answers with "experiments/e_evaluation-1", which the test must have added.
  grpc::Status EvaluateTrial(Context*, const v1::EvaluateTrialRequest* request,
                             v1::CreateExperimentResponse* response) override;
  grpc::Status SummarizeExperiment(Context*, const v1::SummarizeExperimentRequest* request,
                                   v1::SummarizeExperimentResponse* response) override;
  grpc::Status GetExperiment(Context*, const v1::GetExperimentRequest* request,
                             v1::Experiment* response) override;
  grpc::Status ListExperiments(Context*, const v1::ListExperimentsRequest* request,
                               v1::ListExperimentsResponse* response) override;
  grpc::Status GetTrial(Context*, const v1::GetTrialRequest* request, v1::Trial* response) override;
  grpc::Status ListTrials(Context*, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override;
  grpc::Status WatchExperiment(Context*, const v1::WatchExperimentRequest* request,
                               grpc::ServerWriter<v1::WatchExperimentResponse>* writer) override;
  grpc::Status QueryLengthAccuracies(Context*, const v1::QueryLengthAccuraciesRequest* request,
                                     v1::QueryLengthAccuraciesResponse* response) override;
  grpc::Status QueryLossCurves(Context*, const v1::QueryLossCurvesRequest* request,
                               v1::QueryLossCurvesResponse* response) override;
  grpc::Status QueryAttentionMaps(Context*, const v1::QueryAttentionMapsRequest* request,
                                  grpc::ServerWriter<v1::AttentionMap>* writer) override;
  grpc::Status QueryProjections(Context*, const v1::QueryProjectionsRequest* request,
                                grpc::ServerWriter<v1::Projection>* writer) override;
  grpc::Status QueryAnalyses(Context*, const v1::QueryAnalysesRequest* request,
                             grpc::ServerWriter<v1::Event>* writer) override;
  // In chunks of 100 bytes.
  grpc::Status DownloadModel(Context*, const v1::DownloadModelRequest* request,
                             grpc::ServerWriter<v1::DownloadModelResponse>* writer) override;
  grpc::Status ListWorkers(Context*, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status GetWantedWorkers(Context*, const v1::GetWantedWorkersRequest* request,
                                v1::GetWantedWorkersResponse* response) override;

  grpc::Status GetStorage(Context*, const v1::GetStorageRequest* request,
                          v1::Storage* response) override;
  grpc::Status GetServer(Context*, const v1::GetServerRequest* request,
                         v1::Server* response) override;
  grpc::Status GetCaller(Context*, const v1::GetCallerRequest* request,
                         v1::Caller* response) override;

  v1::Experiment* Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Trial* FindTrial(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const std::string& experiment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  std::vector<v1::Experiment> experiments_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Trial> trials_ ABSL_GUARDED_BY(mutex_);
  v1::QueryLengthAccuraciesResponse evaluations_ ABSL_GUARDED_BY(mutex_);
  v1::QueryLossCurvesResponse losses_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, v1::AttentionMap> attention_maps_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, v1::Projection> projections_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Event> analyses_ ABSL_GUARDED_BY(mutex_);
  struct Model {
    v1::DownloadModelResponse first;
    std::string bytes;
  };
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
  v1::ListWorkersResponse workers_ ABSL_GUARDED_BY(mutex_);
  v1::GetWantedWorkersResponse wanted_ ABSL_GUARDED_BY(mutex_);
  v1::Storage storage_ ABSL_GUARDED_BY(mutex_);
  v1::Server server_description_ ABSL_GUARDED_BY(mutex_);
  grpc::Status caller_status_ ABSL_GUARDED_BY(mutex_);
  v1::Caller caller_ ABSL_GUARDED_BY(mutex_);
  std::vector<WatchScript> scripts_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::WatchExperimentRequest> watch_requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CreateExperimentRequest> create_requests_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::SummarizeExperimentResponse> summaries_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::EvaluateTrialRequest> evaluate_requests_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_
