#include "server/coordination/experiment_summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "proto/length_accuracies.h"
#include "proto/trial_counts.h"
#include "server/storage/records.h"

namespace lengthwise::server {
namespace {

constexpr double kUnits = 1099511627776;  // 2^40

// Statistics over trials that differ only in seeds, one value per trial.

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// With n - 1 in the denominator, as in tables of few seeds. Computed in two passes, so that values
// that differ little keep their difference.
double SampleStandardDeviation(absl::Span<const double> values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (static_cast<double>(values.size()) - 1));
}

// The quantile `q`, from 0 to 1, with linear interpolation between the two nearest values (NumPy's
// default). 0.5 is the median. There is at least one value.
double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

// Empty without values. The deviation is the sample's, 0 for one value.
v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values) {
  v1::SummarizeExperimentResponse::Statistic statistic;
  if (values.empty()) return statistic;
  statistic.set_trials(static_cast<int32_t>(values.size()));
  statistic.set_mean(Mean(values));
  statistic.set_deviation(values.size() < 2 ? 0 : SampleStandardDeviation(values));
  statistic.set_min(*std::min_element(values.begin(), values.end()));
  statistic.set_max(*std::max_element(values.begin(), values.end()));
  return statistic;
}

void Fill(const std::vector<double>& values, v1::SummarizeExperimentResponse::Quantiles& answer) {
  if (values.empty()) return;
  answer.set_trials(static_cast<int32_t>(values.size()));
  answer.set_median(Quantile(values, 0.5));
  answer.set_low(Quantile(values, 0.1));
  answer.set_high(Quantile(values, 0.9));
}

}  // namespace

void ExperimentSummary::Add(Trial trial) {
  const int32_t index = trial.index;
  const auto [member, is_new] = members_.try_emplace(index);
  if (!is_new) return;
  const auto [cell, is_new_cell] =
      cell_of_.try_emplace(CellKey(std::move(trial.task), std::move(trial.network),
                                   std::move(trial.encoding), trial.learning_rate),
                           cells_.size());
  if (is_new_cell) cells_.emplace_back().key = cell->first;
  std::vector<int32_t>& members = cells_[cell->second].members;
  members.insert(std::upper_bound(members.begin(), members.end(), index), index);
  member->second.cell = cell->second;
  member->second.trial = std::move(trial);
}

ExperimentSummary::Member* ExperimentSummary::FindUnended(int32_t index) {
  const auto found = members_.find(index);
  return found == members_.end() || HasEnded(found->second.state) ? nullptr : &found->second;
}

void ExperimentSummary::SetState(int32_t index, v1::TrialState state) {
  if (Member* const member = FindUnended(index); member != nullptr) member->state = state;
}

void ExperimentSummary::AddAccuracy(int32_t length, double accuracy, size_t hint, Cell& cell) {
  std::vector<LengthSum>& lengths = cell.lengths;
  auto place = lengths.begin() + static_cast<ptrdiff_t>(std::min(hint, lengths.size()));
  if (place == lengths.end() || place->length != length) {
    place =
        std::lower_bound(lengths.begin(), lengths.end(), length,
                         [](const LengthSum& sum, int32_t wanted) { return sum.length < wanted; });
    if (place == lengths.end() || place->length != length) {
      place = lengths.insert(place, LengthSum{.length = length});
    }
  }
  ++place->trials;
  place->sum += std::llround(accuracy * kUnits);
}

void ExperimentSummary::Succeed(int32_t index, const v1::LengthAccuracies& accuracies,
                                const v1::Outcome& outcome) {
  Member* const member = FindUnended(index);
  if (member == nullptr) return;
  member->state = v1::SUCCEEDED;
  for (int i = 0; i < accuracies.lengths_size(); ++i) {
    const int32_t length = accuracies.lengths(i);
    // The trials of a cell usually have the same lengths, so the sum is at the same index.
    AddAccuracy(length, ClampAccuracy(accuracies.accuracies(i)), static_cast<size_t>(i),
                cells_[member->cell]);
  }
  v1::LengthAccuracies kept = accuracies;
  kept.clear_accuracies();
  kept.clear_metrics();
  kept.clear_sequence_counts();
  if (!member->trial.compared_by_loss) {
    kept.clear_lengths();
    kept.clear_losses();
  }
  member->evaluation = kept;  // a copy, because a cleared column keeps its memory
  // An evaluation of a stored model trains nothing. Workers of older releases did not report
  // training steps; assume all of them.
  member->training_seconds = outcome.training_seconds();
  if (outcome.training_steps() > 0) member->trial.steps = outcome.training_steps();
}

