#include "client/comparison/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/comparison/protocol_difference.h"

namespace lengthwise::client {
namespace {

using SummaryCell = v1::SummarizeExperimentResponse::Cell;
using Configurations = std::vector<SeedStatistic>;

constexpr double kSecondsPerHour = 3600;

int Decimals(Quantity quantity) { return quantity == Quantity::kTrainingHours ? 2 : 1; }

double Rounded(double value, int decimals) {
  const double unit = std::pow(10, decimals);
  return std::round(value * unit) / unit;
}

// The component of an axis that trials with this label have.
v1::Component FindComponent(const google::protobuf::RepeatedPtrField<v1::Component>& axis,
                            const std::string& label) {
  for (const v1::Component& component : axis) {
    if (component.label() == label) return component;
  }
  return {};
}

SeedStatistic Scaled(SeedStatistic statistic, double factor) {
  statistic.set_mean(statistic.mean() * factor);
  statistic.set_deviation(statistic.deviation() * factor);
  statistic.set_min(statistic.min() * factor);
  statistic.set_max(statistic.max() * factor);
  return statistic;
}

// Sets `best` of the cells whose `value` is the best of the row among the columns with this
// statistic: a maximum is not held against a mean.
template <typename Value>
void MarkBest(const std::vector<PublishedColumn>& columns, Statistic statistic, Quantity quantity,
              std::optional<Value> ComparisonCell::*value, bool ComparisonCell::*best,
              std::vector<ComparisonCell>& row) {
  const double sign = quantity == Quantity::kTrainingHours ? -1 : 1;
  int values = 0;
  double largest = 0;
  const auto rank = [&](const ComparisonCell& cell) {
    return sign * Rounded((cell.*value)->value, Decimals(quantity));
  };
  const auto competes = [&](size_t column) {
    return columns[column].statistic == statistic && (row[column].*value).has_value();
  };
  for (size_t column = 0; column < row.size(); ++column) {
    if (!competes(column)) continue;
    largest = values == 0 ? rank(row[column]) : std::max(largest, rank(row[column]));
    ++values;
  }
  for (size_t column = 0; column < row.size(); ++column) {
    if (!competes(column)) continue;
    row[column].*best = values > 1 && rank(row[column]) == largest;
  }
}

// What the trials of the summary's cell `index` have for a column; without trials where they have
// none.
SeedStatistic ValueOf(const v1::SummarizeExperimentResponse& summary, int index,
                      const LengthAccuracyStatistics& at_lengths, Quantity quantity,
                      const PublishedColumn& column) {
  const SummaryCell& cell = summary.cells(index);
  switch (quantity) {
    case Quantity::kUnseenAccuracy: {
      if (column.length == 0) return cell.unseen_accuracy();
      const auto found = at_lengths.find({index, column.length});
      return found == at_lengths.end() ? SeedStatistic() : found->second;
    }
    case Quantity::kTrainingAccuracy:
      return cell.training_accuracy();
    case Quantity::kTrainingHours:
      return cell.training_seconds();
    case Quantity::kAttentionCosine:
      return {};  // not of a summary
    case Quantity::kLoss:
      break;
  }
  SeedStatistic value;
  for (int i = 0; i < std::min(cell.lengths_size(), cell.losses_size()); ++i) {
    if (cell.lengths(i) != column.length) continue;
    value.set_trials(cell.losses(i).trials());
    value.set_mean(cell.losses(i).median());
  }
  return value;
}

// What times are multiplied by: hours of the paper's steps from seconds of the experiment's.
absl::StatusOr<double> HoursPerSecond(const v1::ExperimentSpecification& specification,
                                      Comparison& comparison) {
  const v1::Training& training = specification.training();
  if (training.stop_after_seconds() > 0 || training.stop_at_accuracy() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trials of this experiment may stop early, so that their times cannot be compared with ",
        comparison.table.key, "; leave stop_after_seconds and stop_at_accuracy out"));
  }
  const absl::StatusOr<int64_t> steps = StepsOfProtocol(comparison.table.protocol);
  if (!steps.ok()) return steps.status();
  comparison.steps = training.steps();
  comparison.published_steps = *steps;
  return static_cast<double>(*steps) / static_cast<double>(training.steps()) / kSecondsPerHour;
}

}  // namespace

std::string FormatQuantity(Quantity quantity, double value) {
  if (quantity == Quantity::kLoss) return absl::StrFormat("%.3g", value);
  return absl::StrFormat("%.*f", Decimals(quantity), value);
}

std::optional<double> ComparisonCell::Ratio() const {
  if (!measured.has_value() || !published.has_value() || published->value == 0) {
    return std::nullopt;
  }
  return measured->value / published->value;
}

