// Summaries of experiments agree with the store at any time.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/summaries.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class CoreSummaryTest : public testing::Test {
 protected:
  CoreSummaryTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  std::string Bytes(const std::string& experiment) {
    const auto summary = coordinator_.Summarize(experiment);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary->SerializeAsString();
  }
  // The updated summary must equal the one that a new server builds.
  void ExpectAsAfterARestart(const std::string& experiment) {
    const std::string kept = Bytes(experiment);
    coordinator_.Close();
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
    EXPECT_EQ(Bytes(experiment), kept);
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreSummaryTest, IsUpToDateWithEveryAcknowledgedOutcome) {
  const std::string experiment = coordinator_.Create("sort", 2, 3);
  for (int finished = 0; finished < 6; ++finished) {
    const auto summary = coordinator_.Summarize(experiment);
    ASSERT_TRUE(summary.ok()) << summary.status();
    ASSERT_THAT(summary->cells(), SizeIs(2));
    EXPECT_EQ(summary->cells(0).trials().succeeded() + summary->cells(1).trials().succeeded(),
              finished);
    EXPECT_EQ(summary->cells(0).trials().queued() + summary->cells(1).trials().queued(),
              6 - finished);
    const double accuracy = finished / 8.0;
    ASSERT_TRUE(
        coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {accuracy, accuracy + 0.25}));
  }
  const v1::SummarizeExperimentResponse summary = *coordinator_.Summarize(experiment);
  EXPECT_EQ(summary.cells(0).task(), "bucket_sort");
  EXPECT_EQ(summary.cells(0).encoding(), "none");
  EXPECT_EQ(summary.cells(1).encoding(), "sines");
  EXPECT_EQ(summary.cells(1).learning_rate(), 0.002);
  EXPECT_THAT(summary.cells(0).lengths(), ElementsAre(1, 2));
  EXPECT_THAT(summary.cells(0).mean_accuracies(), ElementsAre(0.125, 0.375));
  EXPECT_THAT(summary.cells(1).mean_accuracies(), ElementsAre(0.5, 0.75));
  EXPECT_EQ(summary.cells(1).unseen_accuracy().deviation(), 0.125);
  EXPECT_EQ(summary.cells(1).best_trial(), "") << "no length is seen, so none chooses";
  EXPECT_THAT(coordinator_.Summarize(experiment, true)->cells(0).lengths(), SizeIs(0));
  ExpectAsAfterARestart(experiment);
}

TEST_F(CoreSummaryTest, CountsTheCompletedAttemptsEvaluation) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  ASSERT_TRUE(coordinator_.Summarize(experiment).ok());
  const v1::Lease lost = coordinator_.Acquire("w");
  coordinator_
      .Send(lost, {AccuraciesEvent(lost, 0, 1, 5, {0.1}, /*final=*/false),
                   AccuraciesEvent(lost, 0, 2, 10, {0.25})})
      .IgnoreError();
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).unseen_accuracy().trials(), 0);
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().running(), 1);
  coordinator_.Release("w", lost);
  const v1::Lease lease = coordinator_.Acquire("w");
  coordinator_
      .Send(lease, {AccuraciesEvent(lease, 0, 1, 5, {0.1}, /*final=*/false),
                    AccuraciesEvent(lease, 0, 2, 10, {0.75})})
      .IgnoreError();
  coordinator_.Send(lease, coordinator_.Completion(lease, 0, 3, 10)).IgnoreError();
  const v1::SummarizeExperimentResponse summary = *coordinator_.Summarize(experiment);
  EXPECT_THAT(summary.cells(0).mean_accuracies(), ElementsAre(0.75));
  EXPECT_EQ(summary.cells(0).unseen_accuracy().mean(), 0.75);
  ExpectAsAfterARestart(experiment);
}

TEST_F(CoreSummaryTest, MeansAreComputedFromTheColumns) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::Event event = AccuraciesEvent(lease, 0, 1, 10, {0.5, 0.25});
  event.mutable_length_accuracies()->set_seen_accuracy(1);
  event.mutable_length_accuracies()->set_unseen_accuracy(1);
  coordinator_.Send(lease, {event}).IgnoreError();
  coordinator_.Send(lease, coordinator_.Completion(lease, 0, 2, 10)).IgnoreError();
  int read = 0;
  const auto take = [&read](const v1::Event& stored) {
    ++read;
    // No length is seen: the specification has no seen_up_to.
    EXPECT_FALSE(stored.length_accuracies().has_seen_accuracy());
    EXPECT_EQ(stored.length_accuracies().unseen_accuracy(), 0.375);
  };
  ASSERT_EQ(coordinator_->event_log().ForEachEvent(experiment, v1::Event::kLengthAccuracies, take),
            absl::OkStatus());
  EXPECT_EQ(read, 1);
  const v1::SummarizeExperimentResponse summary = *coordinator_.Summarize(experiment);
  EXPECT_EQ(summary.cells(0).seen_accuracy().trials(), 0);
  EXPECT_EQ(summary.cells(0).unseen_accuracy().mean(), 0.375);
}

