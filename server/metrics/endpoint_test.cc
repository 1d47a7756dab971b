// Scrapes a real endpoint over HTTP.
#include "server/metrics/endpoint.h"

#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "gtest/gtest.h"
#include "monitoring/samples.h"
#include "monitoring/testing/scrape.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "proto/experiment_service.grpc.pb.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"
#include "server/security/audit_log.h"
#include "server/security/token_store.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A trial of the experiment "e-1" that trains.
RunningTrial SomeTrial(const std::string& id) {
  RunningTrial trial = {.experiment_id = "e-1",
                        .trial_id = id,
                        .worker = "w1",
                        .task = "parity",
                        .network = "transformer",
                        .encoding = "rope"};
  trial.progress.set_phase(v1::TrialProgress::TRAINING);
  trial.progress.set_done(30);
  trial.progress.set_total(40);
  trial.progress.set_loss(0.5);
  trial.progress.set_seconds_left(90);
  trial.unseen_accuracy = 0.25;
  trial.accuracies = {{"01-05", 1}, {"06-10", 0.75}};
  return trial;
}

Statistics SomeStatistics() {
  Statistics statistics;
  statistics.trials.set_queued(5);
  statistics.trials.set_running(4);
  statistics.trials.set_succeeded(3);
  statistics.trials.set_failed(2);
  statistics.trials.set_cancelled(1);
  statistics.running_trials = {SomeTrial("t1")};
  statistics.running_experiments["e-1"].set_failed(17);
  statistics.leases = 6;
  statistics.wanted_workers = {{1, 60}, {30, 4}};
  statistics.unfit_workers = 1;
  statistics.drained_workers = 2;
  statistics.queue_paused = true;
  statistics.lease_expiries = 7;
  statistics.lost_workers = 8;
  statistics.lease_trials = monitoring::EmptyHistogram({2});
  monitoring::Observe(3, statistics.lease_trials);
  statistics.decided.decisions["trial_started"] = 21;
  statistics.decided.retries["preemption"] = 22;
  statistics.decided.failures["loss_not_finite"] = 23;
  statistics.events_stored = 9;
  statistics.points_stored = 10;
  statistics.commit_seconds = monitoring::EmptyHistogram({0.5, 1});
  monitoring::Observe(0.25, statistics.commit_seconds);
  monitoring::Observe(2, statistics.commit_seconds);
  statistics.commit_commands = statistics.commit_events = monitoring::EmptyHistogram({10});
  monitoring::Observe(11, statistics.commit_commands);
  monitoring::Observe(12, statistics.commit_events);
  statistics.commit_failures = 15;
  statistics.oldest_queued_seconds = 12.5;
  statistics.example_files_stored = 25;
  statistics.example_bytes_stored = 26;
  statistics.database_bytes = 14;
  statistics.last_backup_seconds = 16;
  statistics.last_backup_failed = true;
  statistics.disk_free_bytes = 18;
  statistics.disk_size_bytes = 19;
  statistics.disk_full = true;
  v1::OwnerUsage& owner = statistics.owners.emplace_back();
  owner.set_owner("ada");
  owner.set_bytes(27);
  owner.set_trials(28);
  owner.set_steps(29);
  owner.set_worker_seconds(30.5);
  monitoring::WorkerSample& worker = statistics.workers.emplace_back();
  worker.worker_id = "w1";
  worker.provenance.set_device("cpu");
  worker.max_pack_size = 30;
  worker.measurements.set_steps(24);
  return statistics;
}

