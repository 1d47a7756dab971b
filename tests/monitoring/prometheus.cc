#include "tests/monitoring/prometheus.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/programs.h"
#include "tests/monitoring/command.h"

namespace lengthwise::monitoring_test {
namespace {

// Jobs and rules as in deploy/prometheus/prometheus.yml, with shorter intervals.
constexpr char kConfiguration[] = R"(
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: ["%s/recording_rules.yml", "%s/alerts.yml"]
scrape_configs:
  - job_name: lengthwise
    static_configs: [{targets: ["%s"]}]
  - job_name: lengthwise_worker
    static_configs: [{targets: ["%s"]}]
)";

}  // namespace

Prometheus::Prometheus(const std::string& directory, const std::string& server_metrics,
                       const std::string& worker_metrics) {
  const std::string rules = std::filesystem::absolute("deploy/prometheus");
  const std::string configuration = absl::StrCat(directory, "/prometheus.yml");
  const std::string log = absl::StrCat(directory, "/prometheus.log");
  std::ofstream(configuration) << absl::StrFormat(kConfiguration, rules, rules, server_metrics,
                                                  worker_metrics);
  auto process = platform::ChildProcess::Start(
      {.arguments = {FindProgram("prometheus"), absl::StrCat("--config.file=", configuration),
                     absl::StrCat("--storage.tsdb.path=", directory, "/tsdb"),
                     "--web.listen-address=127.0.0.1:0"},
       .output_file = log});
  const absl::Time deadline = absl::Now() + end_to_end::kDeadline;
  std::string text;
  while (process.ok() && absl::Now() < deadline && !(*process)->WaitFor(absl::Milliseconds(20))) {
    text = ReadText(log);
    if (!absl::StrContains(text, "Server is ready to receive web requests")) continue;
    const std::string before = "msg=\"Listening on\" address=";
    const size_t start = text.find(before) + before.size();
    url_ = absl::StrCat("http://", text.substr(start, text.find('\n', start) - start));
    process_ = *std::move(process);
    return;
  }
  std::fprintf(stderr, "Prometheus did not become ready: %s\n", text.c_str());
  std::abort();
}

}  // namespace lengthwise::monitoring_test
