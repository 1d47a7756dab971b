#include "client/connection/connection.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/connection/testing/faulty_server.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/fleet_service.grpc.pb.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

TEST(ConnectionTest, NamesUnreachableServerAndCause) {
  // Port 1 (tcpmux) is not served on a test machine.
  Connection connection("127.0.0.1:1");
  const auto answer = connection.ListExperiments(0);
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_EQ(answer.status().message(), "cannot reach a server at 127.0.0.1:1 (Connection refused)");
}

TEST(ConnectionTest, AnsweringServerIsNotUnreachable) {
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::UNAVAILABLE);
  FaultyServer server;
  server.RefuseAlways("ListExperiments", {grpc::StatusCode::UNAVAILABLE,
                                          "nothing was stored: the disk is full; try again",
                                          details.SerializeAsString()});
  const absl::Status full = Connection(server.address()).ListExperiments(0).status();
  EXPECT_TRUE(absl::IsUnavailable(full));
  EXPECT_EQ(full.message(), "nothing was stored: the disk is full; try again");
  EXPECT_FALSE(IsUnreachable(full));
  EXPECT_TRUE(IsUnreachable(Connection("127.0.0.1:1").ListExperiments(0).status()));
}

TEST(ConnectionTest, AdvisesUpgradeOfServerWithoutCall) {
  FaultyServer server;
  server.RefuseAlways("ListTokens", {grpc::StatusCode::UNIMPLEMENTED, ""});
  const absl::Status status =
      Connection(server.address()).Call<v1::ListTokensResponse>(v1::ListTokensRequest()).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is of an older release"));
  EXPECT_THAT(status.message(), HasSubstr("upgrade the server"));
}

TEST(ConnectionTest, NamesEveryMistakeOfASpecification) {
  RealServer server;
  Connection connection(server.address());
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(
      "{name: e, tasks: bucket_sort, networks: encoder, encodings: [none, rotery], "
      "learning_rates: 0.001, training: {steps: 0}, evaluation: {lengths: 4}}");
  const auto answer = connection.Call<v1::CreateExperimentResponse>(request);
  EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
  EXPECT_EQ(answer.status().message(),
            "training.steps: got 0, expected an integer from 1 to 1000000000000\n"
            "encodings[1]: unknown encoding \"rotery\"; did you mean \"rope\"?");
}

TEST(ConnectionTest, ReadsAllPages) {
  FaultyServer server;
  server.real().Submit("e", {"none", "sin_cos", "relative"});
  // Each page has one trial.
  server.AnswerBy<v1::ListTrialsRequest>("ListTrials", [&](v1::ListTrialsRequest request) {
    request.set_page_size(1);
    const auto page = server.real().core().reads().ListTrials(request);
    return FaultyServer::Answer{.messages = {page->SerializeAsString()}};
  });
  Connection connection(server.address());
  const auto trials = connection.ListTrials("experiments/e-1", "");
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 3u);
  EXPECT_EQ((*trials)[2].name(), RealServer::TrialName("experiments/e-1", "relative"));
  EXPECT_EQ(server.Requests<v1::ListTrialsRequest>("ListTrials").size(), 3u);
}

TEST(ConnectionTest, SplitsTooLargeQueriesByTrial) {
  FaultyServer server;
  server.real().Submit("e", {"none", "sin_cos"});
  // Answers have room for one trial only.
  const FaultyServer::Answer too_large{
      .status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "the answer is larger than 64 bytes"}};
  server.AnswerBy<v1::QueryLengthAccuraciesRequest>(
      "QueryLengthAccuracies", [&](const v1::QueryLengthAccuraciesRequest& request) {
        if (!absl::StrContains(request.name(), "/trials/")) return too_large;
        v1::QueryLengthAccuraciesResponse response;
        auto& evaluation = *response.add_evaluations();
        evaluation.set_trial(request.name());
        evaluation.mutable_accuracies()->set_final(!request.include_intervals());
        return FaultyServer::Answer{.messages = {response.SerializeAsString()}};
      });
  Connection connection(server.address());
  const auto accuracies = connection.QueryLengthAccuracies("experiments/e-1", true);
  ASSERT_TRUE(accuracies.ok()) << accuracies.status();
  ASSERT_EQ(accuracies->evaluations_size(), 2);
  EXPECT_EQ(accuracies->evaluations(0).trial(), RealServer::TrialName("experiments/e-1", "none"));
  EXPECT_EQ(accuracies->evaluations(1).trial(),
            RealServer::TrialName("experiments/e-1", "sin_cos"));
  EXPECT_FALSE(accuracies->evaluations(1).accuracies().final());
}

// Rejects the first calls of ListWorkers with a retry delay, as a rate limit does.
class BusyServer {
 public:
  BusyServer(int refusals, absl::Duration delay) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
    google::rpc::Status details;
    details.add_details()->PackFrom(retry);
    const grpc::Status status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls",
                              details.SerializeAsString());
    server_.AnswerBy<v1::ListWorkersRequest>(
        "ListWorkers", [this, refusals, status](const v1::ListWorkersRequest&) {
          return calls() <= refusals ? std::optional(FaultyServer::Answer{.status = status})
                                     : std::nullopt;
        });
  }
  const std::string& address() const { return server_.address(); }
  int calls() {
    return static_cast<int>(server_.Requests<v1::ListWorkersRequest>("ListWorkers").size());
  }

 private:
  FaultyServer server_;
};

TEST(ConnectionTest, OtherAnswerThanTheCallsIsAnError) {
  const auto answer = Connection("127.0.0.1:1").Call<v1::Trial>(v1::GetExperimentRequest());
  EXPECT_EQ(answer.status().message(),
            "no call with a lengthwise.v1.GetExperimentRequest is answered by a "
            "lengthwise.v1.Trial");
}

TEST(ConnectionTest, RetriesAfterTheServersDelay) {
  BusyServer server(3, absl::Milliseconds(20));
  Connection connection(server.address());
  const absl::Time start = absl::Now();
  const auto answer = connection.Call<v1::ListWorkersResponse>(v1::ListWorkersRequest());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(server.calls(), 4);
  EXPECT_GE(absl::Now() - start, 3 * absl::Milliseconds(20));
}

TEST(ConnectionTest, PatienceHasAnEnd) {
  BusyServer server(1'000'000, absl::Milliseconds(20));
  const auto connection =
      Connection::Open({.server = server.address()}, {.patience = absl::Milliseconds(100)});
  const auto answer = (*connection)->Call<v1::ListWorkersResponse>(v1::ListWorkersRequest());
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status()));
  EXPECT_EQ(answer.status().message(), "too many calls");
  EXPECT_LE(server.calls(), 6);
  // A delay longer than the patience is not waited for.
  BusyServer closed(1'000'000, absl::Minutes(5));
  Connection impatient(closed.address());
  EXPECT_TRUE(absl::IsResourceExhausted(
      impatient.Call<v1::ListWorkersResponse>(v1::ListWorkersRequest()).status()));
  EXPECT_EQ(closed.calls(), 1);
}

}  // namespace
}  // namespace lengthwise::client