TEST(MonitoringEndpoint, ServesStatisticsWithTypesAndHelp) {
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics).value();
  const std::string text = monitoring::Scrape(endpoint->address());
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
      {"lengthwise_wanted_workers", "gauge", "lengthwise_wanted_workers{pack_size=\"1\"} 60\n"},
      {"lengthwise_wanted_workers", "gauge", "lengthwise_wanted_workers{pack_size=\"30\"} 4\n"},
      {"lengthwise_experiment_trials", "gauge",
       "lengthwise_experiment_trials{experiment=\"e-1\",state=\"failed\"} 17\n"},
      {"lengthwise_trial_info", "gauge",
       "lengthwise_trial_info{experiment=\"e-1\",trial=\"t1\",worker=\"w1\",task=\"parity\","
       "network=\"transformer\",encoding=\"rope\"} 1\n"},
      {"lengthwise_trial_progress_ratio", "gauge",
       "lengthwise_trial_progress_ratio{experiment=\"e-1\",trial=\"t1\",phase=\"training\"} "
       "0.75\n"},
      {"lengthwise_trial_progress_ratio", "gauge",
       "lengthwise_trial_progress_ratio{experiment=\"e-1\",trial=\"t1\",phase=\"evaluation\"} "
       "0\n"},
      {"lengthwise_trial_left_seconds", "gauge",
       "lengthwise_trial_left_seconds{experiment=\"e-1\",trial=\"t1\"} 90\n"},
      {"lengthwise_trial_loss", "gauge",
       "lengthwise_trial_loss{experiment=\"e-1\",trial=\"t1\"} 0.5\n"},
      {"lengthwise_trial_unseen_accuracy", "gauge",
       "lengthwise_trial_unseen_accuracy{experiment=\"e-1\",trial=\"t1\"} 0.25\n"},
      {"lengthwise_trial_accuracy", "gauge",
       "lengthwise_trial_accuracy{experiment=\"e-1\",trial=\"t1\",length_bucket=\"06-10\"} "
       "0.75\n"},
      {"lengthwise_owner_disk_bytes", "gauge", "lengthwise_owner_disk_bytes{owner=\"ada\"} 27\n"},
      {"lengthwise_owner_trials", "gauge", "lengthwise_owner_trials{owner=\"ada\"} 28\n"},
      {"lengthwise_owner_steps", "gauge", "lengthwise_owner_steps{owner=\"ada\"} 29\n"},
      {"lengthwise_owner_worker_seconds", "gauge",
       "lengthwise_owner_worker_seconds{owner=\"ada\"} 30.5\n"},
      {"lengthwise_leases", "gauge", "lengthwise_leases 6\n"},
      {"lengthwise_lease_expiries_total", "counter", "lengthwise_lease_expiries_total 7\n"},
      {"lengthwise_lease_trials", "histogram", "lengthwise_lease_trials_sum 3\n"},
      {"lengthwise_decisions_total", "counter",
       "lengthwise_decisions_total{decision=\"trial_started\"} 21\n"},
      {"lengthwise_trial_retries_total", "counter",
       "lengthwise_trial_retries_total{reason=\"preemption\"} 22\n"},
      {"lengthwise_trial_failures_total", "counter",
       "lengthwise_trial_failures_total{reason=\"loss_not_finite\"} 23\n"},
      {"lengthwise_workers_alive", "gauge", "lengthwise_workers_alive 1\n"},
      {"lengthwise_workers_unfit", "gauge", "lengthwise_workers_unfit 1\n"},
      {"lengthwise_worker_info", "gauge",
       "lengthwise_worker_info{worker=\"w1\",host=\"\",device=\"cpu\",version=\"\"} 1\n"},
      {"lengthwise_worker_max_pack_trials", "gauge",
       "lengthwise_worker_max_pack_trials{worker=\"w1\"} 30\n"},
      {"lengthwise_worker_steps_total", "counter",
       "lengthwise_worker_steps_total{worker=\"w1\"} 24\n"},
      {"lengthwise_events_stored_total", "counter", "lengthwise_events_stored_total 9\n"},
      {"lengthwise_points_stored_total", "counter", "lengthwise_points_stored_total 10\n"},
      {"lengthwise_commit_seconds", "histogram", "lengthwise_commit_seconds_bucket{le=\"1\"} 1\n"},
      {"lengthwise_commit_seconds", "histogram",
       "lengthwise_commit_seconds_bucket{le=\"+Inf\"} 2\n"},
      {"lengthwise_commit_seconds", "histogram", "lengthwise_commit_seconds_count 2\n"},
      {"lengthwise_commit_seconds", "histogram", "lengthwise_commit_seconds_sum 2.25\n"},
      {"lengthwise_commit_commands", "histogram", "lengthwise_commit_commands_sum 11\n"},
      {"lengthwise_commit_events", "histogram", "lengthwise_commit_events_sum 12\n"},
      {"lengthwise_workers_drained", "gauge", "lengthwise_workers_drained 2\n"},
      {"lengthwise_queue_paused", "gauge", "lengthwise_queue_paused 1\n"},
      {"lengthwise_workers_lost_total", "counter", "lengthwise_workers_lost_total 8\n"},
      {"lengthwise_commit_failures_total", "counter", "lengthwise_commit_failures_total 15\n"},
      {"lengthwise_queue_oldest_seconds", "gauge", "lengthwise_queue_oldest_seconds 12.5\n"},
      {"lengthwise_example_files_stored_total", "counter",
       "lengthwise_example_files_stored_total 25\n"},
      {"lengthwise_example_bytes_stored_total", "counter",
       "lengthwise_example_bytes_stored_total 26\n"},
      {"lengthwise_database_bytes", "gauge", "lengthwise_database_bytes 14\n"},
      {"lengthwise_last_backup_timestamp_seconds", "gauge",
       "lengthwise_last_backup_timestamp_seconds 16\n"},
      {"lengthwise_last_backup_failed", "gauge", "lengthwise_last_backup_failed 1\n"},
      {"lengthwise_disk_free_bytes", "gauge", "lengthwise_disk_free_bytes 18\n"},
      {"lengthwise_disk_bytes", "gauge", "lengthwise_disk_bytes 19\n"},
      {"lengthwise_disk_full", "gauge", "lengthwise_disk_full 1\n"},
      {"lengthwise_watcher_lag_seconds", "gauge", "lengthwise_watcher_lag_seconds 0\n"},
      {"lengthwise_watchers_behind", "gauge", "lengthwise_watchers_behind 0\n"},
      {"lengthwise_build_info", "gauge", "lengthwise_build_info{program=\"server\",version="},
      {"process_cpu_seconds_total", "counter", "process_cpu_seconds_total "},
  };
  for (const auto& metric : expected) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("# HELP ", metric.name, " ")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("# TYPE ", metric.name, " ", metric.type, "\n")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", metric.line)));
  }
}

