#include "client/watching/lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

std::vector<v1::Trial> Trials(int count) {
  std::vector<v1::Trial> trials(count);
  for (int i = 0; i < count; ++i) {
    trials[i].set_name(absl::StrCat("experiments/e-1/trials/", i));
    v1::TrialSpecification& specification = *trials[i].mutable_specification();
    specification.mutable_encoding()->set_name(absl::StrCat("encoding", i));
    specification.mutable_training()->set_steps(2000);
    specification.mutable_evaluation()->set_seen_up_to(10);
  }
  return trials;
}

class LinesTest : public testing::Test {
 protected:
  v1::Event Next(int trial, int64_t seconds) {
    v1::Event event;
    event.set_position(++position_);
    event.set_trial(absl::StrCat("experiments/e-1/trials/", trial));
    event.mutable_time()->set_seconds(seconds);
    return event;
  }
  v1::Event Change(int trial, int64_t seconds, v1::TrialState to, const std::string& reason = "") {
    v1::Event event = Next(trial, seconds);
    event.mutable_state_change()->set_to(to);
    event.mutable_state_change()->set_reason(reason);
    event.mutable_state_change()->set_worker("worker-1");
    event.set_attempt(1);
    return event;
  }
  v1::Event Point(int trial, int64_t seconds, int64_t step, float loss) {
    v1::Event event = Next(trial, seconds);
    event.mutable_training_points()->add_steps(step);
    event.mutable_training_points()->add_losses(loss);
    return event;
  }
  static std::string Draw(const ExperimentView& view, int width, int height) {
    return absl::StrJoin(LiveLines(view,
                                   {.title = "e-1",
                                    .width = width,
                                    .height = height,
                                    .elapsed = absl::Seconds(95),
                                    .now = absl::FromUnixSeconds(100)},
                                   Palette(false)),
                         "\n");
  }

  int64_t position_ = 0;
};

TEST_F(LinesTest, ShowsEachTrialsStateBarLossSpeedAndTimeLeft) {
  ExperimentView view(Trials(3), true);
  view.Apply(Change(0, 5, v1::RUNNING));
  view.Apply(Point(0, 40, 2000, 0.21f));
  v1::Event accuracies = Next(0, 45);
  accuracies.set_step(2000);
  accuracies.mutable_length_accuracies()->set_final(true);
  accuracies.mutable_length_accuracies()->add_lengths(20);
  accuracies.mutable_length_accuracies()->add_accuracies(0.885);
  accuracies.mutable_length_accuracies()->set_unseen_accuracy(0.885);
  view.Apply(accuracies);
  view.Apply(Change(0, 57, v1::SUCCEEDED));
  view.Apply(Change(1, 57, v1::RUNNING));
  v1::TrialProgress progress;
  progress.set_trial("experiments/e-1/trials/1");
  progress.set_attempt(1);
  progress.set_phase(v1::TrialProgress::TRAINING);
  progress.set_done(1000);
  progress.set_total(2000);
  progress.set_steps_per_second(40);
  progress.set_seconds_left(25);
  progress.set_loss(0.3125f);
  view.Apply(progress);
  EXPECT_EQ(
      Draw(view, 110, 24),
      "e-1  ━━━━━━━━━━━━━━━━━━━━────────────────────  50 %  1 running, 1 queued, 1 done · 1:35, "
      "about 1:15 left\n"
      "  trial      state       progress                               step     loss  unseen  "
      "steps/s       time\n"
      "✓ encoding0  done        ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  2,000/2,000   0.2100   88.5%   "
      "             0:52\n"
      "● encoding1  training    ━━━━━━━━━━━━━━━───────────────  1,000/2,000   0.3125           "
      "  40.0  0:25 left\n"
      "· encoding2  queued      ──────────────────────────────");
  // A narrow terminal keeps the most informative columns.
  EXPECT_EQ(Draw(view, 79, 24),
            "e-1  ━━━━━━━╸───────  50 %  1 running, 1 queued, 1 done · 1:35, about 1:15 left\n"
            "  trial      state       progress              loss  unseen  steps/s       time\n"
            "✓ encoding0  done        ━━━━━━━━━━━━━━━━━   0.2100   88.5%                0:52\n"
            "● encoding1  training    ━━━━━━━━╸────────   0.3125             40.0  0:25 left\n"
            "· encoding2  queued      ─────────────────");
}

// As the table of results: its accuracy, by closeness, is 0 in most trials.
TEST_F(LinesTest, ShowsErrorsOfARegression) {
  std::vector<v1::Trial> trials = Trials(1);
  trials[0].mutable_specification()->mutable_task()->set_name("cumulative_sum");
  ExperimentView view(trials, true);
  view.Apply(Change(0, 5, v1::RUNNING));
  v1::Event event = Next(0, 45);
  event.set_step(2000);
  v1::LengthAccuracies& measured = *event.mutable_length_accuracies();
  measured.set_final(true);
  for (const auto& [length, loss] : {std::pair(5, 0.25), {10, 0.75}, {20, 2e-5}}) {
    measured.add_lengths(length);
    measured.add_accuracies(0);
    measured.add_losses(loss);
  }
  measured.set_seen_accuracy(0);
  measured.set_unseen_accuracy(0);
  measured.set_seen_loss(0.5);
  measured.set_unseen_loss(2e-5);
  view.Apply(event);
  PlainLines lines(absl::ZeroDuration(), absl::UTCTimeZone());
  EXPECT_EQ(lines.Line(view, event).value_or(""),
            "00:00:45  encoding0  mean squared error after step 2,000 (final): seen 0.5000, unseen "
            "2.0e-05");
  EXPECT_THAT(Draw(view, 110, 24), testing::HasSubstr(" 2.0e-05 "));
}

