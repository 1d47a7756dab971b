#include "tests/end_to_end/programs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "platform/sha256.h"

namespace lengthwise::end_to_end {
namespace {

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

std::unique_ptr<platform::ChildProcess> StartProcess(std::vector<std::string> arguments,
                                                     std::string output_file) {
  auto process = platform::ChildProcess::Start(
      {.arguments = std::move(arguments), .output_file = std::move(output_file)});
  if (!process.ok()) Fail(process.status().ToString());
  return *std::move(process);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

Server::Server(std::string directory, absl::Duration lease_duration, std::vector<std::string> flags,
               std::string program)
    : directory_(std::move(directory)),
      lease_duration_(lease_duration),
      flags_(std::move(flags)),
      program_(std::move(program)) {
  std::filesystem::create_directories(directory_);
}

void Server::Start() {
  const std::string ready_file = directory_ + "/ready";
  const std::string log = directory_ + "/server.log";
  std::filesystem::remove(ready_file);
  std::vector<std::string> arguments = {program_,
                                        "--listen",
                                        address_.empty() ? "127.0.0.1:0" : address_,
                                        "--metrics_listen",
                                        "127.0.0.1:0",
                                        "--data_dir",
                                        directory_ + "/data",
                                        "--ready_file",
                                        ready_file,
                                        "--lease_duration",
                                        absl::FormatDuration(lease_duration_)};
  if (std::find(flags_.begin(), flags_.end(), "--heartbeat_interval") == flags_.end()) {
    arguments.insert(arguments.end(), {"--heartbeat_interval", "200ms"});
  }
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  process_ = StartProcess(std::move(arguments), log);
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!std::filesystem::exists(ready_file)) {
    // WaitFor returns early only when the process has ended.
    if (auto exit = process_->WaitFor(absl::Milliseconds(10))) {
      Fail(absl::StrCat("the server ", exit->ToString(), ":\n", Contents(log)));
    }
    if (absl::Now() > deadline) Fail("the server did not become ready:\n" + Contents(log));
  }
  std::ifstream ready(ready_file);
  std::getline(ready, address_);
  std::getline(ready, metrics_address_);
  experiments_ = v1::ExperimentService::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
}

void Server::Kill() {
  process_->Signal(SIGKILL);
  if (!process_->WaitFor(kDeadline)) Fail("the server survived SIGKILL");
}

int FreePort(const std::vector<std::string>& hosts) {
  // A port that is free on the first address may be taken on another one.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::vector<int> sockets;
    sockaddr_in address = {.sin_family = AF_INET};
    bool free = true;
    for (const std::string& host : hosts) {
      socklen_t size = sizeof(address);
      sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      free = free && inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1 &&
             bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
             getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
    }
    for (const int one : sockets) close(one);
    if (free) return ntohs(address.sin_port);
  }
  Fail("no port is free on all of the addresses");
}

std::unique_ptr<platform::ChildProcess> StartWorkerFor(const std::string& address,
                                                       const std::string& directory,
                                                       const std::string& program,
                                                       const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {program, "--server",  address, "--device",
                                        "cpu",   "--threads", "1"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return StartProcess(std::move(arguments), directory + "/worker.log");
}

std::unique_ptr<platform::ChildProcess> StartWorker(const Server& server,
                                                    const std::string& directory,
                                                    const std::string& program,
                                                    const std::vector<std::string>& flags) {
  return StartWorkerFor(server.address(), directory, program, flags);
}

std::vector<std::string> ModuleFlags() {
  const char* chosen = std::getenv("LENGTHWISE_PYTHON_NETWORKS");
  const std::string python = chosen == nullptr ? "/usr/bin/python3" : chosen;
  const auto imported =
      platform::ChildProcess::Run({python, "-c", "import torch"}, absl::Minutes(2));
  if (!imported.ok() || !imported->exit.has_value() || !imported->exit->ok()) return {};
  return {"--allow_python_networks", "--python", python};
}

std::string Upload(Server& server, const std::string& bytes) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::UploadDataResponse response;
  const auto writer = server.experiments().UploadData(&context, &response);
  const std::string sha256 = platform::Sha256Hex(bytes);
  v1::UploadDataRequest request;
  request.mutable_header()->set_sha256(sha256);
  request.mutable_header()->set_size_bytes(static_cast<int64_t>(bytes.size()));
  for (size_t first = 0; first < bytes.size(); first += 1 << 16) {
    request.set_data(bytes.substr(first, 1 << 16));
    writer->Write(request);
    request.clear_header();
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) Fail("the upload was rejected: " + status.error_message());
  return sha256;
}

std::string UploadModule(Server& server) {
  const std::string archive =
      absl::StrCat(R"({"lengthwise_network":1,"entry":"net.py","files":{"net.py":")"
                   R"(import torch\n)"
                   R"(class Net(torch.nn.Module):\n)"
                   R"(  def __init__(self, vocabulary, outputs):\n)"
                   R"(    super().__init__()\n)"
                   R"(    self.embedding = torch.nn.Embedding(vocabulary, 16)\n)"
                   R"(    self.norm = torch.nn.BatchNorm1d(16)\n)"
                   R"(    self.dropout = torch.nn.Dropout(0.2)\n)"
                   R"(    self.out = torch.nn.Linear(16, outputs)\n)"
                   R"(  def forward(self, tokens, positions):\n)"
                   R"(    h = self.embedding(tokens).cumsum(1) + 0.1 * positions[..., None]\n)"
                   R"(    h = self.norm(h.transpose(1, 2)).transpose(1, 2)\n)"
                   R"(    return self.out(self.dropout(h).relu())\n)"
                   R"("}})");
  const std::string sha256 = Upload(server, archive);
  return absl::StrCat("{name: python, file: net.py, class: Net, file_sha256: ", sha256,
                      ", file_bytes: ", archive.size(), "}");
}