v1::SummarizeExperimentResponse ExperimentSummary::Summarize(absl::string_view select) const {
  std::vector<const Cell*> cells;
  cells.reserve(cells_.size());
  for (const Cell& cell : cells_) cells.push_back(&cell);
  std::sort(cells.begin(), cells.end(),
            [](const Cell* a, const Cell* b) { return a->members.front() < b->members.front(); });
  v1::SummarizeExperimentResponse response;
  response.mutable_cells()->Reserve(static_cast<int>(cells.size()));
  for (const Cell* cell : cells) FillCell(*cell, select, *response.add_cells());
  return response;
}

void ExperimentSummary::FillCell(const Cell& cell, absl::string_view select,
                                 v1::SummarizeExperimentResponse::Cell& answer) const {
  answer.set_task(std::get<0>(cell.key));
  answer.set_network(std::get<1>(cell.key));
  answer.set_encoding(std::get<2>(cell.key));
  answer.set_learning_rate(std::get<3>(cell.key));
  std::vector<double> unseen, seen, training, seconds, rates, unseen_losses, seen_losses;
  std::vector<double> scores, score_losses;
  const Member* best = nullptr;
  std::optional<SelectionScore> highest;
  for (const int32_t index : cell.members) {
    const Member& member = members_.at(index);
    const v1::LengthAccuracies& evaluation = member.evaluation;
    const bool by_loss = member.trial.compared_by_loss;
    CountTrials(member.state, 1, *answer.mutable_trials());
    if (evaluation.has_unseen_accuracy()) {
      unseen.push_back(evaluation.unseen_accuracy());
      if (by_loss) unseen_losses.push_back(evaluation.unseen_loss());
    }
    if (evaluation.has_seen_accuracy()) {
      seen.push_back(evaluation.seen_accuracy());
      if (by_loss) seen_losses.push_back(evaluation.seen_loss());
    }
    if (evaluation.has_training_accuracy()) {
      training.push_back(ClampAccuracy(evaluation.training_accuracy()));
    }
    if (member.training_seconds > 0) {
      seconds.push_back(member.training_seconds);
      rates.push_back(static_cast<double>(member.trial.steps) / member.training_seconds);
    }
    const bool by_unseen = select.empty() ? member.trial.select_unseen : select == "unseen";
    const std::optional<SelectionScore> score =
        ScoreForSelection(by_unseen ? "unseen" : "seen", by_loss, evaluation);
    if (score.has_value()) {
      scores.push_back(score->score);
      score_losses.push_back(score->loss);
      if (!highest.has_value() || IsBetter(*score, *highest)) {
        best = &member;
        highest = score;
      }
    } else if (member.state == v1::SUCCEEDED && cell.members.size() == 1) {
      best = &member;  // there is no choice
    }
  }
  *answer.mutable_unseen_accuracy() = SeedStatistic(unseen);
  *answer.mutable_seen_accuracy() = SeedStatistic(seen);
  if (!training.empty()) {
    *answer.mutable_training_accuracy() = SeedStatistic(training);
  }
  *answer.mutable_training_seconds() = SeedStatistic(seconds);
  *answer.mutable_steps_per_second() = SeedStatistic(rates);
  *answer.mutable_selection() = SeedStatistic(scores);
  if (highest.has_value()) {
    answer.set_selection_loss(Mean(score_losses));
    answer.set_best_loss(highest->loss);
  }
  if (best != nullptr) {
    answer.set_best_trial(best->trial.id);
    if (best->evaluation.has_unseen_accuracy()) {
      answer.set_best_unseen_accuracy(best->evaluation.unseen_accuracy());
    }
  }
  if (!seen_losses.empty()) Fill(seen_losses, *answer.mutable_seen_loss());
  if (!unseen_losses.empty()) Fill(unseen_losses, *answer.mutable_unseen_loss());
  answer.mutable_lengths()->Reserve(static_cast<int>(cell.lengths.size()));
  answer.mutable_mean_accuracies()->Reserve(static_cast<int>(cell.lengths.size()));
  for (const LengthSum& sum : cell.lengths) {
    answer.add_lengths(sum.length);
    answer.add_mean_accuracies(static_cast<double>(sum.sum) / (kUnits * sum.trials));
  }
  FillLosses(cell, answer);
}

void ExperimentSummary::FillLosses(const Cell& cell,
                                   v1::SummarizeExperimentResponse::Cell& answer) const {
  std::map<int32_t, std::vector<double>> by_length;
  for (const int32_t index : cell.members) {
    const v1::LengthAccuracies& evaluation = members_.at(index).evaluation;
    for (int i = 0; i < evaluation.lengths_size(); ++i) {
      by_length[evaluation.lengths(i)].push_back(evaluation.losses(i));
    }
  }
  if (by_length.empty()) return;
  for (const LengthSum& sum : cell.lengths) Fill(by_length[sum.length], *answer.add_losses());
}

}  // namespace lengthwise::server
