#include "client/watching/lines.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/display/numbers.h"
#include "client/watching/experiment_view.h"
#include "proto/timestamps.h"
#include "proto/training_points.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

// Time for which the headline still tells of a lost connection.
constexpr absl::Duration kNoteBack = absl::Seconds(30);

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

// The columns after the state, in their order.
enum Column { kBar, kSteps, kLoss, kAccuracy, kSpeed, kTime };
using Cells = std::array<std::string, kTime + 1>;

// Width of the state.
constexpr int kWord = 10;

struct Layout {
  LabelFit fit;
  int label = 0;
  // Of the columns; 0 leaves one out.
  std::array<int, kTime + 1> widths = {};
  // True if the column of the accuracy is the one on unseen lengths. False if trials have only the
  // one on seen lengths.
  bool unseen = true;
};

// Formats a value of TrialView::accuracies: a loss, or per cent with `sign`.
std::string FormatAccuracy(const TrialView& trial, double value, const char* sign) {
  if (!trial.loss_title.empty()) return FormatLoss(value);
  return absl::StrCat(FormatPercent(value), sign);
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

Layout ChooseLayout(const ExperimentView& view, const std::vector<const TrialView*>& shown,
                    const LiveLinesOptions& options) {
  // Labels get two fifths of the width, half of a narrow terminal, or more if they would not be
  // distinct.
  const int wanted = std::max({8, options.width * 2 / 5, std::min(40, options.width / 2)});
  const int most = std::max(8, options.width - (1 + 1 + 2 + kWord));
  Layout layout{.fit = LabelFit(view.trials(), std::min(wanted, most), most)};
  int64_t most_steps = 1;
  bool any_accuracy = false;
  bool any_unseen = false;
  bool any_losses = false;
  // Covers all trials, so that columns do not move when other trials are shown.
  for (const TrialView& trial : view.trials()) {
    most_steps = std::max(most_steps, trial.total_steps);
    any_losses = any_losses || !trial.loss_title.empty();
    if (trial.accuracies.empty()) continue;
    any_accuracy = true;
    any_unseen = any_unseen || trial.accuracies.rbegin()->second.unseen.has_value();
  }
  layout.unseen = any_unseen || !any_accuracy;
  layout.label = std::max(5, layout.fit.width());  // "trial"
  int longest_time = 9;                            // "0:25 left"
  for (const TrialView* trial : shown) {
    longest_time = std::max(longest_time, DisplayWidth(TimeOf(*trial, options.now)));
  }
  int left = options.width - (1 + 1 + layout.label + 2 + kWord);
  // The most informative columns get their room first.
  const auto take = [&](Column column, int wanted) {
    if (left < wanted + 2) return;
    layout.widths[column] = wanted;
    left -= wanted + 2;
  };
  take(kAccuracy, any_losses ? 7 : 6);  // "1.2e-05", "100.0%"
  take(kLoss, 7);                       // "1.2e-05"
  take(kBar, 8);
  take(kTime, longest_time);
  take(kSpeed, 7);  // "steps/s"
  take(kSteps, 2 * static_cast<int>(FormatCount(most_steps).size()) + 1);
  if (layout.widths[kBar] > 0) layout.widths[kBar] += std::clamp(left, 0, 22);
  return layout;
}

std::string Join(const Layout& layout, const Cells& cells) {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    const int width = layout.widths[c];
    if (width == 0) continue;
    absl::StrAppend(&line, "  ", c == kBar ? PadRight(cells[c], width) : PadLeft(cells[c], width));
  }
  return line;
}

std::string Columns(const Layout& layout, const Palette& palette) {
  std::string line = absl::StrCat(
      "  ", PadRight("trial", layout.label), "  ", PadRight("state", kWord),
      Join(layout,
           {"progress", "step", "loss", layout.unseen ? "unseen" : "seen", "steps/s", "time"}));
  line.erase(line.find_last_not_of(' ') + 1);
  return palette(Paint::kDim, line);
}