Result RunProgram(std::vector<std::string> arguments, const std::string& output_file,
                  std::vector<std::pair<std::string, std::string>> environment,
                  const std::function<void(const platform::ChildProcess&)>& started) {
  std::filesystem::remove(output_file);
  auto process = platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                .environment = std::move(environment),
                                                .output_file = output_file});
  if (!process.ok()) return {.output = process.status().ToString()};
  if (started) started(**process);
  const auto exit = (*process)->WaitFor(kDeadline);
  return {exit.has_value() ? exit->code : -1, Contents(output_file)};
}

std::string Submit(Server& server, const std::string& yaml) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(yaml);
  v1::CreateExperimentResponse response;
  const grpc::Status status = server.experiments().CreateExperiment(&context, request, &response);
  if (!status.ok()) Fail("the submission was rejected: " + status.error_message());
  return response.experiment().name();
}

bool Watcher::WatchUntil(const std::function<bool(const v1::Event&)>& enough) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (absl::Now() < deadline) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    // A killed server comes back, so wait for it.
    context.set_wait_for_ready(true);
    v1::WatchExperimentRequest request;
    request.set_name(experiment_);
    request.set_start_position(next_position_);
    auto stream = server_.experiments().WatchExperiment(&context, request);
    v1::WatchExperimentResponse response;
    bool found = false;
    while (!found && stream->Read(&response)) {
      for (const v1::Event& event : response.events()) {
        events_.push_back(event);
        found = found || enough(event);
      }
      next_position_ = response.next_position();
    }
    if (found) {
      context.TryCancel();
      stream->Finish();
      return true;
    }
    const grpc::Status status = stream->Finish();
    if (status.ok()) return false;
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
      Fail("watching failed: " + status.error_message());
    }
  }
  Fail("waited too long for an event");
}

std::vector<std::string> ProcessesWithVariable(const std::string& name, const std::string& value) {
  const std::string wanted = absl::StrCat(name, "=", value, std::string(1, '\0'));
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string process = entry.path().string();
    if (Contents(process + "/environ").find(wanted) == std::string::npos) continue;
    std::string command = Contents(process + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    found.push_back(absl::StrCat(entry.path().filename().string(), ": ", command));
  }
  return found;
}

}  // namespace lengthwise::end_to_end
