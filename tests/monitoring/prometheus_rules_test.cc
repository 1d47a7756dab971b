// Runs Prometheus' own tool on the configuration, the rules and their test cases.
//
// promtool is in Debian's package prometheus; tests/run.sh installs it.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/catalogue_service.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"
#include "tests/monitoring/command.h"

namespace lengthwise::monitoring_test {
namespace {

constexpr char kDirectory[] = "deploy/prometheus/";

// The alerts that a case expects to fire, "alertname: NAME", then "exp_alerts:", and later not.
std::set<std::string> ResolvedAlerts(const std::string& cases) {
  std::set<std::string> firing, resolved;
  std::string alert;
  std::istringstream lines(cases + "\n\n");
  for (std::string line; std::getline(lines, line);) {
    if (!alert.empty() && NamesBehind(line, {"exp_alerts:"}) == std::vector<std::string>{""}) {
      firing.insert(alert);
    } else if (firing.contains(alert)) {
      resolved.insert(alert);
    }
    const std::vector<std::string> name = NamesBehind(line, {"alertname: "});
    alert = name.empty() ? "" : name.front();
    if (!NamesBehind(line, {"- name: "}).empty()) firing.clear();
  }
  return resolved;
}

// True if the expression has the metric itself, not one with a longer name.
bool HasMetric(const std::string& expression, const std::string& metric) {
  return std::regex_search(expression, std::regex("(^|[^\\w:])" + metric + "($|[^\\w:])"));
}

class PrometheusRulesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (FindProgram("promtool").empty()) {
      GTEST_SKIP() << "promtool is not installed; it is in Debian's package prometheus, which "
                      "tests/run.sh installs";
    }
  }

  static void ExpectOk(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FindProgram("promtool"));
    const CommandResult result = RunCommand(arguments);
    EXPECT_TRUE(result.ok) << result.output;
  }
};

TEST_F(PrometheusRulesTest, ConfigurationIsValid) {
  ExpectOk({"check", "config", std::string(kDirectory) + "prometheus.yml"});
}

TEST_F(PrometheusRulesTest, RulesAreValid) {
  ExpectOk({"check", "rules", "--lint-fatal", std::string(kDirectory) + "recording_rules.yml",
            std::string(kDirectory) + "alerts.yml"});
}

TEST_F(PrometheusRulesTest, RulesPassTheirCases) {
  ExpectOk({"test", "rules", std::string(kDirectory) + "rules_test.yml",
            std::string(kDirectory) + "rules_hours_test.yml"});
}

TEST_F(PrometheusRulesTest, EveryRuleHasACase) {
  const std::string directory = kDirectory;
  const std::string cases =
      ReadText(directory + "rules_test.yml") + ReadText(directory + "rules_hours_test.yml");
  const std::set<std::string> resolved = ResolvedAlerts(cases);
  const std::vector<std::string> alerts =
      NamesBehind(ReadText(directory + "alerts.yml"), {"- alert: "});
  for (const std::string& alert : alerts) EXPECT_TRUE(resolved.contains(alert)) << alert;
  // tests/documentation/check_links.py follows them.
  EXPECT_EQ(NamesBehind(ReadText(directory + "alerts.yml"), {"runbook_url: "}).size(),
            alerts.size());
  const std::vector<std::string> expressions = NamesBehind(cases, {"expr: "});
  const std::vector<std::string> metrics =
      NamesBehind(ReadText(directory + "recording_rules.yml"), {"- record: "});
  for (const std::string& metric : metrics) {
    // Rules with a threshold are tested through their alert.
    const bool through_alert = metric == "instance:lengthwise_disk_free:ratio";
    // The latency of calls has the same form as that of commits.
    const bool alike = metric == "instance_method:lengthwise_rpc_seconds:p99_5m";
    if (through_alert || alike) continue;
    EXPECT_TRUE(
        std::any_of(expressions.begin(), expressions.end(),
                    [&](const std::string& expression) { return HasMetric(expression, metric); }))
        << metric;
  }
  EXPECT_GE(alerts.size() + metrics.size(), 15u);
}

TEST(RuleNamesTest, OnlyWholeNamesCount) {
  EXPECT_EQ(ResolvedAlerts("# alertname: Down\n  - eval_time: 1m\n    alertname: Silent\n"
                           "  - eval_time: 2m\n    alertname: DownAgain\n    exp_alerts:\n"
                           "  - eval_time: 2m\n    alertname: StillDown\n    exp_alerts:\n"
                           "  - eval_time: 3m\n    alertname: DownAgain\n"),
            std::set<std::string>{"DownAgain"});
  EXPECT_TRUE(HasMetric("round(instance:steps:rate1m, 0.1)", "instance:steps:rate1m"));
  EXPECT_FALSE(HasMetric("instance:steps:rate1m_old", "instance:steps:rate1m"));
  EXPECT_FALSE(HasMetric("worker_instance:steps:rate1m", "instance:steps:rate1m"));
}

TEST(RecordingRulesTest, LatenciesExcludeLongCalls) {
  const std::string rules = ReadText(std::string(kDirectory) + "recording_rules.yml");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(rules, found, std::regex("method!~\"([^\"]*)\"")));
  const std::regex left_out(found[1].str());
  int streams = 0;
  for (const google::protobuf::FileDescriptor* file :
       {v1::CreateTokenRequest::descriptor()->file(), v1::BackUpRequest::descriptor()->file(),
        v1::CatalogueEntry::descriptor()->file(), v1::GetTrialRequest::descriptor()->file(),
        v1::ListWorkersRequest::descriptor()->file(),
        v1::SynchronizeRequest::descriptor()->file()}) {
    ASSERT_EQ(file->service_count(), 1) << file->name();
    const google::protobuf::ServiceDescriptor& service = *file->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service.method(i);
      const bool streams_or_waits =
          method.client_streaming() || method.server_streaming() || method.name() == "Synchronize";
      streams += streams_or_waits ? 1 : 0;
      EXPECT_EQ(std::regex_match(service.name() + "/" + method.name(), left_out), streams_or_waits)
          << method.full_name();
    }
  }
  EXPECT_GE(streams, 8);
}

}  // namespace
}  // namespace lengthwise::monitoring_test
