#include "client/connection/connection.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/connection/fake_server.h"
#include "client/connection/names.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/fleet_service.grpc.pb.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ConnectionTest, NamesUnreachableServerAndCause) {
  // Port 1 (tcpmux) is not served on a test machine.
  Connection connection("127.0.0.1:1");
  const auto answer = connection.ListExperiments(0);
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_EQ(answer.status().message(), "cannot reach a server at 127.0.0.1:1 (Connection refused)");
}

// Answers like a server with a full disk.
class ServerWithAFullDisk final : public FakeServer {
 private:
  grpc::Status ListExperiments(grpc::ServerContext*, const v1::ListExperimentsRequest*,
                               v1::ListExperimentsResponse*) override {
    google::rpc::Status details;
    details.set_code(grpc::StatusCode::UNAVAILABLE);
    return {grpc::StatusCode::UNAVAILABLE, "nothing was stored: the disk is full; try again",
            details.SerializeAsString()};
  }
};

TEST(ConnectionTest, AnsweringServerIsNotUnreachable) {
  ServerWithAFullDisk server;
  const absl::Status full = Connection(server.address()).ListExperiments(0).status();
  EXPECT_TRUE(absl::IsUnavailable(full));
  EXPECT_EQ(full.message(), "nothing was stored: the disk is full; try again");
  EXPECT_FALSE(IsUnreachable(full));
  EXPECT_TRUE(IsUnreachable(Connection("127.0.0.1:1").ListExperiments(0).status()));
}

TEST(ConnectionTest, AdvisesUpgradeOfServerWithoutCall) {
  FakeServer server;  // has no ListTokens
  const absl::Status status = Connection(server.address()).ListTokens().status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is of an older release"));
  EXPECT_THAT(status.message(), HasSubstr("upgrade the server"));
}

TEST(ConnectionTest, NamesEveryMistakeOfASpecification) {
  FakeServer server;
  Connection connection(server.address());
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_text("encodings: [none, rotery]");
  const auto answer = connection.CreateExperiment(request);
  EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
  EXPECT_EQ(answer.status().message(),
            "encodings[1]: unknown encoding \"rotery\"\ntraining.steps: must be at least 1");
}

TEST(ConnectionTest, ReadsAllPages) {
  FakeServer server;
  server.AddExperiment("e-1", {"none", "sin_cos", "relative"});
  Connection connection(server.address());
  const auto trials = connection.ListTrials("experiments/e-1", "");
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 3u);
  EXPECT_EQ((*trials)[2].name(), "experiments/e-1/trials/bucket_sort-relative");
}

// Its answers have room for one trial only.
class FullServer final : public FakeServer {
 public:
  FullServer() { AddExperiment("e-1", {"none", "sin_cos"}); }

 private:
  using Context = grpc::ServerContext;
  template <typename Request>
  static grpc::Status Answer(const Request& request) {
    if (absl::StrContains(request.name(), "/trials/")) return grpc::Status::OK;
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the answer is larger than 64 bytes"};
  }
  grpc::Status QueryLengthAccuracies(Context*, const v1::QueryLengthAccuraciesRequest* request,
                                     v1::QueryLengthAccuraciesResponse* response) override {
    auto& evaluation = *response->add_evaluations();
    evaluation.set_trial(request->name());
    evaluation.mutable_accuracies()->set_final(!request->include_intervals());
    return Answer(*request);
  }
  grpc::Status QueryLossCurves(Context*, const v1::QueryLossCurvesRequest* request,
                               v1::QueryLossCurvesResponse* response) override {
    auto& curve = *response->add_curves();
    curve.set_trial(request->name());
    curve.mutable_points()->add_steps(request->max_points());
    return Answer(*request);
  }
};

TEST(ConnectionTest, SplitsTooLargeQueriesByTrial) {
  FullServer server;
  Connection connection(server.address());
  const auto accuracies = connection.QueryLengthAccuracies("experiments/e-1", true);
  ASSERT_TRUE(accuracies.ok()) << accuracies.status();
  ASSERT_EQ(accuracies->evaluations_size(), 2);
  EXPECT_EQ(accuracies->evaluations(0).trial(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_EQ(accuracies->evaluations(1).trial(), "experiments/e-1/trials/bucket_sort-sin_cos");
  EXPECT_FALSE(accuracies->evaluations(1).accuracies().final());
  const auto losses = connection.QueryLossCurves("experiments/e-1", 50);
  ASSERT_TRUE(losses.ok()) << losses.status();
  ASSERT_EQ(losses->curves_size(), 2);
  EXPECT_EQ(losses->curves(1).points().steps(0), 50);
}

// Rejects the first calls with a retry delay, as a rate limit does.
class BusyServer final : public v1::FleetService::Service {
 public:
  BusyServer(int refusals, absl::Duration delay) : refusals_(refusals) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
    google::rpc::Status details;
    details.add_details()->PackFrom(retry);
    details_ = details.SerializeAsString();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    if (calls_++ < refusals_) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls", details_};
    }
    response->add_workers()->set_worker_id("w");
    return grpc::Status::OK;
  }
  const std::string& address() const { return address_; }
  int calls() const { return calls_; }

 private:
  const int refusals_;
  std::atomic<int> calls_ = 0;
  std::string details_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(ConnectionTest, RetriesAfterTheServersDelay) {
  BusyServer server(3, absl::Milliseconds(20));
  Connection connection(server.address());
  const absl::Time start = absl::Now();
  const auto answer = connection.ListWorkers();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->workers_size(), 1);
  EXPECT_EQ(server.calls(), 4);
  EXPECT_GE(absl::Now() - start, 3 * absl::Milliseconds(20));
}