TEST(MonitoringEndpoint, OwnersBeyondTheLargestAreSummed) {
  Statistics statistics = SomeStatistics();
  statistics.owners.clear();
  for (int i = 1; i <= 1000; ++i) {
    v1::OwnerUsage& owner = statistics.owners.emplace_back();
    owner.set_owner(i == 1 ? "other" : absl::StrCat("user", i));
    owner.set_bytes(i);
  }
  const auto endpoint =
      MonitoringEndpoint::Start("127.0.0.1:0", [&] { return statistics; }).value();
  const std::string text = monitoring::Scrape(endpoint->address());
  const std::string name = "\nlengthwise_owner_disk_bytes{owner=\"";
  int64_t series = 0;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    ++series;
  }
  EXPECT_EQ(series, 51);
  EXPECT_THAT(text, HasSubstr(name + "user951\"} 951\n"));
  EXPECT_THAT(text, HasSubstr(name + "other\"} 451725\n")) << "1 + ... + 950";
}

TEST(MonitoringEndpoint, CountsTheLinesOfTheAuditLog) {
  AuditLog log({.file = {.path = testing::TempDir() + "/audit.log"}, .with_anonymous = true});
  log.Record({.time = absl::Now(), .method = "lengthwise.v1.TaskService/Any"});
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics, &log).value();
  while (log.counts().written == 0) absl::SleepFor(absl::Milliseconds(1));
  const std::string text = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_audit_lines_total{result=\"written\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlengthwise_audit_lines_total{result=\"suppressed\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nlengthwise_audit_lines_total{result=\"lost\"} 0\n"));
}

