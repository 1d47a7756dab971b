#include "client/analysis/analysis_report.h"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/rendering/numbers.h"
#include "statistics/correlation.h"
#include "statistics/similarity.h"
#include "statistics/summary.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<double> AccuraciesOf(const TrialSet& set, const TrialAccuracies& accuracies) {
  std::vector<double> values;
  std::set<Seeds> counted;
  for (const v1::Trial* trial : set.trials) {
    const auto found = accuracies.find(trial->name());
    if (found == accuracies.end() || !counted.insert(SeedsOf(*trial)).second) continue;
    values.push_back(found->second);
  }
  return values;
}

// How a quantity goes with accuracy over the rows; nothing for fewer than three.
void AddCorrelation(const std::string& quantity, const std::vector<double>& values,
                    const std::vector<double>& accuracies, std::vector<std::string>& remarks) {
  const auto correlation = statistics::SpearmanCorrelation(values, accuracies);
  if (!correlation.ok()) return;
  remarks.push_back(absl::StrFormat(
      "Over %d encodings, %s and accuracy: Spearman's ρ = %.2f, p %s.",
      static_cast<int>(values.size()), quantity, correlation->coefficient,
      correlation->p_value < 0.001 ? "< 0.001" : absl::StrFormat("= %.3f", correlation->p_value)));
}

// The published value of a set's cell.
std::optional<PublishedValue> PublishedOf(const PublishedTable& table, const TrialSet& set) {
  const v1::TrialSpecification& specification = set.trials.front()->specification();
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row].task != specification.task().name()) continue;
    for (size_t column = 0; column < table.columns.size(); ++column) {
      if (!table.columns[column].Matches(specification.network(), specification.encoding())) {
        continue;
      }
      const auto found = table.cells.find({row, column});
      if (found != table.cells.end()) return found->second;
    }
  }
  return std::nullopt;
}

std::pair<AnalysisTable::Cell, AnalysisTable::Cell> PublishedCells(const PublishedTable& table,
                                                                   const TrialSet& set) {
  const std::optional<PublishedValue> value = PublishedOf(table, set);
  if (!value.has_value()) return {NumberCell(kNone, 3), NumberCell(kNone, 3)};
  AnalysisTable::Cell cell = NumberCell(value->value, 3);
  if (value->deviation.has_value()) absl::StrAppendFormat(&cell.text, " ± %.3f", *value->deviation);
  return {cell, NumberCell(value->deviation.value_or(kNone), 3)};
}

std::string List(const std::vector<std::string>& names) {
  const std::set<std::string> distinct(names.begin(), names.end());
  return absl::StrJoin(distinct, ", ");
}

}  // namespace

AnalysisReport ReportAttention(const AttentionComparison& comparison, const std::string& reference,
                               AttentionMeasure measure, const TrialAccuracies& accuracies,
                               const std::optional<PublishedTable>& published) {
  const bool cosine = measure == AttentionMeasure::kCosine;
  const std::string name = cosine ? "cosine" : "divergence";
  std::vector<AnalysisTable::Column> columns = {
      {.name = "accuracy", .header = "accuracy %"},
      {.name = "accuracy_deviation"},
      {.name = name, .header = cosine ? "cosine" : "JS divergence", .rule_before = true},
      {.name = name + "_deviation"}};
  if (published.has_value()) {
    columns.push_back({.name = "published", .header = "paper"});
    columns.push_back({.name = "published_deviation"});
  }
  columns.push_back({.name = "models", .header = "models"});
  columns.push_back({.name = "pairs", .header = "pairs"});
  AnalysisReport report{
      .caption =
          absl::StrCat(cosine ? "Cosine similarity of attention maps to those of "
                              : "Jensen-Shannon divergence (nats) of what tokens attend to from ",
                       reference, " (", Counted(comparison.sequences, "sequence"), ", ",
                       Counted(comparison.layers, "layer"),
                       "): mean and standard deviation over pairs of models"),
      .table = AnalysisTable(std::move(columns))};
  std::vector<double> values, of_values;
  bool alone = false;
  for (const AttentionSimilarity& row : comparison.rows) {
    const std::vector<double> own = AccuraciesOf(*row.set, accuracies);
    auto [accuracy, accuracy_deviation] = AccuracyCells(own);
    auto [mean, deviation] = MeanCells(row.pairs, cosine ? 3 : 4);
    std::vector<AnalysisTable::Cell> cells = {std::move(accuracy), std::move(accuracy_deviation),
                                              std::move(mean), std::move(deviation)};
    if (published.has_value()) {
      auto [value, value_deviation] = PublishedCells(*published, *row.set);
      cells.push_back(std::move(value));
      cells.push_back(std::move(value_deviation));
    }
    cells.push_back(CountCell(row.models));
    cells.push_back(CountCell(static_cast<int64_t>(row.pairs.size())));
    report.table.AddRow(*row.set, std::move(cells));
    alone |= row.pairs.empty();
    if (row.set->encoding == reference || row.pairs.empty() || own.empty()) continue;
    values.push_back(statistics::Mean(row.pairs));
    of_values.push_back(statistics::Mean(own));
  }
  AddCorrelation(cosine ? "cosine" : "divergence", values, of_values, report.remarks);
  if (alone) {
    report.remarks.push_back(absl::StrCat("–: nothing to pair with; ", reference,
                                          " is compared with other seeds of its own, the others "
                                          "with it at the same learning rate and training."));
  }
  if (!comparison.without_maps.empty()) {
    report.remarks.push_back(
        absl::StrCat("Without attention maps: ", List(comparison.without_maps), "."));
  }
  if (published.has_value()) {
    report.remarks.push_back(absl::StrCat("Paper: ", published->citation, ", ", published->table,
                                          "; ", published->aggregation, "."));
  }
  return report;
}

