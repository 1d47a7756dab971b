#include "server/api/testing/test_server.h"

#include <chrono>
#include <filesystem>
#include <latch>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

absl::StatusOr<specification::Grid> ResolveNumbered(const v1::CreateExperimentRequest& request) {
  ASSIGN_OR_RETURN(specification::Grid grid, ResolveSimply(request));
  for (size_t i = 0; i < grid.trials.size(); ++i) grid.trials[i].id = absl::StrCat("t", i);
  return grid;
}

class GatedStorage final : public Storage {
 public:
  GatedStorage(std::unique_ptr<Storage> storage, std::shared_ptr<ReadGate> gate)
      : storage_(std::move(storage)), gate_(std::move(gate)) {}
  StorageWriter& writer() override { return storage_->writer(); }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override {
    gate_->Pass();
    return storage_->Read();
  }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }

 private:
  const std::unique_ptr<Storage> storage_;
  const std::shared_ptr<ReadGate> gate_;
};

}  // namespace

void ReadGate::Pass() {
  platform::MutexLock lock(mutex_);
  ++reads_;
  while (held_) changed_.Wait(mutex_);
}

void ReadGate::Hold() {
  platform::MutexLock lock(mutex_);
  held_ = true;
}

void ReadGate::Release() {
  platform::MutexLock lock(mutex_);
  held_ = false;
  changed_.NotifyAll();
}

int64_t ReadGate::reads() {
  platform::MutexLock lock(mutex_);
  return reads_;
}

TestServer::TestServer() : TestServer(ResolveNumbered) {}

TestServer::TestServer(GridResolver resolve, const std::function<void(TestCoordinator&)>& prepare)
    : core_(NewDirectory(), /*max_database_bytes=*/0, std::move(resolve)) {
  core_.set_wrap_storage([gate = read_gate_](std::unique_ptr<Storage> storage) {
    return std::make_unique<GatedStorage>(std::move(storage), gate);
  });
  if (prepare) prepare(core_);
  EXPECT_EQ(core_.Open(), absl::OkStatus());
}

TestServer::~TestServer() { read_gate_->Release(); }

void TestServer::Serve(RpcServer::Options options) {
  rpc_ = RpcServer::Start(std::move(options), *core_).value();
}

void TestServer::Close() {
  rpc_.reset();
  core_.Close();
}

void TestServer::Reopen() {
  EXPECT_EQ(core_.Open(), absl::OkStatus());
  Serve();
}

std::shared_ptr<grpc::Channel> TestServer::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(rpc_->address(), grpc::InsecureChannelCredentials(), arguments);
}

std::string TestServer::AddExperiment(const std::string& name, int trials,
                                      const std::string& owner) {
  v1::CreateExperimentRequest request;
  request.set_owner(owner);
  request.mutable_specification()->set_name(name);
  request.mutable_specification()->add_learning_rates(0.001);
  for (int i = 0; i < trials; ++i) request.mutable_specification()->add_seeds(i);
  const std::string experiment = core_.TryCreate(request).value().experiment().name();
  LeaseTrials(experiment, trials);
  return experiment;
}

void TestServer::LeaseTrials(const std::string& experiment, int trials) {
  const std::string worker = absl::StrCat("inside-", ++workers_);
  EXPECT_EQ(core_.Register(worker, trials, experiment), absl::OkStatus());
  const auto lease = std::make_shared<const v1::Lease>(core_.Acquire(worker));
  EXPECT_EQ(lease->trials_size(), trials);
  for (int i = 0; i < lease->trials_size(); ++i) {
    runs_[lease->trials(i).trial()] = {.lease = lease, .place = i, .worker = worker};
  }
}

void TestServer::Append(const std::vector<v1::Event>& events) {
  std::latch stored(static_cast<std::ptrdiff_t>(events.size()));
  for (const v1::Event& event : events) {
    Run& run = runs_.at(event.trial());
    v1::StreamEventsRequest request;
    request.set_lease_id(run.lease->lease_id());
    request.set_fencing_token(run.lease->fencing_token());
    v1::Event& added = *request.add_events();
    added = event;
    added.set_attempt(1);
    added.set_sequence(++run.sequence);
    PostEvents(*core_, request, "anonymous",
               [&stored](const absl::StatusOr<v1::StreamEventsResponse>& response) {
                 // A server that was stopped in between stores nothing.
                 if (response.ok()) {
                   EXPECT_EQ(response->refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED)
                       << response->detail();
                 }
                 stored.count_down();
               });
  }
  stored.wait();
}

void TestServer::EndTrial(const std::string& trial, v1::TrialState state) {
  if (state == v1::CANCELLED) {
    EXPECT_TRUE(core_.CancelTrial(trial).ok());
    return;
  }
  v1::Event event;
  event.set_trial(trial);
  event.set_step(1000);
  if (state == v1::SUCCEEDED) {
    PutModel(trial, 1000, "model");
    event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  } else {
    event.mutable_outcome()->set_kind(v1::Outcome::FAILED_PERMANENTLY);
    event.mutable_outcome()->set_reason("it was told to");
  }
  Append(event);
}

void TestServer::Remove(const std::string& experiment) {
  EXPECT_TRUE(core_.Cancel(experiment).ok());
  EXPECT_EQ(core_.Delete(experiment), absl::OkStatus());
}

void TestServer::SendProgress(const std::string& trial, int64_t done) {
  v1::TrialProgress progress;
  progress.set_trial(trial);
  progress.set_done(done);
  SendProgress({progress});
}

void TestServer::SendProgress(const std::vector<v1::TrialProgress>& progress) {
  const Run& run = runs_.at(progress.front().trial());
  v1::SynchronizeRequest request = core_.CallOf(run.worker, {*run.lease});
  for (const v1::TrialProgress& one : progress) {
    v1::TrialProgress& sent = *request.add_progress();
    sent = one;
    sent.set_attempt(1);
  }
  std::latch answered(1);
  PostCall(*core_, request, "anonymous",
           [&answered](const absl::StatusOr<v1::SynchronizeResponse>& response) {
             EXPECT_EQ(response.status(), absl::OkStatus());
             answered.count_down();
           });
  answered.wait();
}

void TestServer::PutModel(const std::string& trial, int64_t step, const std::string& bytes) {
  const Run& run = runs_.at(trial);
  EXPECT_EQ(core_.Upload(*run.lease, run.place, step, bytes), absl::OkStatus());
  v1::Event event = CheckpointEvent(*run.lease, run.place, 0, step, bytes);
  Append(event);
}

int64_t TestServer::CountFiles(bool finished) const {
  int64_t files = 0;
  const std::filesystem::path artifacts(core_.data_dir() + "/artifacts");
  std::error_code gone;  // deleted while listing
  for (std::filesystem::recursive_directory_iterator entry(artifacts, gone), end;
       !gone && entry != end; entry.increment(gone)) {
    if (!entry->is_regular_file(gone)) continue;
    const std::string name = entry->path().filename();
    if (absl::EndsWith(name, finished ? ".safetensors" : ".tmp")) ++files;
  }
  return files;
}

TestServer::HeldLoop::HeldLoop(TestServer& server)
    : released_(std::make_shared<std::promise<void>>()) {
  std::promise<void> busy;
  server.core().loop().Post<bool>([] { return true; },
                                  [&busy, released = released_](const auto&) {
                                    busy.set_value();
                                    released->get_future().wait();
                                  });
  busy.get_future().wait();
}

void TestServer::HeldLoop::Release() {
  if (!std::exchange(is_released_, true)) released_->set_value();
}

bool TestServer::Await(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace lengthwise::server
