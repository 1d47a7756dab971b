#include "tests/monitoring/small_run.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "monitoring/testing/scrape.h"

namespace lengthwise::monitoring_test {
namespace {

// Two trials: one trains for a second, the other until the test stops it.
constexpr char kSpecification[] = R"(
name: NAME
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 32}
encodings: ENCODING
learning_rates: RATE
seeds: SEEDS
training:
  steps: STEPS
  batch_size: 16
  lengths: {min: 1, max: 10}
  report_every_steps: 10
  checkpoint_every_steps: 50
evaluation:
  lengths: 5..40 step 5
  sequences: 16
  every_steps: 40
)";

std::string Specification(const std::string& name, const std::string& encoding,
                          const std::string& rate, int seeds, int64_t steps) {
  std::string text = kSpecification;
  const std::pair<std::string, std::string> values[] = {{"NAME", name},
                                                        {"ENCODING", encoding},
                                                        {"RATE", rate},
                                                        {"SEEDS", absl::StrCat(seeds)},
                                                        {"STEPS", absl::StrCat(steps)}};
  for (const auto& [key, value] : values) text.replace(text.find(key), key.size(), value);
  return text;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

}  // namespace

SmallRun::SmallRun(const std::string& directory)
    : server_(absl::StrCat(directory, "/server"), absl::Seconds(10)) {
  server_.Start();
  end_to_end::Submit(server_, Specification("short", "rope", "0.001", 1, 60));
  end_to_end::Submit(server_, Specification("diverging", "rope", "1e30", 1, 100));
  const std::string name =
      end_to_end::Submit(server_, Specification("long", "sin_cos", "0.001", 3, 1'000'000));
  experiment_ = name.substr(name.rfind('/') + 1);
  const std::string log = absl::StrCat(directory, "/worker.log");
  auto worker = platform::ChildProcess::Start(
      {.arguments = {end_to_end::kWorker, "--server", server_.address(), "--device", "cpu",
                     "--threads", "1", "--worker_id", "small-run", "--metrics_listen",
                     "127.0.0.1:0", "--spool_dir", absl::StrCat(directory, "/spool")},
       .output_file = log});
  if (!worker.ok()) Fail(worker.status().ToString());
  worker_ = *std::move(worker);
  Await("the worker's endpoint", [&] {
    const std::string text = Contents(log);
    const std::string before = "metrics on http://";
    const size_t start = text.find(before);
    const size_t end = text.find("/metrics", start);
    if (start == std::string::npos || end == std::string::npos) return false;
    worker_metrics_ = text.substr(start + before.size(), end - start - before.size());
    return true;
  });
  Await("an evaluation of the running trial", [&] {
    const std::string text = monitoring::Scrape(server_metrics());
    return absl::StrContains(
               text, absl::StrCat("lengthwise_trial_accuracy{experiment=\"", experiment_)) &&
           absl::StrContains(
               text, absl::StrCat("lengthwise_trial_left_seconds{experiment=\"", experiment_));
  });
  // Metrics show what was measured last: a minute after the start, or now for a client.
  ListExperiments();
}

void SmallRun::ListExperiments() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::ListExperimentsRequest request;
  request.set_include_usage(true);
  v1::ListExperimentsResponse response;
  const grpc::Status status = server_.experiments().ListExperiments(&context, request, &response);
  if (!status.ok()) Fail("the experiments were not listed: " + status.error_message());
}

void SmallRun::Await(const std::string& what, const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + end_to_end::kDeadline;
  while (!done()) {
    if (absl::Now() > deadline) Fail(absl::StrCat("waited too long for ", what));
    // Waits; returns early only if the worker has ended.
    if (worker_->WaitFor(absl::Milliseconds(50))) Fail("the worker ended");
  }
}

}  // namespace lengthwise::monitoring_test
