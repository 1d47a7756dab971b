#include "benchmarks/service/server_process.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "proto/experiment_service.grpc.pb.h"

namespace lengthwise::benchmarks {

void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

ServerProcess::ServerProcess(const std::string& program, const std::vector<std::string>& flags) {
  directory_ = (std::filesystem::temp_directory_path() / "lengthwise_benchmark.XXXXXX").string();
  if (mkdtemp(directory_.data()) == nullptr) Fail("cannot make " + directory_);
  const std::string ready = directory_ + "/ready";
  std::vector<std::string> arguments = {
      program, "--listen",   "127.0.0.1:0",        "--metrics_listen",
      "",      "--data_dir", directory_ + "/data", "--ready_file",
      ready};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  auto process = platform::ChildProcess::Start(
      {.arguments = std::move(arguments), .output_file = directory_ + "/server.log"});
  if (!process.ok()) Fail(process.status().ToString());
  process_ = *std::move(process);
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!std::filesystem::exists(ready)) {
    if (process_->WaitFor(absl::Milliseconds(10)) || absl::Now() > deadline) {
      Fail(absl::StrCat("the server did not become ready; see ", directory_, "/server.log"));
    }
  }
  std::ifstream file(ready);
  std::getline(file, address_);
}

ServerProcess::~ServerProcess() {
  process_->Terminate(absl::Seconds(5));
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

std::shared_ptr<grpc::Channel> ServerProcess::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
}

int64_t ServerProcess::MemoryLine(const std::string& name) const {
  std::ifstream file(absl::StrCat("/proc/", process_->pid(), "/status"));
  std::string line;
  int64_t kibibytes = 0;
  while (std::getline(file, line)) {
    if (!absl::StartsWith(line, name)) continue;
    // Example: "VmRSS:\t  12345 kB".
    const std::vector<std::string> columns =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    if (columns.size() > 1 && absl::SimpleAtoi(columns[1], &kibibytes)) return kibibytes << 10;
  }
  Fail("the server ended");
}

double ServerProcess::CpuSeconds() const {
  std::ifstream file(absl::StrCat("/proc/", process_->pid(), "/stat"));
  std::string text;
  std::getline(file, text);
  // The program's name, in parentheses, may contain spaces. utime and stime are fields 14 and 15.
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  int64_t user = 0, system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t ServerProcess::TrafficBytes() const {
  const auto output = platform::ChildProcess::Run({"ss", "-tnpiH"}, absl::Seconds(10));
  if (!output.ok()) Fail("ss: " + output.status().ToString());
  // A line with the owner of each connection, then one with its counters.
  const std::string owner = absl::StrCat("pid=", process_->pid(), ",");
  int64_t bytes = 0;
  bool is_own = false;
  for (const absl::string_view line : absl::StrSplit(output->text, '\n')) {
    if (!absl::StartsWith(line, "\t")) {
      is_own = absl::StrContains(line, owner);
      continue;
    }
    if (!is_own) continue;
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      int64_t count = 0;
      if ((absl::ConsumePrefix(&word, "bytes_sent:") ||
           absl::ConsumePrefix(&word, "bytes_received:")) &&
          absl::SimpleAtoi(word, &count)) {
        bytes += count;
      }
    }
  }
  return bytes;
}

std::string SubmitTrials(const ServerProcess& server, const std::string& name, int trials) {
  const std::string yaml =
      absl::StrCat("name: ", name,
                   "\ntasks: bucket_sort\nencodings: none\nlearning_rates: 0.001\n"
                   "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
                   "training: {steps: 1, lengths: {min: 1, max: 4}}\n"
                   "evaluation: {lengths: [4, 8], sequences: 8}\nseeds: 0..",
                   trials - 1, "\n");
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(yaml);
  grpc::ClientContext context;
  v1::CreateExperimentResponse response;
  const auto stub = v1::ExperimentService::NewStub(server.Connect());
  const grpc::Status status = stub->CreateExperiment(&context, request, &response);
  if (!status.ok()) Fail("the submission was rejected: " + status.error_message());
  return response.experiment().name();
}

double Quantile(std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1,
                           static_cast<size_t>(fraction * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace lengthwise::benchmarks