std::string TrialLine(const TrialView& trial, const Layout& layout, const LiveLinesOptions& options,
                      const Palette& palette) {
  const Look look = LookOf(trial);
  std::string line = absl::StrCat(palette(look.paint, look.sign), " ",
                                  PadRight(Truncate(layout.fit(trial), layout.label), layout.label),
                                  "  ", palette(look.paint, PadRight(look.word, kWord)));
  if (trial.state == v1::FAILED || trial.state == v1::CANCELLED) {
    const int room = options.width - DisplayWidth(line) - 2;
    if (room > 0) absl::StrAppend(&line, "  ", Truncate(trial.reason, room));
    return line;
  }
  const bool training = trial.state == v1::RUNNING && trial.phase == v1::TrialProgress::TRAINING;
  const bool evaluating =
      trial.state == v1::RUNNING && trial.phase == v1::TrialProgress::EVALUATING;
  Cells cells;
  cells[kBar] = ProgressBar(trial.fraction(), layout.widths[kBar], look.paint, palette);
  cells[kTime] = TimeOf(trial, options.now);
  if (evaluating && trial.lengths_total > 0) {
    const std::string lengths = absl::StrCat(trial.lengths_done, "/", trial.lengths_total);
    const bool fits = DisplayWidth(lengths) + 8 <= layout.widths[kSteps];
    cells[kSteps] = absl::StrCat(lengths, fits ? " lengths" : "");
  } else if (trial.state != v1::QUEUED || trial.steps_done > 0) {
    cells[kSteps] =
        absl::StrCat(FormatCount(trial.steps_done), "/", FormatCount(trial.total_steps));
  }
  if (const auto loss = trial.loss(); loss.has_value()) cells[kLoss] = FormatLoss(*loss);
  if (!trial.accuracies.empty()) {
    const TrialView::Accuracy& last = trial.accuracies.rbegin()->second;
    const std::optional<double> accuracy = layout.unseen ? last.unseen : last.seen;
    cells[kAccuracy] = accuracy ? FormatAccuracy(trial, *accuracy, "%") : "–";
  }
  if (training && trial.steps_per_second > 0) cells[kSpeed] = FormatRate(trial.steps_per_second);
  line += Join(layout, cells);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Headline(const ExperimentView& view, const LiveLinesOptions& options,
                     const Palette& palette) {
  const std::string percent =
      absl::StrCat(static_cast<int>(std::floor(100 * view.fraction())), " %");
  std::string details =
      absl::StrCat(DescribeCounts(view.Counts()), " · ", FormatClock(options.elapsed));
  if (!view.all_ended()) {
    if (const auto left = view.time_left(); left.has_value()) {
      absl::StrAppend(&details, ", about ", FormatClock(*left), " left");
    }
  }
  // The reason comes last, because it may be cut off.
  if (options.link.lost()) absl::StrAppend(&details, " · ", options.link.reason());
  std::string note = options.link.Note(options.now);
  if (!note.empty()) details = absl::StrCat(" · ", details);
  const std::string title = Truncate(options.title, std::max(1, options.width / 3));
  const int fixed = DisplayWidth(title) + 2 + 2 + DisplayWidth(percent) + 2;
  const int room = options.width - fixed - DisplayWidth(details) - DisplayWidth(note);
  const int bar = std::clamp(room, 0, 40);
  std::string line = palette(Paint::kBold, title);
  if (bar >= 6) {
    absl::StrAppend(&line, "  ", ProgressBar(view.fraction(), bar, Paint::kGreen, palette));
  }
  absl::StrAppend(&line, "  ", percent, "  ");
  note = Truncate(note, options.width - DisplayWidth(line));
  absl::StrAppend(&line, palette(options.link.lost() ? Paint::kYellow : Paint::kGreen, note));
  return absl::StrCat(line, Truncate(details, options.width - DisplayWidth(line)));
}

// Sort key when there is no room for all trials; smaller values come first.
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

bool LinkState::Update(const absl::Status& connection, absl::Time now) {
  const bool was_lost = lost();
  connection_ = connection;
  if (was_lost == lost()) return false;
  (lost() ? lost_ : back_) = now;
  return true;
}

std::string LinkState::Note(absl::Time now) const {
  if (lost()) {
    return absl::StrCat("connection lost ", FormatClock(now - lost_), " ago, trying again");
  }
  if (back_ == absl::InfinitePast() || now - back_ > kNoteBack) return "";
  return absl::StrCat("connected again after ", FormatClock(back_ - lost_));
}

std::string StateWord(v1::TrialState state) {
  return absl::AsciiStrToLower(v1::TrialState_Name(state));
}

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
  // One line for the headline, and one for the column names if at least three more fit.
  size_t room = static_cast<size_t>(std::max(1, options.height)) - 1;
  const bool columns = room >= 4 && !shown.empty();
  if (columns) --room;
  if (room == 0) return lines;
  v1::TrialCounts hidden;
  if (shown.size() > room) {
    std::stable_sort(shown.begin(), shown.end(), [](const TrialView* a, const TrialView* b) {
      if (Urgency(*a) != Urgency(*b)) return Urgency(*a) < Urgency(*b);
      return Urgency(*a) == 2 && a->end_time > b->end_time;
    });
    for (; shown.size() >= room; shown.pop_back()) CountTrials(shown.back()->state, 1, hidden);
  }
  const Layout layout = ChooseLayout(view, shown, options);
  if (columns) lines.push_back(Columns(layout, palette));
  for (const TrialView* trial : shown) {
    lines.push_back(TrialLine(*trial, layout, options, palette));
  }
  if (AllTrials(hidden) > 0) {
    const std::string rest =
        absl::StrCat("  and ", FormatCount(AllTrials(hidden)), " more: ", DescribeCounts(hidden));
    lines.push_back(palette(Paint::kDim, Truncate(rest, options.width)));
  }
  return lines;
}

