// Checks Grafana's dashboards without Grafana: they match their generator, follow Grafana's JSON
// model and its linter's rules, and every query returns data from a real Prometheus that scrapes
// the real server during training.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/monitoring/command.h"
#include "tests/monitoring/prometheus.h"
#include "tests/monitoring/small_run.h"

namespace lengthwise::monitoring_test {
namespace {

std::vector<std::string> WithDashboards(std::vector<std::string> arguments) {
  for (const char* name : {"experiment", "overview", "service", "workers"}) {
    arguments.push_back(absl::StrCat("deploy/grafana/dashboards/", name, ".json"));
  }
  return arguments;
}

void ExpectOk(const std::vector<std::string>& arguments) {
  const CommandResult result = RunCommand(arguments);
  EXPECT_TRUE(result.ok) << result.output;
}

TEST(DashboardsTest, FollowGrafanasModelAndLinter) {
  ExpectOk(WithDashboards({"/usr/bin/python3", "tests/monitoring/check_dashboards.py", "METRICS.md",
                           "deploy/prometheus/recording_rules.yml"}));
}

TEST(DashboardsTest, EveryPanelShowsDataOfARealRun) {
  if (FindProgram("prometheus").empty()) {
    GTEST_SKIP() << "prometheus is not installed; tests/run.sh installs Debian's package";
  }
  SmallRun run(testing::TempDir());
  const Prometheus prometheus(testing::TempDir(), run.server_metrics(), run.worker_metrics());
  // The latency of calls is that of calls between two scrapes.
  std::atomic<bool> ended = false;
  std::thread caller([&] {
    for (; !ended; absl::SleepFor(absl::Milliseconds(500))) run.ListExperiments();
  });
  ExpectOk(
      WithDashboards({"/usr/bin/python3", "tests/monitoring/check_panels.py", prometheus.url()}));
  ended = true;
  caller.join();
}

}  // namespace
}  // namespace lengthwise::monitoring_test
