#include "tests/faults/fleet.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "server/storage/testing/s3_test_store.h"

namespace lengthwise::faults {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

std::unique_ptr<platform::ChildProcess> Start(std::vector<std::string> arguments,
                                              const Environment& environment, std::string log) {
  auto process = platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                .environment = environment,
                                                .output_file = std::move(log)});
  if (!process.ok()) Fail(process.status().ToString());
  return *std::move(process);
}

// The contents of a file; empty if it does not exist.
std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Ended(v1::TrialState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED;
}

// The server's --artifacts.
std::string PlaceOf(const std::string& directory) {
  if (server::TestsRunOnS3()) return server::NewS3Place();
  if (std::getenv("LENGTHWISE_TEST_SHARED_PATH") == nullptr) return "";
  return std::filesystem::absolute(directory + "/store").string();
}

}  // namespace

bool AllEnded(const std::vector<v1::Trial>& trials) {
  return std::all_of(trials.begin(), trials.end(),
                     [](const v1::Trial& trial) { return Ended(trial.state()); });
}

Fleet::Fleet(Options options)
    : options_(std::move(options)), artifacts_(PlaceOf(options_.directory)) {
  std::filesystem::create_directories(options_.directory);
}

bool Fleet::StartServer(const Environment& environment) {
  const std::string ready_file = options_.directory + "/ready";
  const std::string log = options_.directory + "/server.log";
  std::filesystem::remove(ready_file);
  const absl::Time deadline = absl::Now() + kPatience;
  while (!std::filesystem::exists(ready_file)) {
    const size_t logged = Contents(log).size();
    std::vector<std::string> command = {options_.server_program,
                                        "--listen",
                                        address_.empty() ? "127.0.0.1:0" : address_,
                                        "--metrics_listen",
                                        "127.0.0.1:0",
                                        "--data_dir",
                                        data_directory(),
                                        "--ready_file",
                                        ready_file,
                                        "--heartbeat_interval",
                                        absl::FormatDuration(options_.heartbeat_interval),
                                        "--lease_duration",
                                        absl::FormatDuration(options_.lease_duration)};
    if (!artifacts_.empty()) command.insert(command.end(), {"--artifacts", artifacts_});
    Environment with_store = environment;
    if (server::TestsRunOnS3()) {
      const server::S3Options s3 = server::S3TestStore().value();
      command.insert(command.end(), {"--s3_endpoint", s3.endpoint});
      with_store.insert(with_store.end(),
                        {{"AWS_ACCESS_KEY_ID", s3.credentials.access_key_id},
                         {"AWS_SECRET_ACCESS_KEY", s3.credentials.secret_access_key}});
    }
    server_ = Start(std::move(command), with_store, log);
    // WaitFor returns early only when the process has ended.
    bool has_ended = false;
    while (!has_ended && !std::filesystem::exists(ready_file)) {
      has_ended = server_->WaitFor(absl::Milliseconds(5)).has_value();
      if (absl::Now() > deadline) Fail("the server did not become ready; see its log, " + log);
    }
    if (!has_ended) break;
    // While no server held the port, the kernel may have given it to another connection.
    if (Contents(log).find("cannot listen on", logged) == std::string::npos) return false;
    absl::SleepFor(absl::Milliseconds(100));
  }
  if (address_.empty()) {
    std::ifstream ready(ready_file);
    std::getline(ready, address_);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    // Fleets of one test program must not share connections.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::ExperimentService::NewStub(channel);
    channel_ = channel;
  }
  return true;
}

void Fleet::StartWorker(int index, const Environment& environment) {
  if (workers_.size() <= static_cast<size_t>(index)) workers_.resize(index + 1);
  workers_[index].reset();
  std::vector<std::string> command = options_.worker_command;
  for (const std::string& argument :
       {std::string("--server"), address_, std::string("--worker_id"), absl::StrCat("w", index)}) {
    command.push_back(argument);
  }
  workers_[index] = Start(std::move(command), environment, options_.directory + "/workers.log");
}