namespace {

std::string Change(const v1::StateChange& change) {
  if (change.to() == v1::SUCCEEDED) return "done";
  if (change.to() != v1::RUNNING) return StateWord(change.to());
  return change.resumed_from_step() > 0
             ? absl::StrCat("resumed from step ", FormatCount(change.resumed_from_step()), " on ",
                            change.worker())
             : absl::StrCat("started on ", change.worker());
}

std::string Accuracies(const TrialView& trial, const TrialView::Accuracy& accuracy) {
  std::string text;
  if (accuracy.seen) absl::StrAppend(&text, "seen ", FormatAccuracy(trial, *accuracy.seen, " %"));
  if (accuracy.unseen) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "unseen ",
                    FormatAccuracy(trial, *accuracy.unseen, " %"));
  }
  return text;
}

}  // namespace

std::optional<std::string> PlainLines::Line(const ExperimentView& view, const v1::Event& event) {
  const TrialView* trial = view.Find(event.trial());
  if (trial == nullptr) return std::nullopt;
  const absl::Time time = ToTime(event.time());
  std::string text;
  switch (event.fact_case()) {
    case v1::Event::kStateChange: {
      const v1::StateChange& change = event.state_change();
      text = Change(change);
      if (!change.reason().empty() && change.to() != v1::RUNNING && change.to() != v1::SUCCEEDED) {
        absl::StrAppend(&text, ": ", change.reason());
      }
      if (change.to() == v1::RUNNING) last_[event.trial()] = time;
      break;
    }
    case v1::Event::kTrainingPoints: {
      const v1::TrainingPoints& points = event.training_points();
      const bool at_end = trial->steps_done >= trial->total_steps;
      absl::Time& last = last_[event.trial()];
      if (points.steps_size() == 0 || points.losses_size() != points.steps_size()) break;
      if (time < last + interval_ && !at_end) break;
      last = time;
      text = absl::StrCat("step ", FormatCount(*points.steps().rbegin()), "/",
                          FormatCount(trial->total_steps), "  loss ",
                          FormatLoss(MeanLoss(points, points.steps_size() - 1)));
      if (points.mean_losses_size() > 0) {
        absl::StrAppend(&text, " (last batch ", FormatLoss(*points.losses().rbegin()), ")");
      }
      break;
    }
    case v1::Event::kLengthAccuracies:
      text = absl::StrCat(trial->loss_title.empty() ? "accuracy" : trial->loss_title,
                          " after step ", FormatCount(event.step()),
                          event.length_accuracies().final() ? " (final): " : ": ",
                          Accuracies(*trial, trial->accuracies.at(event.step())));
      break;
    case v1::Event::kLogLine:
      if (event.log_line().severity() != v1::LogLine::INFO) text = event.log_line().text();
      break;
    default:
      break;
  }
  if (text.empty()) return std::nullopt;
  // Indents continuation lines, so that a multi-line text stays one entry.
  return absl::StrCat(absl::FormatTime("%H:%M:%S", time, zone_), "  ", trial->label, "  ",
                      absl::StrReplaceAll(text, {{"\n", "\n    "}}));
}

}  // namespace lengthwise::client
