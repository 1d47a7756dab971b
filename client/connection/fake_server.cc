#include "client/connection/fake_server.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/sha256.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::client {
namespace {

using platform::MutexLock;

grpc::Status NotFound(const std::string& name) {
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no such resource: ", name)};
}

// The answer of a real server to a specification with two mistakes.
grpc::Status TwoMistakes() {
  google::rpc::BadRequest bad_request;
  auto* first = bad_request.add_field_violations();
  first->set_field("encodings[1]");
  first->set_description("unknown encoding \"rotery\"");
  auto* second = bad_request.add_field_violations();
  second->set_field("training.steps");
  second->set_description("must be at least 1");
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  details.add_details()->PackFrom(bad_request);
  return {grpc::StatusCode::INVALID_ARGUMENT, "two mistakes", details.SerializeAsString()};
}

}  // namespace

FakeServer::FakeServer() {
  caller_.set_principal("anonymous");
  caller_.set_role(v1::ADMIN);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::ExperimentService::Service*>(this));
  builder.RegisterService(static_cast<v1::FleetService::Service*>(this));
  builder.RegisterService(static_cast<v1::AdministrationService::Service*>(this));
  builder.RegisterService(static_cast<v1::AccessService::Service*>(this));
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeServer::AddExperiment(const std::string& id, const std::vector<std::string>& encodings) {
  v1::Experiment experiment;
  experiment.set_name(absl::StrCat("experiments/", id));
  experiment.set_owner("ada");
  experiment.mutable_specification()->set_name(id.substr(0, id.rfind('-')));
  experiment.mutable_specification()->mutable_evaluation()->set_seen_up_to(2);
  experiment.mutable_create_time()->set_seconds(1'700'000'000);
  {
    MutexLock lock(mutex_);
    experiments_.insert(experiments_.begin(), experiment);
  }
  AddTrials(experiment.name(), encodings);
}

void FakeServer::AddTrials(const std::string& experiment,
                           const std::vector<std::string>& encodings) {
  MutexLock lock(mutex_);
  for (const std::string& encoding : encodings) {
    v1::Trial trial;
    trial.set_name(absl::StrCat(experiment, "/trials/bucket_sort-", encoding));
    trial.set_index(
        static_cast<int>(std::count_if(trials_.begin(), trials_.end(), [&](const v1::Trial& other) {
          return absl::StartsWith(other.name(), absl::StrCat(experiment, "/"));
        })));
    trial.set_state(v1::QUEUED);
    v1::TrialSpecification& specification = *trial.mutable_specification();
    specification.mutable_task()->set_name("bucket_sort");
    specification.mutable_network()->set_name("encoder");
    specification.mutable_encoding()->set_name("sin_cos");
    specification.mutable_encoding()->set_label(encoding);
    specification.set_learning_rate(0.001);
    specification.mutable_training()->set_steps(200);
    specification.mutable_evaluation()->set_seen_up_to(2);
    trials_.push_back(trial);
  }
  Count(experiment);
}

void FakeServer::SetText(const std::string& experiment, const std::string& text) {
  MutexLock lock(mutex_);
  v1::Experiment& owned = *Find(experiment);
  owned.set_owner(text);
  owned.mutable_specification()->set_description(text);
  for (v1::Trial& trial : trials_) {
    if (!absl::StartsWith(trial.name(), absl::StrCat(experiment, "/"))) continue;
    trial.set_reason(text);
    trial.set_worker(text);
    v1::Outcome& outcome = *trial.mutable_outcome();
    outcome.set_stop_reason(text);
    outcome.mutable_provenance()->set_device(text);
    outcome.mutable_provenance()->set_host(text);
    outcome.mutable_provenance()->set_program_version(text);
  }
}

void FakeServer::SetState(const std::string& trial, v1::TrialState state) {
  MutexLock lock(mutex_);
  FindTrial(trial)->set_state(state);
  Count(trial.substr(0, trial.find("/trials/")));
}

void FakeServer::AddEvaluation(const v1::QueryLengthAccuraciesResponse::Evaluation& evaluation) {
  MutexLock lock(mutex_);
  *evaluations_.add_evaluations() = evaluation;
}

void FakeServer::AddLossCurve(const v1::QueryLossCurvesResponse::Curve& curve) {
  MutexLock lock(mutex_);
  *losses_.add_curves() = curve;
}

void FakeServer::AddAttentionMap(const std::string& trial, const v1::AttentionMap& map) {
  MutexLock lock(mutex_);
  attention_maps_.emplace(trial, map);
}

void FakeServer::SetModel(const std::string& trial, int64_t step, const std::string& bytes,
                          const std::string& sha256) {
  MutexLock lock(mutex_);
  Model& model = models_[trial];
  model.bytes = bytes;
  model.first.set_step(step);
  model.first.mutable_checkpoint()->set_size_bytes(static_cast<int64_t>(bytes.size()));
  model.first.mutable_checkpoint()->set_sha256(sha256.empty() ? platform::Sha256Hex(bytes)
                                                              : sha256);
}

void FakeServer::AddProjection(const std::string& trial, const v1::Projection& projection) {
  MutexLock lock(mutex_);
  projections_.emplace(trial, projection);
}

void FakeServer::AddAnalysis(const v1::Event& event) {
  MutexLock lock(mutex_);
  analyses_.push_back(event);
}

void FakeServer::SetSpecification(const std::string& trial,
                                  const v1::TrialSpecification& specification) {
  MutexLock lock(mutex_);
  *FindTrial(trial)->mutable_specification() = specification;
}

void FakeServer::AddWorker(const v1::Worker& worker) {
  MutexLock lock(mutex_);
  *workers_.add_workers() = worker;
}

void FakeServer::SetWantedWorkers(const v1::GetWantedWorkersResponse& wanted) {
  MutexLock lock(mutex_);
  wanted_ = wanted;
}

void FakeServer::SetStorage(const v1::Storage& storage) {
  MutexLock lock(mutex_);
  storage_ = storage;
}

void FakeServer::SetServer(const v1::Server& server) {
  MutexLock lock(mutex_);
  server_description_ = server;
}

void FakeServer::SetCaller(const grpc::Status& status, const v1::Caller& caller) {
  MutexLock lock(mutex_);
  caller_status_ = status;
  caller_ = caller;
}

void FakeServer::SetSummary(const std::string& experiment,
                            v1::SummarizeExperimentResponse summary) {
  MutexLock lock(mutex_);
  summaries_[experiment] = std::move(summary);
}

void FakeServer::AddWatchScript(WatchScript script) {
  MutexLock lock(mutex_);
  scripts_.push_back(std::move(script));
}

std::vector<v1::WatchExperimentRequest> FakeServer::watch_requests() {
  MutexLock lock(mutex_);
  return watch_requests_;
}

std::vector<v1::CreateExperimentRequest> FakeServer::create_requests() {
  MutexLock lock(mutex_);
  return create_requests_;
}

std::vector<v1::EvaluateTrialRequest> FakeServer::evaluate_requests() {
  MutexLock lock(mutex_);
  return evaluate_requests_;
}

v1::Experiment* FakeServer::Find(const std::string& name) {
  for (v1::Experiment& experiment : experiments_) {
    if (experiment.name() == name) return &experiment;
  }
  return nullptr;
}

v1::Trial* FakeServer::FindTrial(const std::string& name) {
  for (v1::Trial& trial : trials_) {
    if (trial.name() == name) return &trial;
  }
  return nullptr;
}

void FakeServer::Count(const std::string& experiment) {
  v1::TrialCounts& counts = *Find(experiment)->mutable_trials();
  counts.Clear();
  for (const v1::Trial& trial : trials_) {
    if (!absl::StartsWith(trial.name(), absl::StrCat(experiment, "/"))) continue;
    if (trial.state() == v1::QUEUED) counts.set_queued(counts.queued() + 1);
    if (trial.state() == v1::RUNNING) counts.set_running(counts.running() + 1);
    if (trial.state() == v1::SUCCEEDED) counts.set_succeeded(counts.succeeded() + 1);
    if (trial.state() == v1::FAILED) counts.set_failed(counts.failed() + 1);
    if (trial.state() == v1::CANCELLED) counts.set_cancelled(counts.cancelled() + 1);
  }
}

grpc::Status FakeServer::CreateExperiment(Context*, const v1::CreateExperimentRequest* request,
                                          v1::CreateExperimentResponse* response) {
  MutexLock lock(mutex_);
  create_requests_.push_back(*request);
  if (absl::StrContains(request->specification_text().text(), "rotery")) return TwoMistakes();
  if (!request->validate_only()) response->mutable_experiment()->set_name("experiments/e-1");
  response->mutable_experiment()->mutable_specification()->set_name("e");
  response->set_trial_count(6);
  response->set_pack_count(2);
  return grpc::Status::OK;
}

grpc::Status FakeServer::EvaluateTrial(Context*, const v1::EvaluateTrialRequest* request,
                                       v1::CreateExperimentResponse* response) {
  MutexLock lock(mutex_);
  evaluate_requests_.push_back(*request);
  const v1::Experiment* found = Find("experiments/e_evaluation-1");
  if (found == nullptr) return NotFound(request->trial());
  *response->mutable_experiment() = *found;
  response->set_trial_count(1);
  response->set_pack_count(1);
  return grpc::Status::OK;
}

grpc::Status FakeServer::SummarizeExperiment(Context*,
                                             const v1::SummarizeExperimentRequest* request,
                                             v1::SummarizeExperimentResponse* response) {
  MutexLock lock(mutex_);
  if (Find(request->name()) == nullptr) return NotFound(request->name());
  *response = summaries_[request->name()];
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetExperiment(Context*, const v1::GetExperimentRequest* request,
                                       v1::Experiment* response) {
  MutexLock lock(mutex_);
  const v1::Experiment* found = Find(request->name());
  if (found == nullptr) return NotFound(request->name());
  *response = *found;
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListExperiments(Context*, const v1::ListExperimentsRequest* request,
                                         v1::ListExperimentsResponse* response) {
  MutexLock lock(mutex_);
  for (const v1::Experiment& experiment : experiments_) {
    if (!request->owner().empty() && experiment.owner() != request->owner()) continue;
    *response->add_experiments() = experiment;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetTrial(Context*, const v1::GetTrialRequest* request,
                                  v1::Trial* response) {
  MutexLock lock(mutex_);
  const v1::Trial* found = FindTrial(request->name());
  if (found == nullptr) return NotFound(request->name());
  *response = *found;
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListTrials(Context*, const v1::ListTrialsRequest* request,
                                    v1::ListTrialsResponse* response) {
  MutexLock lock(mutex_);
  // One experiment per page, so that every test needs several pages.
  int skip = request->page_token().empty() ? 0 : std::stoi(request->page_token());
  const int wanted = skip;
  for (const v1::Trial& trial : trials_) {
    if (!absl::StartsWith(trial.name(), absl::StrCat(request->parent(), "/"))) continue;
    if (skip-- > 0) continue;
    if (response->trials_size() == 1) {
      response->set_next_page_token(absl::StrCat(wanted + 1));
      break;
    }
    *response->add_trials() = trial;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::WatchExperiment(Context*, const v1::WatchExperimentRequest* request,
                                         grpc::ServerWriter<v1::WatchExperimentResponse>* writer) {
  WatchScript script;
  {
    MutexLock lock(mutex_);
    watch_requests_.push_back(*request);
    if (scripts_.empty()) return {grpc::StatusCode::INTERNAL, "the test has no more scripts"};
    script = scripts_.front();
    scripts_.erase(scripts_.begin());
  }
  if (!script.added.empty()) AddTrials(request->name(), script.added);
  for (const auto& response : script.responses) writer->Write(response);
  return script.status;
}

grpc::Status FakeServer::QueryLengthAccuracies(Context*,
                                               const v1::QueryLengthAccuraciesRequest* request,
                                               v1::QueryLengthAccuraciesResponse* response) {
  MutexLock lock(mutex_);
  for (const auto& evaluation : evaluations_.evaluations()) {
    if (absl::StartsWith(evaluation.trial(), request->name())) {
      *response->add_evaluations() = evaluation;
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::QueryLossCurves(Context*, const v1::QueryLossCurvesRequest* request,
                                         v1::QueryLossCurvesResponse* response) {
  MutexLock lock(mutex_);
  for (const auto& curve : losses_.curves()) {
    if (absl::StartsWith(curve.trial(), request->name())) *response->add_curves() = curve;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::QueryAttentionMaps(Context*, const v1::QueryAttentionMapsRequest* request,
                                            grpc::ServerWriter<v1::AttentionMap>* writer) {
  MutexLock lock(mutex_);
  if (FindTrial(request->name()) == nullptr) return NotFound(request->name());
  const auto [begin, end] = attention_maps_.equal_range(request->name());
  for (auto map = begin; map != end; ++map) {
    if (request->length() == 0 || map->second.length() == request->length()) {
      writer->Write(map->second);
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::QueryProjections(Context*, const v1::QueryProjectionsRequest* request,
                                          grpc::ServerWriter<v1::Projection>* writer) {
  MutexLock lock(mutex_);
  if (FindTrial(request->name()) == nullptr) return NotFound(request->name());
  const auto [begin, end] = projections_.equal_range(request->name());
  for (auto projection = begin; projection != end; ++projection) writer->Write(projection->second);
  return grpc::Status::OK;
}

grpc::Status FakeServer::QueryAnalyses(Context*, const v1::QueryAnalysesRequest* request,
                                       grpc::ServerWriter<v1::Event>* writer) {
  MutexLock lock(mutex_);
  for (const v1::Event& event : analyses_) {
    const bool is_of_experiment =
        absl::StartsWith(event.trial(), absl::StrCat(request->name(), "/trials/"));
    if (event.trial() == request->name() || is_of_experiment) writer->Write(event);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::DownloadModel(Context*, const v1::DownloadModelRequest* request,
                                       grpc::ServerWriter<v1::DownloadModelResponse>* writer) {
  Model model;
  {
    MutexLock lock(mutex_);
    const auto found = models_.find(request->name());
    if (found == models_.end()) {
      return {grpc::StatusCode::NOT_FOUND, absl::StrCat(request->name(), " has no stored model")};
    }
    model = found->second;
  }
  writer->Write(model.first);
  constexpr size_t kChunk = 100;
  for (size_t i = 0; i < model.bytes.size(); i += kChunk) {
    v1::DownloadModelResponse response;
    response.set_data(model.bytes.substr(i, kChunk));
    writer->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListWorkers(Context*, const v1::ListWorkersRequest*,
                                     v1::ListWorkersResponse* response) {
  MutexLock lock(mutex_);
  *response = workers_;
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetWantedWorkers(Context*, const v1::GetWantedWorkersRequest*,
                                          v1::GetWantedWorkersResponse* response) {
  MutexLock lock(mutex_);
  *response = wanted_;
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetStorage(Context*, const v1::GetStorageRequest*, v1::Storage* response) {
  MutexLock lock(mutex_);
  *response = storage_;
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetServer(Context*, const v1::GetServerRequest*, v1::Server* response) {
  MutexLock lock(mutex_);
  *response = server_description_;
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  response->mutable_time()->set_seconds(now + response->time().seconds());
  response->mutable_start_time()->set_seconds(now + response->start_time().seconds());
  return caller_status_;
}

grpc::Status FakeServer::GetCaller(Context*, const v1::GetCallerRequest*, v1::Caller* response) {
  MutexLock lock(mutex_);
  *response = caller_;
  return caller_status_;
}

}  // namespace lengthwise::client