AnalysisReport ReportGroundTruth(const std::vector<GroundTruthAttention>& rows,
                                 const TrialAccuracies& accuracies) {
  size_t layers = 0;
  int64_t puzzles = 0;
  for (const GroundTruthAttention& row : rows) {
    layers = std::max(layers, row.layers.size());
    puzzles = std::max(puzzles, row.all.puzzles);
  }
  // In records a row for each layer and length.
  std::vector<AnalysisTable::Column> columns = {
      {.name = "layer"}, {.name = "length"},          {.name = "puzzles"}, {.name = "even_share"},
      {.name = "share"}, {.name = "share_deviation"}, {.name = "models"}};
  const size_t in_records = columns.size();
  columns.push_back({.header = "accuracy %"});
  columns.push_back({.header = "even", .rule_before = true});
  for (size_t layer = 0; layer < layers; ++layer) {
    columns.push_back({.header = absl::StrCat("layer ", layer + 1), .rule_before = layer == 0});
  }
  columns.push_back({.header = "models", .rule_before = true});
  AnalysisReport report{
      .caption =
          absl::StrCat("Per cent of the attention of the cell asked for that goes to the "
                       "cells which settle it (",
                       Counted(puzzles, "puzzle"), "): mean and standard deviation over models"),
      .table = AnalysisTable(std::move(columns))};
  for (const GroundTruthAttention& row : rows) {
    std::vector<AnalysisTable::Cell> cells(in_records);
    cells.push_back(AccuracyCells(AccuraciesOf(*row.set, accuracies)).first);
    cells.push_back(AccuracyCells({row.all.even}).first);
    for (size_t layer = 0; layer < layers; ++layer) {
      cells.push_back(layer < row.layers.size() ? AccuracyCells(row.all.by_layer[layer]).first
                                                : NumberCell(kNone, 1));
    }
    cells.push_back(CountCell(row.models));
    report.table.AddRow(*row.set, std::move(cells));
    for (size_t layer = 0; layer < row.layers.size(); ++layer) {
      for (const auto& [length, shares] : row.by_length) {
        auto [share, deviation] = AccuracyCells(shares.by_layer[layer]);
        report.table.AddRecord(
            *row.set, {CountCell(static_cast<int64_t>(layer) + 1), CountCell(length),
                       CountCell(shares.puzzles), NumberCell(shares.even, 3), std::move(share),
                       std::move(deviation), CountCell(row.models)});
      }
    }
  }
  report.remarks.push_back(
      "even: what attending to all cells alike would give. The cells that settle a puzzle are "
      "those of the rows and columns that the rules of its task relate.");
  return report;
}

AnalysisReport ReportEncodings(const EncodingDistances& distances, const std::string& reference,
                               const TrialAccuracies& accuracies) {
  AnalysisReport report{
      .caption = absl::StrCat("Orthogonal Procrustes distance (Frobenius) of learned tables to ",
                              reference, ", mean and standard deviation over models"),
      .table = AnalysisTable({{.name = "accuracy", .header = "accuracy %"},
                              {.name = "accuracy_deviation"},
                              {.name = "first_block", .header = "block 1", .rule_before = true},
                              {.name = "first_block_deviation"},
                              {.name = "all_blocks", .header = "mean of blocks"},
                              {.name = "all_blocks_deviation"},
                              {.name = "models", .header = "models"}})};
  std::vector<double> values, of_values;
  for (size_t i = 0; i < distances.models.size();) {
    const TrialSet& set = *distances.models[i].set;
    std::vector<double> first, all;
    for (; i < distances.models.size() && distances.models[i].set == &set; ++i) {
      first.push_back(distances.models[i].blocks.front());
      all.push_back(statistics::Mean(distances.models[i].blocks));
    }
    const std::vector<double> own = AccuraciesOf(set, accuracies);
    auto [accuracy, accuracy_deviation] = AccuracyCells(own);
    auto [block, block_deviation] = MeanCells(first, 2);
    auto [mean, mean_deviation] = MeanCells(all, 2);
    report.table.AddRow(set,
                        {std::move(accuracy), std::move(accuracy_deviation), std::move(block),
                         std::move(block_deviation), std::move(mean), std::move(mean_deviation),
                         CountCell(static_cast<int64_t>(first.size()))});
    if (own.empty()) continue;
    values.push_back(statistics::Mean(first));
    of_values.push_back(statistics::Mean(own));
  }
  AddCorrelation("distance in block 1", values, of_values, report.remarks);
  if (!distances.without_tables.empty()) {
    report.remarks.push_back(
        absl::StrCat("Without a learned table: ", List(distances.without_tables), "."));
  }
  return report;
}