TEST(ConnectionTest, PatienceHasAnEnd) {
  BusyServer server(1'000'000, absl::Milliseconds(20));
  Connection connection(server.address(), {.patience = absl::Milliseconds(100)});
  const auto answer = connection.ListWorkers();
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status()));
  EXPECT_EQ(answer.status().message(), "too many calls");
  EXPECT_LE(server.calls(), 6);
  // A delay longer than the patience is not waited for.
  BusyServer closed(1'000'000, absl::Minutes(5));
  Connection impatient(closed.address());
  EXPECT_TRUE(absl::IsResourceExhausted(impatient.ListWorkers().status()));
  EXPECT_EQ(closed.calls(), 1);
}

class NamesTest : public testing::Test {
 protected:
  NamesTest() : connection_(server_.address()) {
    server_.AddExperiment("quickstart-1", {"none"});
    server_.AddExperiment("quickstart-2", {"none", "sin_cos"});
    server_.AddExperiment("ablation-1", {"none"});
  }
  std::string Found(const std::string& text) {
    const auto experiment = FindExperiment(connection_, text);
    return experiment.ok() ? experiment->name() : std::string(experiment.status().message());
  }
  std::string FoundTrial(const std::string& text) {
    const auto trial = FindTrial(connection_, text);
    return trial.ok() ? trial->name() : std::string(trial.status().message());
  }

  FakeServer server_;
  Connection connection_;
};

TEST_F(NamesTest, FindsExperimentByFullShortAndPrefixName) {
  EXPECT_EQ(Found("experiments/quickstart-1"), "experiments/quickstart-1");
  EXPECT_EQ(Found("quickstart-1"), "experiments/quickstart-1");
  EXPECT_EQ(Found("quickstart"), "experiments/quickstart-2");  // the newest
  EXPECT_EQ(Found("abl"), "experiments/ablation-1");
}

TEST_F(NamesTest, SuggestsExistingNames) {
  EXPECT_THAT(Found("quikstart-1"), HasSubstr("did you mean \"quickstart-1\"?"));
  EXPECT_THAT(Found("quick"), HasSubstr("matches several experiments: quickstart-2, quickstart-1"));
}

TEST_F(NamesTest, FindsATrialByIdPrefixAndIndex) {
  const std::string name = "experiments/quickstart-2/trials/bucket_sort-sin_cos";
  EXPECT_EQ(FoundTrial(name), name);
  EXPECT_EQ(FoundTrial("quickstart-2/bucket_sort-sin_cos"), name);
  EXPECT_EQ(FoundTrial("quickstart-2/bucket_sort-s"), name);
  EXPECT_EQ(FoundTrial("quickstart/1"), name);
  EXPECT_THAT(FoundTrial("quickstart-2/none"), StartsWith("there is no trial \"none\""));
}

TEST(ShortNameTest, IsTheLastPart) {
  EXPECT_EQ(ShortName("experiments/e-1"), "e-1");
  EXPECT_EQ(ShortName("experiments/e-1/trials/t"), "t");
  EXPECT_TRUE(NamesTrial("e-1/t"));
  EXPECT_FALSE(NamesTrial("experiments/e-1"));
}

TEST(ConnectionTest, DownloadsAModelAndChecksIt) {
  FakeServer server;
  server.AddExperiment("e-1", {"none"});
  const std::string trial = "experiments/e-1/trials/bucket_sort-none";
  const std::string bytes = std::string(250, 'x') + "end";
  server.SetModel(trial, 40, bytes);
  Connection connection(server.address());
  std::string back;
  const auto take = [&back](absl::string_view data) {
    absl::StrAppend(&back, data);
    return absl::OkStatus();
  };
  const auto model = connection.DownloadModel(trial, take);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(model->step, 40);
  EXPECT_EQ(model->checkpoint.size_bytes(), 253);

  server.SetModel(trial, 40, bytes, std::string(64, '0'));
  const auto damaged = connection.DownloadModel(trial, take);
  EXPECT_TRUE(absl::IsDataLoss(damaged.status())) << damaged.status();
  EXPECT_TRUE(absl::IsNotFound(connection.DownloadModel(trial + "x", take).status()));
}

TEST(ConnectionTest, TakerErrorEndsTheDownload) {
  FakeServer server;
  server.AddExperiment("e-1", {"none"});
  const std::string trial = "experiments/e-1/trials/bucket_sort-none";
  server.SetModel(trial, 40, std::string(100'000, 'x'));
  Connection connection(server.address());
  int calls = 0;
  const auto model = connection.DownloadModel(trial, [&calls](absl::string_view) -> absl::Status {
    if (++calls < 3) return absl::OkStatus();
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_EQ(model.status(), absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace lengthwise::client