std::optional<double> ComparisonCell::Difference(Quantity quantity) const {
  if (!measured.has_value() || !published.has_value()) return std::nullopt;
  if (quantity == Quantity::kLoss) return measured->value - published->value;
  const int decimals = Decimals(quantity);
  return Rounded(Rounded(measured->value, decimals) - Rounded(published->value, decimals),
                 decimals);
}

bool Comparison::RowWasRun(size_t row) const {
  return std::any_of(cells[row].begin(), cells[row].end(),
                     [](const ComparisonCell& cell) { return cell.measured.has_value(); });
}

bool Comparison::ColumnWasRun(size_t column) const {
  return std::any_of(cells.begin(), cells.end(),
                     [column](const auto& row) { return row[column].measured.has_value(); });
}

absl::StatusOr<Comparison> Compare(PublishedTable table,
                                   const v1::ExperimentSpecification& specification,
                                   const v1::SummarizeExperimentResponse& summary,
                                   const LengthAccuracyStatistics& at_lengths) {
  Comparison comparison;
  comparison.table = std::move(table);
  const std::vector<PublishedRow>& rows = comparison.table.rows;
  const std::vector<PublishedColumn>& columns = comparison.table.columns;
  const Quantity quantity = comparison.table.quantity;
  if (quantity == Quantity::kAttentionCosine) {
    return absl::InvalidArgumentError(
        absl::StrCat(comparison.table.key,
                     " is about attention maps; `lengthwise analyze attention EXPERIMENT "
                     "--reference ENCODING --compare ",
                     comparison.table.key, "` compares with it"));
  }
  double factor = quantity == Quantity::kLoss ? 1 : 100;  // per cent
  if (quantity == Quantity::kTrainingHours) {
    const absl::StatusOr<double> hours = HoursPerSecond(specification, comparison);
    if (!hours.ok()) return hours.status();
    factor = *hours;
  }
  std::vector<std::vector<Configurations>> values(rows.size(),
                                                  std::vector<Configurations>(columns.size()));
  for (int index = 0; index < summary.cells_size(); ++index) {
    const SummaryCell& cell = summary.cells(index);
    const v1::Component task = FindComponent(specification.tasks(), cell.task());
    const v1::Component network = FindComponent(specification.networks(), cell.network());
    const v1::Component encoding = FindComponent(specification.encodings(), cell.encoding());
    int counted = 0;
    // A table may have a row twice, and columns of the same trials.
    bool found = false;
    for (size_t row = 0; row < rows.size(); ++row) {
      for (size_t column = 0; column < columns.size(); ++column) {
        if (!rows[row].Matches(task, network) || !columns[column].Matches(network, encoding)) {
          continue;
        }
        found = true;
        const SeedStatistic value = Scaled(
            ValueOf(summary, index, at_lengths, comparison.table.QuantityOf(row), columns[column]),
            factor);
        counted = std::max(counted, value.trials());
        values[row][column].push_back(value);
      }
    }
    const v1::TrialCounts& trials = cell.trials();
    const int unended = trials.queued() + trials.running() + trials.failed() + trials.cancelled();
    if (found) {
      comparison.unfinished += unended;
      comparison.counted += counted;
      comparison.without_value += trials.succeeded() - counted;
    } else {
      comparison.elsewhere += unended + trials.succeeded();
    }
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<ComparisonCell> cells(columns.size());
    for (size_t column = 0; column < columns.size(); ++column) {
      cells[column].measured = Aggregate(values[row][column], columns[column].statistic);
      comparison.cells_run += cells[column].measured.has_value() ? 1 : 0;
      ++comparison.cell_count;
      const auto published = comparison.table.cells.find({row, column});
      if (published != comparison.table.cells.end()) cells[column].published = published->second;
    }
    // Losses of a row are those of ever larger scales: the first would always be the best.
    if (quantity == Quantity::kLoss ||
        comparison.table.QuantityOf(row) == Quantity::kTrainingAccuracy) {
      comparison.cells.push_back(std::move(cells));
      continue;
    }
    for (const Statistic statistic :
         {Statistic::kMaximum, Statistic::kMeanAtBestRate, Statistic::kMeanOfAll}) {
      MarkBest(columns, statistic, quantity, &ComparisonCell::measured,
               &ComparisonCell::best_measured, cells);
      MarkBest(columns, statistic, quantity, &ComparisonCell::published,
               &ComparisonCell::best_published, cells);
    }
    comparison.cells.push_back(std::move(cells));
  }
  return comparison;
}

}  // namespace lengthwise::client