TEST(MonitoringEndpoint, TokenExpiryIsThatOfTheLastOneOfAPrincipal) {
  const std::string data_dir = testing::TempDir() + "/expiring";
  ASSERT_EQ(platform::CreateDirectories(data_dir), absl::OkStatus());
  absl::Time now = absl::Now() - absl::Hours(2);
  const auto tokens = TokenStore::Open(data_dir, [&] { return now; }).value();
  const auto create = [&](const std::string& principal, v1::Role role, absl::Duration lifetime) {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(role);
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
    return tokens->Create(request).value().token().expire_time().seconds();
  };
  const auto endpoint =
      MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics, nullptr, tokens.get()).value();
  const auto expiry = [&](const std::string& role) {
    const std::string text = monitoring::Scrape(endpoint->address());
    const std::string name =
        absl::StrCat("\nlengthwise_token_expiry_timestamp_seconds{role=\"", role, "\"} ");
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  };
  EXPECT_EQ(expiry("worker"), 0);
  // Valid for the hour after `now`.
  now -= absl::Hours(24 * 7);
  create("left", v1::WORKER, absl::Hours(1));
  now += absl::Hours(24 * 7);
  EXPECT_EQ(expiry("worker"), 0) << "expired a week ago";
  const int64_t expired = create("expired", v1::VIEWER, absl::Hours(1));
  create("replaced", v1::WORKER, absl::Hours(3));
  create("replaced", v1::WORKER, absl::Hours(24 * 9));
  const int64_t first = create("forgotten", v1::WORKER, absl::Hours(24 * 5));
  const int64_t admin = create("forgotten", v1::ADMIN, absl::Hours(24 * 8));
  EXPECT_EQ(expiry("worker"), first);
  EXPECT_EQ(expiry("admin"), admin);
  EXPECT_EQ(expiry("viewer"), expired) << "nobody has replaced it";
  EXPECT_EQ(expiry("submitter"), 0);
}

TEST(MonitoringEndpoint, TrialWithoutStepsHasNoLoss) {
  Statistics statistics = SomeStatistics();
  statistics.running_trials[0].progress.set_phase(v1::TrialProgress::EVALUATING);
  statistics.running_trials[0].progress.set_loss(std::numeric_limits<float>::quiet_NaN());
  const auto endpoint =
      MonitoringEndpoint::Start("127.0.0.1:0", [&] { return statistics; }).value();
  const std::string text = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_trial_progress_ratio{"));
  EXPECT_THAT(text, Not(HasSubstr("\nlengthwise_trial_loss{")));
}

TEST(MonitoringEndpoint, ScrapeSizeIsBounded) {
  Statistics statistics = SomeStatistics();
  statistics.running_trials.clear();
  for (int i = 0; i < 500; ++i) {
    RunningTrial trial = SomeTrial(absl::StrCat("t", i));
    for (int bucket = 0; bucket < 20; ++bucket) {
      trial.accuracies[absl::StrCat("0", bucket, "1-0", bucket, "9")] = 0.123456789;
    }
    statistics.running_trials.push_back(trial);
  }
  const auto endpoint =
      MonitoringEndpoint::Start("127.0.0.1:0", [&] { return statistics; }).value();
  EXPECT_LT(monitoring::Scrape(endpoint->address()).size(), 2'000'000u);
}

TEST(MonitoringEndpoint, EveryScrapeReadsCurrentStatistics) {
  Statistics statistics;
  platform::Mutex mutex;
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", [&] {
                          platform::MutexLock lock(mutex);
                          return statistics;
                        }).value();
  EXPECT_THAT(monitoring::Scrape(endpoint->address()), HasSubstr("\nlengthwise_leases 0\n"));
  {
    platform::MutexLock lock(mutex);
    statistics = SomeStatistics();
  }
  EXPECT_THAT(monitoring::Scrape(endpoint->address()), HasSubstr("\nlengthwise_leases 6\n"));
}

