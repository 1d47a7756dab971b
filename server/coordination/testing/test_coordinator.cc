#include "server/coordination/testing/test_coordinator.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/storage/testing/s3_test_store.h"

namespace lengthwise::server {

absl::StatusOr<specification::Grid> ResolveSimply(const v1::CreateExperimentRequest& request) {
  const v1::ExperimentSpecification& specification = request.specification();
  if (specification.name() == "wrong") {
    absl::Status status = absl::InvalidArgumentError("name: \"wrong\" is wrong");
    status.SetPayload(specification::kBadRequestTypeUrl, absl::Cord("details"));
    return status;
  }
  for (const int32_t length : specification.evaluation().lengths()) {
    if (length == 0) return absl::InvalidArgumentError("evaluation.lengths: got 0");
  }
  specification::Grid grid;
  grid.specification = specification;
  for (int rate = 0; rate < specification.learning_rates_size(); ++rate) {
    auto pack = std::make_shared<specification::GridPack>();
    pack->key = absl::StrCat("pack", rate);
    v1::TrialSpecification& shared = pack->specification;
    shared.mutable_task()->set_name("bucket_sort");
    if (specification.tasks_size() > 0) *shared.mutable_task() = specification.tasks(0);
    shared.mutable_network()->set_name("encoder");
    if (specification.networks_size() > 0) *shared.mutable_network() = specification.networks(0);
    shared.mutable_encoding()->set_name(rate % 2 == 0 ? "none" : "sin_cos");
    shared.mutable_encoding()->set_label(rate % 2 == 0 ? "" : "sines");
    *shared.mutable_training() = specification.training();
    *shared.mutable_evaluation() = specification.evaluation();
    shared.set_keep(specification.keep());
    for (const uint64_t seed : specification.seeds()) {
      grid.trials.push_back({.id = absl::StrCat("lr", rate, "-seed", seed),
                             .learning_rate = specification.learning_rates(rate),
                             .weight_seed = seed,
                             .data_seed = seed,
                             .pack = pack});
    }
  }
  return grid;
}

std::string NewDirectory() {
  static std::atomic<int> number = 0;
  const testing::TestInfo* const running = testing::UnitTest::GetInstance()->current_test_info();
  // Names of parameterized tests contain a slash. A benchmark is no test.
  const std::string test =
      absl::StrReplaceAll(running == nullptr ? "benchmark" : running->name(), {{"/", "_"}});
  const std::string directory = absl::StrCat(testing::TempDir(), "/", test, number++, ".data");
  std::filesystem::remove_all(directory);
  std::filesystem::remove_all(directory + ".store");
  return directory;
}

void PostExtend(Core& core, const v1::ExtendExperimentRequest& request,
                Done<v1::ExtendExperimentResponse> done) {
  absl::StatusOr<Extension> prepared = core.submissions().PrepareExtension(request);
  if (!prepared.ok()) return done(prepared.status());
  core.loop().Post<v1::ExtendExperimentResponse>(
      [&core, extension = *std::move(prepared)] { return core.submissions().Extend(extension); },
      [&core, request, done](absl::StatusOr<v1::ExtendExperimentResponse> response) {
        if (absl::IsAborted(response.status())) return PostExtend(core, request, done);
        done(std::move(response));
      });
}

void PostCancel(Core& core, const v1::CancelExperimentRequest& request, const std::string& caller,
                Done<v1::Experiment> done) {
  core.loop().PostParts<v1::Experiment>(
      [&core, request, caller, parts = std::make_shared<Parts>()] {
        return core.experiments().Cancel(request, caller, *parts);
      },
      std::move(done));
}

void PostRetry(Core& core, const v1::RetryTrialsRequest& request, const std::string& caller,
               Done<v1::RetryTrialsResponse> done) {
  core.loop().PostParts<v1::RetryTrialsResponse>(
      [&core, request, caller, parts = std::make_shared<Parts>()] {
        return core.experiments().RetryTrials(request, caller, *parts);
      },
      std::move(done));
}

void PostCall(Core& core, const v1::SynchronizeRequest& request, const std::string& caller,
              Done<v1::SynchronizeResponse> done) {
  core.loop().Synchronize(
      request, caller, [] { return false; }, std::move(done));
}

void PostEvents(Core& core, const v1::StreamEventsRequest& request, const std::string& caller,
                Done<v1::StreamEventsResponse> done) {
  core.loop().Post<v1::StreamEventsResponse>(
      [&core, request, caller] { return core.intake().Store(request, caller); }, std::move(done),
      static_cast<int64_t>(request.ByteSizeLong()));
}

namespace {

// Posts a command and waits for its answer.
template <typename Response, typename Post>
absl::StatusOr<Response> Await(Post post) {
  std::promise<absl::StatusOr<Response>> answer;
  post([&answer](absl::StatusOr<Response> response) { answer.set_value(std::move(response)); });
  return answer.get_future().get();
}

}  // namespace

TestCoordinator::TestCoordinator(std::string data_dir, int64_t max_database_bytes,
                                 GridResolver resolve)
    : max_database_bytes_(max_database_bytes),
      resolve_(std::move(resolve)),
      microseconds_(std::make_shared<std::atomic<int64_t>>(1'700'000'000'000'000)),
      wall_ahead_(std::make_shared<std::atomic<int64_t>>(0)) {
  options_.data_dir = std::move(data_dir);
  if (std::getenv("LENGTHWISE_TEST_SHARED_PATH") != nullptr) {
    options_.artifacts = options_.data_dir + ".store";
  } else if (TestsRunOnS3()) {
    static const std::string& place = *new std::string(NewS3Place());
    options_.artifacts =
        absl::StrCat(place, "/", platform::Sha256Hex(options_.data_dir).substr(0, 16));
    options_.s3 = S3TestStore().value();
  }
}

absl::Status TestCoordinator::Open() {
  const auto now = [microseconds = microseconds_, start = start_] {
    return absl::FromUnixMicros(microseconds->load()) +
           (start.has_value() ? absl::Now() - *start : absl::ZeroDuration());
  };
  const auto wall = [now, ahead = wall_ahead_] {
    return now() + absl::Microseconds(ahead->load());
  };
  lost_ = std::make_shared<Lost>();
  const auto on_lost = [lost = lost_](const absl::Status& status) {
    platform::MutexLock lock(lost->mutex);
    lost->status = status;
  };
  auto opened = Core::Open(options_, {.resolve = resolve_,
                                      .clock = {.steady = now, .wall = wall},
                                      .max_database_bytes = max_database_bytes_,
                                      .on_lost = on_lost,
                                      .measure_disk = measure_disk_,
                                      .wrap_storage = wrap_storage_});
  if (opened.ok()) core_ = *std::move(opened);
  return opened.status();
}

absl::Status TestCoordinator::lost() const {
  platform::MutexLock lock(lost_->mutex);
  return lost_->status;
}

void TestCoordinator::SetWallClock(absl::Duration by) {
  if (core_ == nullptr) {
    *microseconds_ += absl::ToInt64Microseconds(by);
    return;
  }
  *wall_ahead_ += absl::ToInt64Microseconds(by);
  core_->loop().Flush();
}

void TestCoordinator::Advance(absl::Duration time) {
  // After a lease duration no lease is left, so that the size of a step no longer matters.
  const absl::Duration step = options_.scheduler.lease_duration / 10;
  for (int i = 0; i < 10 && time > step; ++i, time -= step) Pause(step);
  Pause(time);
}

void TestCoordinator::Pause(absl::Duration time) {
  MoveClock(time);
  core_->loop().Flush();
}

std::string TestCoordinator::Create(const std::string& name, int rates, int seeds) {
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name(name);
  for (int i = 0; i < rates; ++i) {
    request.mutable_specification()->add_learning_rates(0.001 * (i + 1));
  }
  for (int i = 0; i < seeds; ++i) request.mutable_specification()->add_seeds(i);
  const auto response = TryCreate(request);
  return response.ok() ? response->experiment().name() : response.status().ToString();
}

absl::StatusOr<v1::CreateExperimentResponse> TestCoordinator::TryCreate(
    const v1::CreateExperimentRequest& request) {
  return Submit(core_->submissions().PrepareCreation(request));
}

absl::StatusOr<v1::ExtendExperimentResponse> TestCoordinator::Extend(
    const std::string& name, const std::vector<uint64_t>& seeds) {
  v1::ExtendExperimentRequest request;
  request.set_name(name);
  request.mutable_seeds()->Assign(seeds.begin(), seeds.end());
  return Extend(request);
}

absl::StatusOr<v1::ExtendExperimentResponse> TestCoordinator::Extend(
    const v1::ExtendExperimentRequest& request) {
  absl::StatusOr<Extension> prepared = core_->submissions().PrepareExtension(request);
  if (!prepared.ok()) return prepared.status();
  return Do<v1::ExtendExperimentResponse>([&] { return core_->submissions().Extend(*prepared); });
}

absl::StatusOr<v1::CreateExperimentResponse> TestCoordinator::Evaluate(
    const v1::EvaluateTrialRequest& request) {
  return Submit(core_->submissions().PrepareEvaluation(request));
}

absl::StatusOr<v1::CreateExperimentResponse> TestCoordinator::Submit(
    const absl::StatusOr<Submission>& prepared) {
  if (!prepared.ok()) return prepared.status();
  return Await<v1::CreateExperimentResponse>([&](Done<v1::CreateExperimentResponse> done) {
    core_->Submit(std::make_shared<Submission>(*prepared), std::move(done));
  });
}

absl::StatusOr<v1::SummarizeExperimentResponse> TestCoordinator::Summarize(const std::string& name,
                                                                           bool omit_lengths) {
  v1::SummarizeExperimentRequest request;
  request.set_name(name);
  request.set_omit_lengths(omit_lengths);
  return core_->reads().SummarizeExperiment(request);
}

std::vector<v1::Event> TestCoordinator::Completion(const v1::Lease& lease, int trial,
                                                   int64_t sequence, int64_t step) {
  const std::string bytes = absl::StrCat("model of ", lease.trials(trial).trial());
  // If the upload fails, the checkpoint's event is refused.
  Upload(lease, trial, step, bytes).IgnoreError();
  return {CheckpointEvent(lease, trial, sequence, step, bytes),
          OutcomeEvent(lease, trial, sequence + 1, step, v1::Outcome::COMPLETED)};
}

bool TestCoordinator::Complete(const v1::Lease& lease, int trial, int64_t step,
                               const std::vector<double>& accuracies) {
  std::vector<v1::Event> events = Completion(lease, trial, 2, step);
  events.insert(events.begin(), AccuraciesEvent(lease, trial, 1, step, accuracies));
  const auto response = Send(lease, events);
  return response.ok() && response->acknowledged_sequence() == 3;
}

absl::Status TestCoordinator::Register(const std::string& worker, int32_t max_pack_size,
                                       const std::string& experiment, int32_t api_version) {
  v1::WorkerDescription& description = workers_[worker];
  description.set_worker_id(worker);
  description.set_max_pack_size(max_pack_size);
  description.set_api_version(api_version);
  description.set_experiment(experiment);
  // A new process.
  ++sessions_[worker];
  return Later(CallOf(worker)).get().status();
}

absl::Status TestCoordinator::Stop(const std::string& worker) {
  v1::SynchronizeRequest request = CallOf(worker);
  request.set_stopping(true);
  return Later(request).get().status();
}

v1::Lease TestCoordinator::Acquire(const std::string& worker) {
  v1::SynchronizeRequest request = CallOf(worker);
  request.set_wants_lease(true);
  auto response = Later(request).get();
  if (!response.ok() || !response->has_lease()) return v1::Lease();
  Later(CallOf(worker, {response->lease()})).get().status().IgnoreError();
  return std::move(*response->mutable_lease());
}

v1::SynchronizeRequest TestCoordinator::CallOf(const std::string& worker,
                                               const std::vector<v1::Lease>& leases) {
  v1::SynchronizeRequest request;
  *request.mutable_worker() = workers_[worker];
  request.mutable_worker()->set_worker_id(worker);
  request.set_session(absl::StrCat(sessions_[worker]));
  request.set_number(++calls_);
  for (const v1::Lease& lease : leases) {
    v1::HeldLease& held = *request.add_leases();
    held.set_lease_id(lease.lease_id());
    held.set_fencing_token(lease.fencing_token());
  }
  return request;
}

std::future<absl::StatusOr<v1::SynchronizeResponse>> TestCoordinator::Later(
    const v1::SynchronizeRequest& request, std::function<bool()> given_up) {
  auto answer = std::make_shared<std::promise<absl::StatusOr<v1::SynchronizeResponse>>>();
  core_->loop().Synchronize(request, principal_, std::move(given_up),
                            [answer](absl::StatusOr<v1::SynchronizeResponse> response) {
                              answer->set_value(std::move(response));
                            });
  return answer->get_future();
}

absl::StatusOr<v1::SynchronizeResponse> TestCoordinator::Heartbeat(
    const std::string& worker, const std::vector<v1::Lease>& leases) {
  v1::SynchronizeRequest request = CallOf(worker, leases);
  for (const v1::Lease& lease : leases) {
    for (const v1::LeasedTrial& trial : lease.trials()) {
      v1::TrialProgress& progress = *request.add_progress();
      progress.set_trial(trial.trial());
      progress.set_attempt(trial.attempt());
    }
  }
  return Later(request).get();
}

void TestCoordinator::Release(const std::string& worker, const v1::Lease& lease,
                              const std::string& unfit) {
  v1::SynchronizeRequest request = CallOf(worker);
  v1::ReleasedLease& released = *request.add_released();
  released.set_lease_id(lease.lease_id());
  released.set_fencing_token(lease.fencing_token());
  released.set_reason(unfit.empty() ? "draining" : unfit);
  released.set_unfit(!unfit.empty());
  Later(request).get().status().IgnoreError();
}

absl::StatusOr<v1::StreamEventsResponse> TestCoordinator::Send(
    const v1::Lease& lease, const std::vector<v1::Event>& events) {
  v1::StreamEventsRequest request;
  request.set_lease_id(lease.lease_id());
  request.set_fencing_token(lease.fencing_token());
  request.mutable_events()->Assign(events.begin(), events.end());
  return Do<v1::StreamEventsResponse>([&] { return core_->intake().Store(request, principal_); },
                                      static_cast<int64_t>(request.ByteSizeLong()));
}

absl::Status TestCoordinator::Upload(const v1::Lease& lease, int trial, int64_t step,
                                     const std::string& bytes) {
  v1::UploadArtifactRequest::Header header;
  header.set_lease_id(lease.lease_id());
  header.set_fencing_token(lease.fencing_token());
  header.set_trial(lease.trials(trial).trial());
  header.set_sha256(platform::Sha256Hex(bytes));
  header.set_size_bytes(static_cast<int64_t>(bytes.size()));
  header.set_step(step);
  ASSIGN_OR_RETURN(auto writer, core_->artifacts().Write(header, principal_));
  RETURN_IF_ERROR(writer->Append(bytes));
  return writer->Finish();
}

absl::StatusOr<std::string> TestCoordinator::Download(const v1::Lease& lease, int trial,
                                                      const std::string& sha256) {
  v1::DownloadArtifactRequest request;
  request.set_lease_id(lease.lease_id());
  request.set_fencing_token(lease.fencing_token());
  request.set_trial(lease.trials(trial).trial());
  request.set_sha256(sha256);
  auto reader = core_->artifacts().Open(request, principal_);
  if (!reader.ok()) return reader.status();
  std::string bytes;
  while (true) {
    absl::StatusOr<std::string> chunk = (*reader)->Next();
    if (!chunk.ok()) return chunk;
    if (chunk->empty()) return bytes;
    bytes += *chunk;
  }
}

std::vector<v1::Event> TestCoordinator::History(absl::string_view experiment) {
  std::vector<v1::Event> history;
  int64_t start = 0;
  while (true) {
    const auto page = core_->event_log().ReadEvents(experiment, start, 7);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return history;
    history.insert(history.end(), page->events.begin(), page->events.end());
    if (page->at_end) return history;
    start = page->next_position;
  }
}

absl::StatusOr<v1::Experiment> TestCoordinator::Cancel(const std::string& name,
                                                       const std::string& reason) {
  v1::CancelExperimentRequest request;
  request.set_name(name);
  request.set_reason(reason);
  return Await<v1::Experiment>(
      [&](auto done) { PostCancel(*core_, request, "", std::move(done)); });
}

absl::StatusOr<v1::Trial> TestCoordinator::CancelTrial(const std::string& name) {
  v1::CancelTrialRequest request;
  request.set_name(name);
  return Do<v1::Trial>([&] { return core_->experiments().CancelTrial(request, ""); });
}

absl::StatusOr<v1::RetryTrialsResponse> TestCoordinator::Retry(
    const std::string& name, const std::vector<v1::TrialState>& states) {
  v1::RetryTrialsRequest request;
  request.set_name(name);
  for (const v1::TrialState state : states) request.add_states(state);
  return Await<v1::RetryTrialsResponse>(
      [&](auto done) { PostRetry(*core_, request, "ada", std::move(done)); });
}

absl::Status TestCoordinator::Delete(const std::string& name) {
  v1::DeleteExperimentRequest request;
  request.set_name(name);
  return Do<v1::DeleteExperimentResponse>([&] { return core_->experiments().Delete(request); })
      .status();
}

absl::Status TestCoordinator::BackUp(const std::string& name) {
  v1::BackUpRequest request;
  request.set_name(name);
  return core_->backups().BackUp(request, [](const v1::BackUpResponse&) { return true; });
}

namespace {

v1::Event EventOf(const v1::Lease& lease, int trial, int64_t sequence, int64_t step) {
  v1::Event event;
  event.set_trial(lease.trials(trial).trial());
  event.set_attempt(lease.trials(trial).attempt());
  event.set_sequence(sequence);
  event.set_step(step);
  event.mutable_time()->set_seconds(1'700'000'000);
  return event;
}

}  // namespace

v1::Event PointsEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step) {
  v1::Event event = EventOf(lease, trial, sequence, step);
  v1::TrainingPoints& points = *event.mutable_training_points();
  points.add_steps(step);
  points.add_losses(1.0f / static_cast<float>(step));
  points.add_accuracies(0.5f);
  points.add_gradient_norms(2.0f);
  points.add_lengths(7);
  return event;
}

v1::Event CheckpointEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                          const std::string& bytes) {
  v1::Event event = EventOf(lease, trial, sequence, step);
  event.mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  event.mutable_checkpoint()->set_size_bytes(static_cast<int64_t>(bytes.size()));
  return event;
}

v1::Event AccuraciesEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                          const std::vector<double>& accuracies, bool final) {
  v1::Event event = EventOf(lease, trial, sequence, step);
  v1::LengthAccuracies& measured = *event.mutable_length_accuracies();
  measured.set_final(final);
  measured.set_sequences(100);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    measured.add_lengths(static_cast<int32_t>(i + 1));
    measured.add_accuracies(accuracies[i]);
    measured.add_losses(1 - accuracies[i]);
  }
  return event;
}

v1::Event OutcomeEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                       v1::Outcome::Kind kind, const std::string& reason) {
  v1::Event event = EventOf(lease, trial, sequence, step);
  event.mutable_outcome()->set_kind(kind);
  event.mutable_outcome()->set_reason(reason);
  return event;
}

}  // namespace lengthwise::server
