// Scrapes a real endpoint over HTTP.
#include "server/monitoring/endpoint.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/monitoring/scrape.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Coordinator::Statistics SomeStatistics() {
  Coordinator::Statistics statistics;
  statistics.trials.set_queued(5);
  statistics.trials.set_running(4);
  statistics.trials.set_succeeded(3);
  statistics.trials.set_failed(2);
  statistics.trials.set_cancelled(1);
  statistics.leases = 6;
  statistics.lease_expiries = 7;
  statistics.workers_alive = 8;
  statistics.events_stored = 9;
  statistics.points_stored = 10;
  statistics.commits = 11;
  statistics.commit_seconds = 0.5;
  statistics.oldest_queued_seconds = 12.5;
  statistics.model_steps_per_second = 13.5;
  statistics.steps_per_second = 4.5;
  statistics.database_bytes = 14;
  return statistics;
}

TEST(MonitoringEndpoint, ServesTheStatisticsWithTypesAndHelp) {
  FakeCoordinator coordinator;
  coordinator.set_statistics(SomeStatistics());
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", "1.2.3", coordinator).value();
  const std::string text = Scrape(endpoint->address());
  const struct {
    const char* name;
    const char* type;
    const char* line;
  } expected[] = {
      {"lengthwise_trials", "gauge", "lengthwise_trials{state=\"queued\"} 5\n"},
      {"lengthwise_trials", "gauge", "lengthwise_trials{state=\"running\"} 4\n"},
      {"lengthwise_trials", "gauge", "lengthwise_trials{state=\"succeeded\"} 3\n"},
      {"lengthwise_trials", "gauge", "lengthwise_trials{state=\"failed\"} 2\n"},
      {"lengthwise_trials", "gauge", "lengthwise_trials{state=\"cancelled\"} 1\n"},
      {"lengthwise_leases", "gauge", "lengthwise_leases 6\n"},
      {"lengthwise_lease_expiries_total", "counter", "lengthwise_lease_expiries_total 7\n"},
      {"lengthwise_workers_alive", "gauge", "lengthwise_workers_alive 8\n"},
      {"lengthwise_events_stored_total", "counter", "lengthwise_events_stored_total 9\n"},
      {"lengthwise_points_stored_total", "counter", "lengthwise_points_stored_total 10\n"},
      {"lengthwise_commits_total", "counter", "lengthwise_commits_total 11\n"},
      {"lengthwise_commit_seconds", "summary", "lengthwise_commit_seconds_count 11\n"},
      {"lengthwise_commit_seconds", "summary", "lengthwise_commit_seconds_sum 0.5\n"},
      {"lengthwise_queue_oldest_seconds", "gauge", "lengthwise_queue_oldest_seconds 12.5\n"},
      {"lengthwise_worker_model_steps_per_second", "gauge",
       "lengthwise_worker_model_steps_per_second 13.5\n"},
      {"lengthwise_worker_steps_per_second", "gauge", "lengthwise_worker_steps_per_second 4.5\n"},
      {"lengthwise_database_bytes", "gauge", "lengthwise_database_bytes 14\n"},
      {"lengthwise_build_info", "gauge", "lengthwise_build_info{version=\"1.2.3\"} 1\n"},
  };
  for (const auto& metric : expected) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("# HELP ", metric.name, " ")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("# TYPE ", metric.name, " ", metric.type, "\n")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", metric.line)));
  }
}

TEST(MonitoringEndpoint, EveryScrapeReadsAnew) {
  FakeCoordinator coordinator;
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", "1", coordinator).value();
  EXPECT_THAT(Scrape(endpoint->address()), HasSubstr("\nlengthwise_leases 0\n"));
  coordinator.set_statistics(SomeStatistics());
  EXPECT_THAT(Scrape(endpoint->address()), HasSubstr("\nlengthwise_leases 6\n"));
}

TEST(MonitoringEndpoint, APortInUseIsSaid) {
  FakeCoordinator coordinator;
  const auto first = MonitoringEndpoint::Start("127.0.0.1:0", "1", coordinator).value();
  const absl::Status status =
      MonitoringEndpoint::Start(first->address(), "1", coordinator).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("cannot serve metrics on ", first->address())));
}

TEST(RpcMetrics, CallsAreCountedByMethodAndCodeAndOpenStreamsWhileTheyAreOpen) {
  FakeCoordinator coordinator;
  coordinator.AddExperiment("experiments/a-1", 1);
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", "1", coordinator).value();
  RpcServer::Options options;
  options.interceptors.push_back(endpoint->rpc_metrics().Interceptor());
  const auto server = RpcServer::Start(std::move(options), coordinator).value();
  const auto stub = v1::ExperimentService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));

  v1::GetExperimentRequest request;
  v1::Experiment experiment;
  for (const char* name : {"experiments/a-1", "experiments/b-1", "experiments/b-2"}) {
    grpc::ClientContext context;
    request.set_name(name);
    stub->GetExperiment(&context, request, &experiment);
  }
  grpc::ClientContext watch_context;
  v1::WatchExperimentRequest watch;
  watch.set_name("experiments/a-1");
  const auto stream = stub->WatchExperiment(&watch_context, watch);
  v1::WatchExperimentResponse response;
  ASSERT_TRUE(stream->Read(&response));

  const std::string open = Scrape(endpoint->address());
  EXPECT_THAT(open, HasSubstr("# TYPE lengthwise_rpc_seconds histogram\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_seconds_count{code=\"OK\",method=\"ExperimentService/"
                              "GetExperiment\"} 1\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_seconds_count{code=\"NOT_FOUND\",method="
                              "\"ExperimentService/GetExperiment\"} 2\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_open_streams{method=\"ExperimentService/"
                              "WatchExperiment\"} 1\n"));
  EXPECT_THAT(open, Not(HasSubstr("method=\"ExperimentService/WatchExperiment\",le=")));

  server->Stop(absl::Seconds(30));
  const std::string ended = Scrape(endpoint->address());
  EXPECT_THAT(ended, HasSubstr("lengthwise_rpc_open_streams{method=\"ExperimentService/"
                               "WatchExperiment\"} 0\n"));
  EXPECT_THAT(ended, HasSubstr("lengthwise_rpc_seconds_count{code=\"UNAVAILABLE\",method="
                               "\"ExperimentService/WatchExperiment\"} 1\n"));
}

TEST(RpcMetrics, LabelsAreBounded) {
  EXPECT_EQ(MethodLabel("/lengthwise.v1.WorkerService/Heartbeat"), "WorkerService/Heartbeat");
  EXPECT_EQ(MethodLabel("/grpc.health.v1.Health/Check"), "other");
  EXPECT_EQ(MethodLabel("whatever"), "other");
  EXPECT_EQ(CodeLabel(grpc::StatusCode::OK), "OK");
  EXPECT_EQ(CodeLabel(grpc::StatusCode::RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED");
}

}  // namespace
}  // namespace lengthwise::server
