// An ExperimentService in the test's own process, on 127.0.0.1 and a free port.
#ifndef LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "platform/mutex.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/fleet_service.grpc.pb.h"

namespace lengthwise::client {

// Answers from what the test has put into it. Thread-safe.
class FakeServer : public v1::ExperimentService::Service, public v1::FleetService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }

  // An experiment of the given trials' ids, all queued; "e-1" becomes "experiments/e-1".
  void AddExperiment(const std::string& id, const std::vector<std::string>& encodings);
  // Sets the state of a trial and its experiment's counts.
  void SetState(const std::string& trial, v1::TrialState state);
  void AddEvaluation(const v1::QueryLengthAccuraciesResponse::Evaluation& evaluation);
  void AddWorker(const v1::Worker& worker);

  // What the next calls of WatchExperiment answer, one script a call: responses, then the status.
  struct WatchScript {
    std::vector<v1::WatchExperimentResponse> responses;
    grpc::Status status;
  };
  void AddWatchScript(WatchScript script);
  // What was asked.
  std::vector<v1::WatchExperimentRequest> watch_requests();
  std::vector<v1::CreateExperimentRequest> create_requests();
  std::vector<std::string> deleted();

 private:
  using Context = grpc::ServerContext;
  grpc::Status CreateExperiment(Context*, const v1::CreateExperimentRequest* request,
                                v1::CreateExperimentResponse* response) override;
  grpc::Status GetExperiment(Context*, const v1::GetExperimentRequest* request,
                             v1::Experiment* response) override;
  grpc::Status ListExperiments(Context*, const v1::ListExperimentsRequest* request,
                               v1::ListExperimentsResponse* response) override;
  grpc::Status CancelExperiment(Context*, const v1::CancelExperimentRequest* request,
                                v1::Experiment* response) override;
  grpc::Status DeleteExperiment(Context*, const v1::DeleteExperimentRequest* request,
                                v1::DeleteExperimentResponse* response) override;
  grpc::Status GetTrial(Context*, const v1::GetTrialRequest* request, v1::Trial* response) override;
  grpc::Status ListTrials(Context*, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override;
  grpc::Status CancelTrial(Context*, const v1::CancelTrialRequest* request,
                           v1::Trial* response) override;
  grpc::Status WatchExperiment(Context*, const v1::WatchExperimentRequest* request,
                               grpc::ServerWriter<v1::WatchExperimentResponse>* writer) override;
  grpc::Status QueryLengthAccuracies(Context*, const v1::QueryLengthAccuraciesRequest* request,
                                     v1::QueryLengthAccuraciesResponse* response) override;
  grpc::Status ListWorkers(Context*, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;

  v1::Experiment* Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Trial* FindTrial(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const std::string& experiment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  std::vector<v1::Experiment> experiments_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Trial> trials_ ABSL_GUARDED_BY(mutex_);
  v1::QueryLengthAccuraciesResponse evaluations_ ABSL_GUARDED_BY(mutex_);
  v1::ListWorkersResponse workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<WatchScript> scripts_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::WatchExperimentRequest> watch_requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CreateExperimentRequest> create_requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> deleted_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_FAKE_SERVER_H_
