// Runs Prometheus' own tool on the configuration, the rules and their test cases.
//
// promtool is in Debian's package prometheus; tests/run.sh installs it.
#include <regex>
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
  ExpectOk({"test", "rules", std::string(kDirectory) + "rules_test.yml"});
}

TEST_F(PrometheusRulesTest, EveryRuleHasACase) {
  const std::string cases = ReadText(std::string(kDirectory) + "rules_test.yml");
  int names = 0;
  for (const char* file : {"alerts.yml", "recording_rules.yml"}) {
    for (const std::string& name :
         NamesBehind(ReadText(std::string(kDirectory) + file), {"- alert: ", "- record: "})) {
      ++names;
      // Rules with a threshold are tested through their alert.
      const bool through_alert = name == "instance:lengthwise_disk_free:ratio";
      // The latency of calls has the same form as that of commits.
      const bool alike = name == "instance_method:lengthwise_rpc_seconds:p99_5m";
      if (through_alert || alike) continue;
      EXPECT_NE(cases.find(name), std::string::npos) << name;
    }
  }
  EXPECT_GE(names, 15);
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
        v1::ListWorkersRequest::descriptor()->file(), v1::HeartbeatRequest::descriptor()->file()}) {
    ASSERT_EQ(file->service_count(), 1) << file->name();
    const google::protobuf::ServiceDescriptor& service = *file->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service.method(i);
      const bool streams_or_waits =
          method.client_streaming() || method.server_streaming() || method.name() == "AcquireLease";
      streams += streams_or_waits ? 1 : 0;
      EXPECT_EQ(std::regex_match(service.name() + "/" + method.name(), left_out), streams_or_waits)
          << method.full_name();
    }
  }
  EXPECT_GE(streams, 8);
}

}  // namespace
}  // namespace lengthwise::monitoring_test