void Fleet::KillServer() {
  server_->Signal(SIGKILL);
  if (!server_->WaitFor(kPatience)) Fail("the server survived SIGKILL");
  server_.reset();
}

void Fleet::KillWorker(int index) { workers_[index].reset(); }

platform::ChildProcess::Exit Fleet::TerminateServer() {
  const auto exit = server_->Terminate(kPatience);
  if (exit.signal == SIGKILL) ++deaths_;
  server_.reset();
  return exit;
}

platform::ChildProcess::Exit Fleet::TerminateWorker(int index) {
  const auto exit = workers_[index]->Terminate(kPatience);
  if (exit.signal == SIGKILL) ++deaths_;
  workers_[index].reset();
  return exit;
}

int Fleet::Revive(absl::Duration pace) {
  int found = 0;
  if (server_ == nullptr || server_->WaitFor(pace).has_value()) {
    if (server_ != nullptr) ++found;
    if (!StartServer()) Fail("the server did not restart; see " + options_.directory);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i] == nullptr || !workers_[i]->Poll().has_value()) continue;
    ++found;
    StartWorker(static_cast<int>(i));
  }
  deaths_ += found;
  return found;
}

grpc::Status Fleet::Call(
    const std::function<grpc::Status(v1::ExperimentService::Stub&, grpc::ClientContext&)>& call) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    if (stub_ != nullptr) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
      const grpc::Status status = call(*stub_, context);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return status;
    }
    Revive();
  }
  return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                      "the server was unavailable for too long");
}

std::vector<v1::Trial> Fleet::Trials(const std::string& experiment) {
  std::vector<v1::Trial> trials;
  v1::ListTrialsRequest request;
  request.set_parent(experiment);
  request.set_page_size(1000);
  do {
    v1::ListTrialsResponse response;
    const grpc::Status status =
        Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
          return stub.ListTrials(&context, request, &response);
        });
    if (!status.ok()) Fail("listing trials: " + status.error_message());
    trials.insert(trials.end(), response.trials().begin(), response.trials().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return trials;
}

bool Fleet::AwaitTrials(const std::string& experiment,
                        const std::function<bool(const std::vector<v1::Trial>&)>& done,
                        absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!done(Trials(experiment))) {
    if (absl::Now() > deadline) return false;
    Revive(/*pace=*/absl::Milliseconds(30));
  }
  return true;
}

std::string Fleet::Submit(const std::string& yaml, const std::string& request_id) {
  v1::CreateExperimentRequest request;
  request.set_request_id(request_id);
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(yaml);
  v1::CreateExperimentResponse response;
  const grpc::Status status =
      Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
        return stub.CreateExperiment(&context, request, &response);
      });
  if (!status.ok()) Fail("the submission was rejected: " + status.error_message());
  return response.experiment().name();
}

std::vector<v1::Event> Fleet::Log(const std::string& experiment) {
  std::vector<v1::Event> log;
  v1::WatchExperimentRequest request;
  request.set_name(experiment);
  const grpc::Status status =
      Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
        log.clear();
        const auto stream = stub.WatchExperiment(&context, request);
        v1::WatchExperimentResponse response;
        while (stream->Read(&response)) {
          log.insert(log.end(), response.events().begin(), response.events().end());
        }
        return stream->Finish();
      });
  if (!status.ok()) Fail("watching failed: " + status.error_message());
  return log;
}

std::vector<std::string> Fleet::Experiments() {
  v1::ListExperimentsRequest request;
  request.set_page_size(1000);
  v1::ListExperimentsResponse response;
  const grpc::Status status =
      Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
        return stub.ListExperiments(&context, request, &response);
      });
  if (!status.ok()) Fail("listing experiments: " + status.error_message());
  std::vector<std::string> names;
  for (const v1::Experiment& experiment : response.experiments()) {
    names.push_back(experiment.name());
  }
  return names;
}

}  // namespace lengthwise::faults
