#include "client/watching/plain_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/display/numbers.h"

namespace lengthwise::client {
namespace {

std::string Change(const v1::StateChange& change) {
  switch (change.to()) {
    case v1::QUEUED:
      return "queued";
    case v1::RUNNING:
      return change.resumed_from_step() > 0
                 ? absl::StrCat("resumed from step ", FormatCount(change.resumed_from_step()),
                                " on ", change.worker())
                 : absl::StrCat("started on ", change.worker());
    case v1::SUCCEEDED:
      return "done";
    case v1::FAILED:
      return "failed";
    case v1::CANCELLED:
      return "cancelled";
    default:
      return "changed its state";
  }
}

std::string Accuracies(const TrialView::Accuracy& accuracy) {
  std::string text;
  if (accuracy.seen) absl::StrAppend(&text, "seen ", FormatPercent(*accuracy.seen), " %");
  if (accuracy.unseen) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "unseen ", FormatPercent(*accuracy.unseen),
                    " %");
  }
  return text;
}

}  // namespace

std::optional<std::string> PlainLines::Line(const ExperimentView& view, const v1::Event& event) {
  const TrialView* trial = view.Find(event.trial());
  if (trial == nullptr) return std::nullopt;
  const absl::Time time =
      absl::FromUnixSeconds(event.time().seconds()) + absl::Nanoseconds(event.time().nanos());
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
                          FormatLoss(*points.losses().rbegin()));
      break;
    }
    case v1::Event::kLengthAccuracies:
      text = absl::StrCat("accuracy after step ", FormatCount(event.step()),
                          event.length_accuracies().final() ? " (final): " : ": ",
                          Accuracies(trial->accuracies.at(event.step())));
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
