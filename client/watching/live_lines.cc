#include "client/watching/live_lines.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/rendering/numbers.h"
#include "client/rendering/progress_bar.h"

namespace lengthwise::client {
namespace {

struct Look {
  const char* sign;
  const char* word;
  Paint paint;
};

Look LookOf(const TrialView& trial) {
  switch (trial.state) {
    case v1::RUNNING:
      if (trial.phase == v1::TrialProgress::EVALUATING) return {"●", "evaluating", Paint::kCyan};
      if (trial.phase == v1::TrialProgress::TRAINING) return {"●", "training", Paint::kCyan};
      return {"●", trial.attempt > 1 ? "resuming" : "starting", Paint::kCyan};
    case v1::SUCCEEDED:
      return {"✓", "done", Paint::kGreen};
    case v1::FAILED:
      return {"✗", "failed", Paint::kRed};
    case v1::CANCELLED:
      return {"–", "cancelled", Paint::kYellow};
    default:
      return {"·", "queued", Paint::kDim};
  }
}

// Widths of the parts of a trial's line; 0 leaves one out.
struct Layout {
  int label = 0;
  int word = 10;
  int bar = 0;
  int steps = 0;
  int loss = 0;
  int speed = 0;
  int time = 0;
  int accuracy = 0;
};

Layout ChooseLayout(const ExperimentView& view, int width) {
  Layout layout;
  int64_t most_steps = 1;
  for (const TrialView& trial : view.trials()) {
    layout.label = std::max(layout.label, DisplayWidth(trial.label));
    most_steps = std::max(most_steps, trial.total_steps);
  }
  layout.label = std::min(layout.label, std::max(8, width / 3));
  int left = width - (1 + 1 + layout.label + 2 + layout.word);
  // The most telling parts get their room first.
  const auto take = [&](int& part, int wanted) {
    if (left < wanted + 2) return;
    part = wanted;
    left -= wanted + 2;
  };
  take(layout.bar, 8);
  take(layout.loss, 11);  // "loss 0.3125"
  take(layout.time, 9);   // "1:02 left"
  take(layout.steps, 2 * static_cast<int>(FormatCount(most_steps).size()) + 1);
  take(layout.speed, 12);     // "38.1 steps/s"
  take(layout.accuracy, 12);  // "unseen 88.3%"
  if (layout.bar > 0) {
    const int more = std::clamp(left, 0, 22);
    layout.bar += more;
  }
  return layout;
}

// What a trial's evaluations said last of the lengths not seen.
std::string UnseenAccuracy(const TrialView& trial) {
  if (trial.accuracies.empty()) return "";
  const TrialView::Accuracy& last = trial.accuracies.rbegin()->second;
  if (!std::isnan(last.unseen)) return absl::StrCat("unseen ", FormatPercent(last.unseen), "%");
  return absl::StrCat("seen ", FormatPercent(last.seen), "%");
}

std::string TimeOf(const TrialView& trial, absl::Time now) {
  if (trial.state == v1::RUNNING) {
    if (trial.seconds_left > 0) {
      return absl::StrCat(FormatClock(absl::Seconds(trial.seconds_left)), " left");
    }
    return FormatClock(now - trial.start_time);
  }
  if (trial.ended() && trial.start_time != absl::InfinitePast()) {
    return FormatClock(trial.end_time - trial.start_time);
  }
  return "";
}

std::string TrialLine(const TrialView& trial, const Layout& layout, const LiveLinesOptions& options,
                      const Palette& palette) {
  const Look look = LookOf(trial);
  std::string line = absl::StrCat(palette(look.paint, look.sign), " ",
                                  PadRight(Truncate(trial.label, layout.label), layout.label), "  ",
                                  palette(look.paint, PadRight(look.word, layout.word)));
  const auto add = [&](int width, const std::string& text, bool right) {
    if (width == 0) return;
    absl::StrAppend(&line, "  ", right ? PadLeft(text, width) : PadRight(text, width));
  };
  if (trial.state == v1::FAILED || trial.state == v1::CANCELLED) {
    const int room = options.width - DisplayWidth(line) - 2;
    if (room > 0) absl::StrAppend(&line, "  ", Truncate(trial.reason, room));
    return line;
  }
  const bool queued = trial.state == v1::QUEUED;
  if (layout.bar > 0) {
    absl::StrAppend(&line, "  ", ProgressBar(trial.fraction(), layout.bar, look.paint, palette));
  }
  std::string steps =
      absl::StrCat(FormatCount(trial.steps_done), "/", FormatCount(trial.total_steps));
  if (trial.phase == v1::TrialProgress::EVALUATING && trial.lengths_total > 0) {
    steps = absl::StrCat(trial.lengths_done, "/", trial.lengths_total, " lengths");
    if (DisplayWidth(steps) > layout.steps) {
      steps = absl::StrCat(trial.lengths_done, "/", trial.lengths_total);
    }
  }
  if (queued && trial.steps_done == 0) steps = "";
  add(layout.steps, steps, true);
  const auto loss = trial.loss();
  add(layout.loss, loss.has_value() ? absl::StrCat("loss ", FormatLoss(*loss)) : "", false);
  const bool training = trial.state == v1::RUNNING && trial.steps_per_second > 0 &&
                        trial.phase == v1::TrialProgress::TRAINING;
  add(layout.speed, training ? absl::StrCat(FormatRate(trial.steps_per_second), " steps/s") : "",
      true);
  add(layout.time, TimeOf(trial, options.now), true);
  add(layout.accuracy, UnseenAccuracy(trial), false);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Headline(const ExperimentView& view, const LiveLinesOptions& options,
                     const Palette& palette) {
  const std::string percent =
      absl::StrCat(static_cast<int>(std::floor(100 * view.fraction())), " %");
  std::string details = DescribeCounts(view.Counts());
  absl::StrAppend(&details, " · ", FormatClock(options.elapsed));
  if (!view.all_ended()) {
    if (const auto left = view.time_left(); left.has_value()) {
      absl::StrAppend(&details, ", about ", FormatClock(*left), " left");
    }
  }
  if (!options.connection.ok()) {
    details =
        absl::StrCat("connection lost, trying again: ", std::string(options.connection.message()));
  }
  const std::string title = Truncate(options.title, std::max(1, options.width / 3));
  const int fixed = DisplayWidth(title) + 2 + 2 + DisplayWidth(percent) + 2;
  const int room = options.width - fixed - DisplayWidth(details);
  const int bar = std::clamp(room, 0, 40);
  std::string line = palette(Paint::kBold, title);
  if (bar >= 6) {
    absl::StrAppend(&line, "  ", ProgressBar(view.fraction(), bar, Paint::kGreen, palette));
  }
  absl::StrAppend(&line, "  ", percent, "  ");
  details = Truncate(details, options.width - DisplayWidth(line));
  return absl::StrCat(line, options.connection.ok() ? details : palette(Paint::kYellow, details));
}

// Less comes first when there is no room for all.
int Urgency(const TrialView& trial) {
  switch (trial.state) {
    case v1::RUNNING:
      return 0;
    case v1::FAILED:
      return 1;
    case v1::SUCCEEDED:
    case v1::CANCELLED:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

std::string DescribeCounts(const v1::TrialCounts& counts) {
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* word) {
    if (count > 0) parts.push_back(absl::StrCat(FormatCount(count), " ", word));
  };
  add(counts.running(), "running");
  add(counts.queued(), "queued");
  add(counts.succeeded(), "done");
  add(counts.failed(), "failed");
  add(counts.cancelled(), "cancelled");
  return parts.empty() ? "no trials" : absl::StrJoin(parts, ", ");
}

std::vector<std::string> LiveLines(const ExperimentView& view, const LiveLinesOptions& options,
                                   const Palette& palette) {
  std::vector<std::string> lines = {Headline(view, options, palette)};
  std::vector<const TrialView*> shown;
  for (const TrialView& trial : view.trials()) shown.push_back(&trial);
  const size_t room = static_cast<size_t>(std::max(1, options.height)) - 1;
  v1::TrialCounts hidden;
  bool folded = false;
  if (shown.size() > room && room > 0) {
    folded = true;
    std::stable_sort(shown.begin(), shown.end(), [](const TrialView* a, const TrialView* b) {
      if (Urgency(*a) != Urgency(*b)) return Urgency(*a) < Urgency(*b);
      return Urgency(*a) == 2 && a->end_time > b->end_time;
    });
    for (size_t i = room - 1; i < shown.size(); ++i) {
      const v1::TrialState state = shown[i]->state;
      hidden.set_running(hidden.running() + (state == v1::RUNNING));
      hidden.set_queued(hidden.queued() + (state == v1::QUEUED));
      hidden.set_succeeded(hidden.succeeded() + (state == v1::SUCCEEDED));
      hidden.set_failed(hidden.failed() + (state == v1::FAILED));
      hidden.set_cancelled(hidden.cancelled() + (state == v1::CANCELLED));
    }
    shown.resize(room - 1);
  }
  if (room == 0) return lines;
  const Layout layout = ChooseLayout(view, options.width);
  for (const TrialView* trial : shown) {
    lines.push_back(TrialLine(*trial, layout, options, palette));
  }
  if (folded) {
    lines.push_back(
        palette(Paint::kDim,
                Truncate(absl::StrCat("  and more: ", DescribeCounts(hidden)), options.width)));
  }
  return lines;
}

}  // namespace lengthwise::client