AnalysisReport ReportNoise(const std::vector<NoiseCurve>& curves) {
  std::set<double> deviations;
  for (const NoiseCurve& curve : curves) {
    for (const auto& [deviation, values] : curve.accuracies) deviations.insert(deviation);
  }
  // In records a row for each deviation: how many there are is no matter of columns.
  std::vector<AnalysisTable::Column> columns = {
      {.name = "noise"}, {.name = "accuracy"}, {.name = "accuracy_deviation"}, {.name = "models"}};
  for (const double deviation : deviations) {
    columns.push_back({.header = FormatExact(deviation), .rule_before = deviation == 0});
  }
  AnalysisReport report{
      .caption =
          "Accuracy (%) by the standard deviation of the noise on the embeddings of tokens, "
          "mean and standard deviation over models",
      .table = AnalysisTable(std::move(columns))};
  for (const NoiseCurve& curve : curves) {
    const auto of = [&](double deviation) {
      const auto found = curve.accuracies.find(deviation);
      return found == curve.accuracies.end() ? std::vector<double>() : found->second;
    };
    std::vector<AnalysisTable::Cell> cells(4);
    for (const double deviation : deviations) cells.push_back(AccuracyCells(of(deviation)).first);
    report.table.AddRow(*curve.set, std::move(cells));
    for (const auto& [deviation, values] : curve.accuracies) {
      auto [accuracy, accuracy_deviation] = AccuracyCells(values);
      report.table.AddRecord(
          *curve.set, {NumberCell(deviation, 3), std::move(accuracy), std::move(accuracy_deviation),
                       CountCell(static_cast<int64_t>(values.size()))});
    }
  }
  return report;
}

AnalysisReport ReportHumans(const std::vector<HumanComparison>& comparisons) {
  AnalysisReport report{
      .caption = "Accuracy on single puzzles, models' beside people's",
      .table = AnalysisTable({{.name = "accuracy", .header = "models %"},
                              {.name = "human_accuracy", .header = "people %"},
                              {.name = "cosine", .header = "cosine", .rule_before = true},
                              {.name = "spearman", .header = "Spearman's ρ"},
                              {.name = "p_value", .header = "p"},
                              {.name = "puzzles", .header = "puzzles"},
                              {.name = "models", .header = "models"}})};
  for (const HumanComparison& row : comparisons) {
    const auto percent = [](absl::Span<const double> values) {
      const double mean = statistics::Mean(values);
      return AnalysisTable::Cell{mean, FormatPercent(mean)};
    };
    const auto cosine = statistics::CosineSimilarity(row.model_accuracies, row.human_accuracies);
    const auto ranks = statistics::SpearmanCorrelation(row.model_accuracies, row.human_accuracies);
    report.table.AddRow(
        *row.set, {percent(row.model_accuracies), percent(row.human_accuracies),
                   NumberCell(cosine.ok() ? *cosine : kNone, 3),
                   NumberCell(ranks.ok() ? ranks->coefficient : kNone, 2),
                   ProbabilityCell(ranks.ok() ? ranks->p_value : kNone),
                   CountCell(static_cast<int64_t>(row.puzzles.size())), CountCell(row.models)});
  }
  return report;
}

AnalysisReport ReportSeeds(const std::vector<SeedComparison>& comparisons,
                           const std::string& reference) {
  AnalysisReport report{
      .caption = absl::StrCat("Paired t-tests of ", reference,
                              " against the other encodings, seed by seed"),
      .table = AnalysisTable({{.name = "accuracy", .header = "accuracy %"},
                              {.name = "accuracy_deviation"},
                              {.name = "reference_accuracy", .header = reference + " %"},
                              {.name = "reference_accuracy_deviation"},
                              {.name = "t", .header = "t", .rule_before = true},
                              {.name = "degrees_of_freedom", .header = "df"},
                              {.name = "p_value", .header = "p"}})};
  bool missing = false;
  for (const SeedComparison& row : comparisons) {
    auto [accuracy, accuracy_deviation] = AccuracyCells(row.own);
    auto [other, other_deviation] = AccuracyCells(row.reference);
    missing |= !row.test.has_value();
    report.table.AddRow(
        *row.set,
        {std::move(accuracy), std::move(accuracy_deviation), std::move(other),
         std::move(other_deviation), NumberCell(row.test.has_value() ? row.test->t : kNone, 2),
         CountCell(static_cast<int64_t>(row.own.size()) - 1),
         ProbabilityCell(row.test.has_value() ? row.test->p_value : kNone)});
  }
  report.remarks.push_back(
      absl::StrCat("t is positive where ", reference, " is better; p is two-sided."));
  if (missing) {
    report.remarks.push_back(
        "–: a test needs at least two seeds, and differences that are not all the same.");
  }
  return report;
}

}  // namespace lengthwise::client