TEST_F(LinesTest, HeadlineReportsLostConnectionAndReturn) {
  ExperimentView view(Trials(1), true);
  view.Apply(Change(0, 5, v1::RUNNING));
  const auto headline = [&](const LinkState& link, int64_t now) {
    return LiveLines(view,
                     {.title = "e-1",
                      .width = 110,
                      .height = 1,
                      .elapsed = absl::Seconds(now),
                      .now = absl::FromUnixSeconds(now),
                      .link = link},
                     Palette(false))
        .at(0);
  };
  LinkState link;
  EXPECT_FALSE(link.Update(absl::OkStatus(), absl::FromUnixSeconds(90)));
  EXPECT_TRUE(link.Update(absl::UnavailableError("nobody at n07"), absl::FromUnixSeconds(100)));
  EXPECT_FALSE(link.Update(absl::UnavailableError("nobody at n07"), absl::FromUnixSeconds(105)));
  EXPECT_EQ(headline(link, 112),
            "e-1  ─────────────────────────  0 %  connection lost 0:12 ago, trying again · 1 "
            "running · 1:52 "
            "· nobody at n07");
  EXPECT_TRUE(link.Update(absl::OkStatus(), absl::FromUnixSeconds(120)));
  EXPECT_EQ(headline(link, 140),
            "e-1  ────────────────────────────────────────  0 %  connected again after 0:20 · 1 "
            "running · 2:20");
  EXPECT_EQ(headline(link, 151),
            "e-1  ────────────────────────────────────────  0 %  1 running · 2:31");
}

TEST_F(LinesTest, FitsEveryTerminalSize) {
  ExperimentView view(Trials(40), true);
  for (int i = 0; i < 10; ++i) view.Apply(Change(i, 5, v1::RUNNING));
  view.Apply(Change(7, 6, v1::FAILED, "the loss was not a number at step 300, twice in a row"));
  for (int width = 1; width <= 160; width += 3) {
    for (int height = 1; height <= 50; height += 7) {
      const auto lines = LiveLines(view,
                                   {.title = "long-name-of-an-experiment-17",
                                    .width = width,
                                    .height = height,
                                    .elapsed = absl::Hours(3),
                                    .now = absl::FromUnixSeconds(100)},
                                   Palette(true));
      EXPECT_LE(lines.size(), static_cast<size_t>(height));
      if (width < 30) continue;  // narrower ones are cut off by the terminal
      for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
}

TEST_F(LinesTest, LossAndAccuracyComeBeforeBars) {
  ExperimentView view(Trials(2), true);
  view.Apply(Change(0, 5, v1::RUNNING));
  view.Apply(Point(0, 6, 100, 1.5f));
  EXPECT_THAT(Draw(view, 40, 6), testing::HasSubstr("loss  unseen\n"));
  EXPECT_THAT(Draw(view, 40, 6), testing::HasSubstr("1.500"));
}

TEST_F(LinesTest, HidesTheLeastUrgentTrials) {
  ExperimentView view(Trials(6), true);
  view.Apply(Change(4, 5, v1::RUNNING));
  view.Apply(Change(2, 6, v1::FAILED, "no luck"));
  view.Apply(Change(1, 7, v1::SUCCEEDED));
  EXPECT_EQ(Draw(view, 40, 6),
            "e-1  33 %  1 running, 3 queued, 1 done,…\n"
            "  trial      state          loss  unseen\n"
            "● encoding4  starting\n"
            "✗ encoding2  failed      no luck\n"
            "✓ encoding1  done\n"
            "  and 3 more: 3 queued");
}

TEST_F(LinesTest, PlainLinesTellTheStory) {
  ExperimentView view(Trials(2), true);
  PlainLines plain(absl::Seconds(10), absl::UTCTimeZone());
  std::vector<std::string> lines;
  const auto apply = [&](const v1::Event& event) {
    view.Apply(event);
    if (const auto line = plain.Line(view, event); line.has_value()) lines.push_back(*line);
  };
  apply(Change(0, 3600, v1::RUNNING));
  apply(Point(0, 3605, 100, 2.0f));  // too soon
  v1::Event point = Point(0, 3612, 200, 1.5f);
  point.mutable_training_points()->add_mean_losses(1.75f);
  apply(point);
  apply(Point(0, 3614, 300, 1.25f));
  apply(Point(0, 3615, 2000, 0.5f));  // the last, of an old worker
  v1::Event resumed = Change(0, 3620, v1::RUNNING);
  resumed.mutable_state_change()->set_resumed_from_step(1000);
  apply(resumed);
  apply(Change(0, 3625, v1::FAILED, "the loss is not a number"));
  EXPECT_EQ(absl::StrJoin(lines, "\n"),
            "01:00:00  encoding0  started on worker-1\n"
            "01:00:12  encoding0  step 200/2,000  loss 1.750 (last batch 1.500)\n"
            "01:00:15  encoding0  step 2,000/2,000  loss 0.5000\n"
            "01:00:20  encoding0  resumed from step 1,000 on worker-1\n"
            "01:00:25  encoding0  failed: the loss is not a number");
}

}  // namespace
}  // namespace lengthwise::client