TEST(MonitoringEndpoint, NamesAPortInUse) {
  const auto first = MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics).value();
  const absl::Status status = MonitoringEndpoint::Start(first->address(), SomeStatistics).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("cannot serve metrics on ", first->address())));
}

TEST(RpcMetrics, CountsCallsAndOpenStreams) {
  TestServer test;
  ASSERT_EQ(test.AddExperiment("a", 1), "experiments/a-1");
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics).value();
  RpcServer::Options options;
  options.interceptors.push_back(endpoint->rpc_metrics().Interceptor());
  options.streams = endpoint->streams();
  const auto server = RpcServer::Start(std::move(options), test.core()).value();
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

  const std::string open = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(open, HasSubstr("# TYPE lengthwise_rpc_seconds histogram\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_seconds_count{code=\"OK\",method=\"ExperimentService/"
                              "GetExperiment\"} 1\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_seconds_count{code=\"NOT_FOUND\",method="
                              "\"ExperimentService/GetExperiment\"} 2\n"));
  EXPECT_THAT(open, HasSubstr("lengthwise_rpc_open_streams{method=\"ExperimentService/"
                              "WatchExperiment\"} 1\n"));
  EXPECT_THAT(open, Not(HasSubstr("method=\"ExperimentService/WatchExperiment\",le=")));

  server->Stop(absl::Seconds(30));
  const std::string ended = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(ended, HasSubstr("lengthwise_rpc_open_streams{method=\"ExperimentService/"
                               "WatchExperiment\"} 0\n"));
  EXPECT_THAT(ended, HasSubstr("lengthwise_rpc_seconds_count{code=\"UNAVAILABLE\",method="
                               "\"ExperimentService/WatchExperiment\"} 1\n"));
}

TEST(RpcMetrics, UnknownMethodsShareOneLabel) {
  TestServer test;
  const auto endpoint = MonitoringEndpoint::Start("127.0.0.1:0", SomeStatistics).value();
  RpcServer::Options options;
  options.interceptors.push_back(endpoint->rpc_metrics().Interceptor());
  const auto server = RpcServer::Start(std::move(options), test.core()).value();
  const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
  for (const char* made_up : {"/lengthwise.v1.ExperimentService/Y1", "/lengthwise.v1.X/Y2"}) {
    const grpc::internal::RpcMethod method(made_up, grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    v1::Experiment experiment;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel.get(), method, &context, v1::GetExperimentRequest(), &experiment);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
  // The last call's interceptor may end after its answer; stopping waits for it.
  server->Stop(absl::Seconds(30));
  const std::string page = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(page, Not(HasSubstr("Y1")));
  EXPECT_THAT(page, Not(HasSubstr("Y2")));
  EXPECT_THAT(page, HasSubstr("method=\"other\""));
}

TEST(RpcMetrics, LabelsAreBounded) {
  EXPECT_EQ(MethodLabel("/lengthwise.v1.WorkerService/Synchronize"), "WorkerService/Synchronize");
  EXPECT_EQ(MethodLabel("/lengthwise.v1.WorkerService/Hearbeat"), "other");
  EXPECT_EQ(MethodLabel("/lengthwise.v1.X/Y"), "other");
  EXPECT_EQ(MethodLabel("/lengthwise.v1."), "other");
  EXPECT_EQ(MethodLabel("/grpc.health.v1.Health/Check"), "other");
  EXPECT_EQ(MethodLabel("whatever"), "other");
}

}  // namespace
}  // namespace lengthwise::server
