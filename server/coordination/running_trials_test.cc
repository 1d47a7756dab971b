#include "server/coordination/running_trials.h"

#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/length_accuracies.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

// A trial with seen lengths up to 10, evaluated up to 40.
RunningChange Start(const std::string& trial, int32_t attempt = 1) {
  RunningChange start;
  start.name = absl::StrCat("experiments/e-1/trials/", trial);
  start.experiment_id = "e-1";
  start.trial_id = trial;
  start.attempt = attempt;
  start.worker = "w";
  start.seen_up_to = 10;
  start.longest = 40;
  return start;
}

RunningChange End(const std::string& trial) {
  RunningChange end;
  end.name = absl::StrCat("experiments/e-1/trials/", trial);
  return end;
}

WorkerProgress ProgressOf(const std::string& trial, int32_t attempt, float loss,
                          const std::string& worker = "w") {
  v1::TrialProgress progress;
  progress.set_trial(absl::StrCat("experiments/e-1/trials/", trial));
  progress.set_attempt(attempt);
  progress.set_loss(loss);
  return {.worker = worker, .progress = progress};
}

v1::LengthAccuracies Accuracies(const std::vector<std::pair<int32_t, double>>& points) {
  v1::LengthAccuracies accuracies;
  for (const auto& [length, accuracy] : points) {
    accuracies.add_lengths(length);
    accuracies.add_accuracies(accuracy);
  }
  SetMeans(/*seen_up_to=*/10, accuracies);
  return accuracies;
}

TEST(RunningTrials, AreListedFromStartToEnd) {
  RunningTrials trials;
  trials.Apply({Start("a"), Start("b")});
  EXPECT_THAT(trials.List(), SizeIs(2));
  trials.Apply({End("a"), End("unknown")});
  ASSERT_THAT(trials.List(), SizeIs(1));
  EXPECT_EQ(trials.List()[0].trial_id, "b");
  // Released and leased again in one commit.
  trials.Apply({End("b"), Start("b", 2)});
  EXPECT_THAT(trials.List(), SizeIs(1));
  trials.Apply({Start("c"), End("c")});
  EXPECT_THAT(trials.List(), SizeIs(1));
}

TEST(RunningTrials, KeepTheNewestProgressOfTheirAttempt) {
  RunningTrials trials;
  trials.Apply({Start("a", 2)});
  EXPECT_EQ(trials.Progress(ProgressOf("a", 2, 1.5)), "e-1");
  EXPECT_EQ(trials.Progress(ProgressOf("a", 1, 9)), std::nullopt);  // from a worker that lost it
  EXPECT_EQ(trials.Progress(ProgressOf("a", 2, 9, "another")), std::nullopt);
  EXPECT_EQ(trials.Progress(ProgressOf("unknown", 1, 9)), std::nullopt);
  ASSERT_THAT(trials.List(), SizeIs(1));
  EXPECT_EQ(trials.List()[0].progress.loss(), 1.5);
  // A rebuilt scheduler reports running trials again.
  trials.Apply({Start("a", 2)});
  EXPECT_EQ(trials.List()[0].progress.loss(), 1.5);
}

TEST(RunningTrials, ReturnNewProgressFromEachReadersCursor) {
  const auto losses = [](const std::vector<v1::TrialProgress>& told) {
    std::vector<float> losses;
    for (const v1::TrialProgress& progress : told) losses.push_back(progress.loss());
    return losses;
  };
  RunningTrials trials;
  trials.Apply({Start("a"), Start("b"), Start("c")});
  int64_t quick = 0, slow = 0, of_b = 0;
  EXPECT_THAT(trials.ProgressSince("e-1", "", 10, quick), SizeIs(0));
  trials.Progress(ProgressOf("a", 1, 1));
  trials.Progress(ProgressOf("b", 1, 2));
  EXPECT_THAT(losses(trials.ProgressSince("e-1", "", 1, quick)), ElementsAre(1));
  EXPECT_THAT(losses(trials.ProgressSince("e-1", "", 10, quick)), ElementsAre(2));
  EXPECT_THAT(trials.ProgressSince("e-1", "", 10, quick), SizeIs(0));
  EXPECT_THAT(trials.ProgressSince("e-2", "", 10, slow), SizeIs(0));

  trials.Progress(ProgressOf("c", 1, 3));
  trials.Progress(ProgressOf("b", 1, 4));
  trials.Progress(ProgressOf("a", 1, 5));
  EXPECT_THAT(losses(trials.ProgressSince("e-1", Start("b").name, 10, of_b)), ElementsAre(4));
  EXPECT_THAT(trials.ProgressSince("e-1", Start("b").name, 10, of_b), SizeIs(0));
  EXPECT_THAT(losses(trials.ProgressSince("e-1", "", 10, quick)), ElementsAre(3, 4, 5));
  // Trials that ended or restarted have none.
  trials.Apply({End("b"), Start("a", 2)});
  EXPECT_THAT(losses(trials.ProgressSince("e-1", "", 10, slow)), ElementsAre(3));
  EXPECT_THAT(trials.ProgressSince("e-1", Start("b").name, 10, slow), SizeIs(0));
}

