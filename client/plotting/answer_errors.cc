#include "client/plotting/answer_errors.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

using ErrorsByTrial = std::map<std::string, const v1::AnswerErrors*>;
using ErrorsBySize = std::map<std::string, std::map<int32_t, const v1::AnswerErrors*>>;

// By trial; a later evaluation replaces an earlier one.
ErrorsBySize ErrorsOf(const std::vector<PlotExperiment>& experiments) {
  ErrorsBySize all;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Event& event : experiment.analyses) {
      if (!event.has_answer_errors()) continue;
      all[event.trial()][event.answer_errors().length()] = &event.answer_errors();
    }
  }
  return all;
}

// The longest that all trials have. `all` is not empty.
int32_t LongestSize(const ErrorsBySize& all) {
  int32_t longest = std::numeric_limits<int32_t>::max();
  for (const auto& [trial, by_size] : all) longest = std::min(longest, by_size.rbegin()->first);
  return longest;
}

// FAILED_PRECONDITION: no trial has errors of this size.
absl::StatusOr<ErrorsByTrial> ErrorsAt(const ErrorsBySize& all, int32_t size) {
  ErrorsByTrial errors;
  std::set<int32_t> recorded;
  for (const auto& [trial, by_size] : all) {
    for (const auto& [digits, of_size] : by_size) recorded.insert(digits);
    if (const auto found = by_size.find(size); found != by_size.end()) {
      errors[trial] = found->second;
    }
  }
  if (!errors.empty()) return errors;
  return absl::FailedPreconditionError(absl::StrCat("no answers at ", size,
                                                    " digits are recorded; there are those at ",
                                                    absl::StrJoin(recorded, ", "), " digits"));
}

void AddCounts(const google::protobuf::RepeatedField<int32_t>& counts, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), static_cast<size_t>(counts.size())));
  for (int i = 0; i < counts.size(); ++i) sums[static_cast<size_t>(i)] += counts.Get(i);
}

// Of all trials of a group.
struct Sums {
  double answers = 0;
  std::vector<double> by_place, by_wrong_digits;
  double with_carry = 0, without_carry = 0;

  void Add(const v1::AnswerErrors& errors) {
    answers += errors.answers();
    AddCounts(errors.wrong_by_place(), by_place);
    AddCounts(errors.answers_by_wrong_digits(), by_wrong_digits);
    with_carry += errors.first_wrong_with_carry();
    without_carry += errors.first_wrong_without_carry();
  }
  double wrong() const { return with_carry + without_carry; }
};

// Shares of `counts` from `first` on.
std::vector<SeriesPoint> Shares(const std::vector<double>& counts, size_t first, double of) {
  std::vector<SeriesPoint> points;
  for (size_t i = first; i < counts.size() && of > 0; ++i) {
    const double share = counts[i] / of;
    points.push_back({static_cast<double>(i), share, share, share});
  }
  return points;
}

enum class What { kPlaces, kCounts };

absl::StatusOr<Figure> ErrorsFigure(const std::vector<PlotExperiment>& experiments, int32_t size,
                                    What what) {
  const ErrorsBySize all = ErrorsOf(experiments);
  if (all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no trial of ", ExperimentNames(experiments),
                     " has recorded what is wrong with its answers; trials on text do at the end "
                     "of training"));
  }
  if (size == 0) size = LongestSize(all);
  const auto errors = ErrorsAt(all, size);
  if (!errors.ok()) return errors.status();
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  Figure figure{.x = {.ticks = Axis::Ticks::kCounts}, .y = {.ticks = Axis::Ticks::kPercent}};
  if (what == What::kPlaces) {
    figure.kind = "error_places";
    figure.title = "Where digits are wrong";
    figure.x.label = "place of the digit, 0 for the least significant";
    figure.y.label = "answers wrong at it";
  } else {
    figure.kind = "error_counts";
    figure.title = "How many digits are wrong";
    figure.x.label = "wrong digits";
    figure.y.label = "of the answers with wrong digits";
  }
  absl::StrAppend(&figure.title, " at ", size, " digits: ", ExperimentNames(experiments));
  std::string carries;
  for (const v1::Component* task : TasksOf(groups)) {
    Panel panel{.title = TaskTitle(*task)};
    for (const TrialGroup& group : groups) {
      if (Label(*group.task) != Label(*task)) continue;
      const SeedGroup* seeds = BestRate(group, FinalScore(*group.experiment));
      if (seeds == nullptr) continue;
      Sums sums;
      for (const v1::Trial* trial : seeds->trials) {
        if (const auto found = errors->find(trial->name()); found != errors->end()) {
          sums.Add(*found->second);
        }
      }
      Series series{.name = group.name,
                    .style = group.style,
                    .points = what == What::kPlaces
                                  ? Shares(sums.by_place, 0, sums.answers)
                                  : Shares(sums.by_wrong_digits, 1, sums.wrong())};
      if (series.points.empty()) continue;
      absl::StrAppend(&carries, carries.empty() ? "" : ", ",
                      absl::StrFormat("%.0f %% (%s, %s)", 100 * sums.with_carry / sums.wrong(),
                                      panel.title, group.name));
      panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no digit of any answer at ", size, " digits is wrong"));
  }
  if (absl::Status status = CheckPanels(figure.panels.size()); !status.ok()) return status;
  figure.columns = PanelColumns(figure.panels.size());
  figure.caption = absl::StrCat(
      "All seeds together. Of the least significant wrong digits, so many have a carry into them: ",
      carries, ".");
  return figure;
}

}  // namespace

absl::StatusOr<Figure> ErrorPlacesFigure(const std::vector<PlotExperiment>& experiments,
                                         int32_t size) {
  return ErrorsFigure(experiments, size, What::kPlaces);
}

absl::StatusOr<Figure> ErrorCountsFigure(const std::vector<PlotExperiment>& experiments,
                                         int32_t size) {
  return ErrorsFigure(experiments, size, What::kCounts);
}

}  // namespace lengthwise::client