TEST_F(CoreSummaryTest, UnsuccessfulTrialsOnlyCount) {
  const std::string experiment = coordinator_.Create("sort", 1, 3);
  ASSERT_TRUE(coordinator_.Summarize(experiment).ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  coordinator_
      .Send(lease, {AccuraciesEvent(lease, 0, 1, 10, {0.5}),
                    OutcomeEvent(lease, 0, 2, 10, v1::Outcome::FAILED_PERMANENTLY, "nan")})
      .IgnoreError();
  ASSERT_TRUE(coordinator_.CancelTrial(experiment + "/trials/lr0-seed1").ok());
  const v1::SummarizeExperimentResponse summary = *coordinator_.Summarize(experiment);
  EXPECT_EQ(summary.cells(0).trials().failed(), 1);
  EXPECT_EQ(summary.cells(0).trials().cancelled(), 1);
  EXPECT_EQ(summary.cells(0).trials().queued(), 1);
  EXPECT_THAT(summary.cells(0).lengths(), SizeIs(0));
  EXPECT_EQ(summary.cells(0).unseen_accuracy().trials(), 0);
  ExpectAsAfterARestart(experiment);
}

TEST_F(CoreSummaryTest, FollowsExtensionsAndDeletions) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {0.5}));
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().queued(), 0);
  ASSERT_TRUE(coordinator_.Extend(experiment, {1, 2}).ok());
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().queued(), 2);
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {0.75}));
  EXPECT_THAT(coordinator_.Summarize(experiment)->cells(0).mean_accuracies(), ElementsAre(0.625));
  ExpectAsAfterARestart(experiment);
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_EQ(coordinator_.Summarize(experiment).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(coordinator_.Summarize("nonsense").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoreSummaryTest, LargeCancellationIsFollowed) {
  constexpr int kTrials = 1001;
  const std::string experiment = coordinator_.Create("sort", 1, kTrials);
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().queued(), kTrials);
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().cancelled(), kTrials);
}

TEST_F(CoreSummaryTest, EvictedSummariesAreAnswered) {
  std::vector<std::string> experiments;
  for (size_t i = 0; i < Summaries::kMostHeld + 3; ++i) {
    experiments.push_back(coordinator_.Create("sort", 1, 1));
    ASSERT_TRUE(coordinator_.Summarize(experiments.back()).ok());
  }
  for (size_t i = 0; i < experiments.size(); ++i) {
    ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {0.5}));
  }
  for (const std::string& experiment : experiments) {
    EXPECT_EQ(coordinator_.Summarize(experiment)->cells(0).trials().succeeded(), 1);
  }
}

TEST_F(CoreSummaryTest, IsIndependentOfOrderAndReaders) {
  const std::string experiment = coordinator_.Create("sort", 4, 25);
  std::atomic<int> acknowledged = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&, name = absl::StrCat("w", i)] {
      EXPECT_EQ(coordinator_.Register(name, 2), absl::OkStatus());
      for (v1::Lease lease = coordinator_.Acquire(name); lease.trials_size() > 0;
           lease = coordinator_.Acquire(name)) {
        for (int trial = 0; trial < lease.trials_size(); ++trial) {
          const auto seed = lease.trials(trial).specification().weight_seed();
          EXPECT_TRUE(coordinator_.Complete(lease, trial, 10, {seed / 29.0, 1 / (seed + 1.0)}));
          ++acknowledged;
        }
      }
    });
  }
  std::thread asker([&] {
    while (!done) {
      // A summary is built while results arrive, and built again when other experiments evict it.
      for (size_t i = 0; i < Summaries::kMostHeld; ++i) {
        EXPECT_TRUE(coordinator_.Summarize(coordinator_.Create("other", 1, 0)).ok());
      }
      const int before = acknowledged;
      const auto summary = coordinator_.Summarize(experiment);
      int succeeded = 0;
      for (const auto& cell : summary->cells()) succeeded += cell.trials().succeeded();
      EXPECT_GE(succeeded, before);
    }
  });
  for (std::thread& worker : workers) worker.join();
  done = true;
  asker.join();
  EXPECT_EQ(acknowledged, 100);
  ExpectAsAfterARestart(experiment);
}

TEST(CoreSummaryFaultsTest, FailedCommitIsNotIncluded) {
  TestCoordinator coordinator(NewDirectory(), /*max_database_bytes=*/400'000);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 1, 2);
  ASSERT_TRUE(coordinator.Complete(coordinator.Acquire("w"), 0, 10, {0.5}));
  const v1::Lease lease = coordinator.Acquire("w");
  const std::string before = coordinator.Summarize(experiment)->SerializeAsString();
  std::vector<v1::Event> events = coordinator.Completion(lease, 0, 2, 10);
  events.insert(events.begin(), AccuraciesEvent(lease, 0, 1, 10, std::vector<double>(50'000, 1)));
  const auto failed = coordinator.Send(lease, events);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(coordinator.Summarize(experiment)->SerializeAsString(), before);
  ASSERT_TRUE(coordinator.Complete(lease, 0, 10, {0.75}));
  EXPECT_THAT(coordinator.Summarize(experiment)->cells(0).mean_accuracies(), ElementsAre(0.625));
}

}  // namespace
}  // namespace lengthwise::server