TEST(RunningTrials, AccuraciesAreMeansByBucketAndUnseen) {
  RunningTrials trials;
  trials.Apply({Start("a")});
  EXPECT_FALSE(trials.List()[0].unseen_accuracy.has_value());
  const std::string name = Start("a").name;
  trials.Evaluated(name, Accuracies({{9, 1.0}, {10, 0.8}, {11, 0.5}, {39, 0.2}, {40, 0.4}}));
  // Two lengths per bucket: 40 / 20, which divides 10.
  EXPECT_THAT(trials.List()[0].accuracies,
              ElementsAre(Pair("09-10", testing::DoubleEq(0.9)), Pair("11-12", 0.5),
                          Pair("39-40", testing::DoubleNear(0.3, 1e-12))));
  EXPECT_DOUBLE_EQ(trials.List()[0].unseen_accuracy.value(), (0.5 + 0.2 + 0.4) / 3);
  trials.Evaluated(name, Accuracies({{12, 0.25}, {13, std::nan("")}}));
  EXPECT_THAT(trials.List()[0].accuracies, ElementsAre(Pair("11-12", 0.25), Pair("13-14", 0)));
  trials.Evaluated("experiments/e-1/trials/unknown", Accuracies({{12, 0.25}}));
}

TEST(RunningTrials, StartDescribesTheTrial) {
  TrialRecord trial;
  trial.experiment_id = "e-1";
  trial.id = "a";
  trial.attempt = 2;
  trial.worker = "w";
  PackRecord pack;
  pack.task = "parity";
  pack.network = "encoder";
  pack.encoding = "rope";
  v1::TrialSpecification specification;
  specification.mutable_evaluation()->set_seen_up_to(40);
  for (const int length : {10, 300, 20}) specification.mutable_evaluation()->add_lengths(length);
  specification.mutable_evaluation()->add_interval_lengths(310);
  const RunningChange change = StartOf(trial, pack, specification);
  EXPECT_EQ(change.name, "experiments/e-1/trials/a");
  EXPECT_EQ(change.attempt, 2);
  EXPECT_EQ(change.worker, "w");
  EXPECT_EQ(change.task, "parity");
  EXPECT_EQ(change.network, "encoder");
  EXPECT_EQ(change.encoding, "rope");
  EXPECT_EQ(change.seen_up_to, 40);
  EXPECT_EQ(change.longest, 310);
}

TEST(RunningTrials, ListTheLongestRunningTrials) {
  RunningTrials trials;
  for (int i = 0; i < 2000; ++i) trials.Apply({Start(absl::StrCat("t", i))});
  trials.Apply({End("t3")});
  const auto shown = trials.List();
  ASSERT_EQ(shown.size(), RunningTrials::kMostShown);
  EXPECT_EQ(shown[0].trial_id, "t0");
  EXPECT_EQ(shown[3].trial_id, "t4");
  EXPECT_EQ(shown.back().trial_id, "t500");
}

TEST(LengthBuckets, FewLengthsHaveOneEach) {
  const LengthBuckets buckets(10, 20);
  EXPECT_EQ(buckets.Label(1), "01");
  EXPECT_EQ(buckets.Label(20), "20");
}

TEST(LengthBuckets, NoBucketMixesSeenAndUnseenLengths) {
  // 500 lengths, 40 of them seen: a width of 25 would be enough, but 40 divides.
  const LengthBuckets buckets(40, 500);
  EXPECT_EQ(buckets.Label(40), "001-040");
  EXPECT_EQ(buckets.Label(41), "041-080");
  EXPECT_EQ(buckets.Label(500), "481-520");
}

TEST(LengthBuckets, WidthsAreRoundIfNoneDivides) {
  EXPECT_EQ(LengthBuckets(20, 500).width(), 50);
  EXPECT_EQ(LengthBuckets(0, 500).width(), 50);
  EXPECT_EQ(LengthBuckets(0, 100'000).Label(100'000), "095001-100000");
}

TEST(LengthBuckets, AreAtMostTwentyAndSortAsTheLengthsDo) {
  for (const int32_t longest : {1, 7, 19, 20, 21, 33, 60, 99, 100, 101, 500, 1023, 99'999}) {
    for (const int32_t seen : {0, 1, 5, 20, 39, 40, 41, 500}) {
      const LengthBuckets buckets(seen, longest);
      std::set<std::string> labels;
      std::string last;
      for (int32_t length = 1; length <= longest; ++length) {
        const std::string label = buckets.Label(length);
        EXPECT_LE(last, label) << longest << " " << seen << " " << length;
        last = label;
        labels.insert(label);
      }
      EXPECT_LE(labels.size(), 20u) << longest << " " << seen;
      EXPECT_EQ(buckets.Label(longest + 7), last);
      EXPECT_EQ(buckets.Label(0), *labels.begin());
    }
  }
}

}  // namespace
}  // namespace lengthwise::server
