// Implements the tables and charts of accuracy_summary.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/display/accuracy_summary.h"
#include "client/display/numbers.h"

namespace lengthwise::client {
namespace {

// Blocks in a sparkline.
constexpr size_t kMostBlocks = 24;
constexpr size_t kLeastBlocks = 4;

using Statistic = v1::SummarizeExperimentResponse::Statistic;

double MeanOf(const Statistic& statistic) {
  return statistic.trials() > 0 ? statistic.mean() : kNone;
}

double DeviationOf(const Statistic& statistic) {
  return statistic.trials() > 1 ? statistic.deviation() : kNone;
}

double MedianOf(const v1::SummarizeExperimentResponse::Quantiles& quantiles) {
  return quantiles.trials() > 0 ? quantiles.median() : kNone;
}

// Returns the trials' mean accuracy, or median loss, at the row's index-th length.
double ScoreAt(const AccuracyRow& row, int index, bool is_loss) {
  if (is_loss) return index < row.losses_size() ? MedianOf(row.losses(index)) : kNone;
  return index < row.mean_accuracies_size() ? row.mean_accuracies(index) : kNone;
}

// Returns the mean accuracy over all seen or all unseen lengths, or the median over the trials of
// each trial's mean loss there. NaN if there are no such lengths.
double SideScore(const AccuracyRow& row, bool is_seen, bool is_loss) {
  if (is_loss) return MedianOf(is_seen ? row.seen_loss() : row.unseen_loss());
  return MeanOf(is_seen ? row.seen_accuracy() : row.unseen_accuracy());
}

// Returns the mean of a row's scores over the lengths of one group.
double GroupMean(const AccuracyRow& row, const std::vector<int32_t>& lengths, LengthGroup group,
                 bool is_loss) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < row.lengths_size(); ++i) {
    if (row.lengths(i) < lengths[group.begin] || row.lengths(i) > lengths[group.end - 1]) continue;
    sum += ScoreAt(row, i, is_loss);
    ++count;
  }
  return count > 0 ? sum / count : kNone;
}

// Formats a score for tables: per cent, or a loss with three digits.
std::string FormatScore(double score, bool is_loss) {
  if (!is_loss) return FormatPercent(score);
  return std::isnan(score) ? "–" : absl::StrFormat("%.3g", score);
}

std::string GroupName(const std::vector<int32_t>& lengths, LengthGroup group) {
  if (group.end == group.begin + 1) return absl::StrCat(lengths[group.begin]);
  return absl::StrCat(lengths[group.begin], "–", lengths[group.end - 1]);
}

// The columns that identify a row and differ between rows.
struct Labels {
  bool task = false;
  bool network = false;
  bool encoding = false;
  bool learning_rate = false;
  bool trials = false;
  // True if any row has a training accuracy, and its deviation.
  bool training = false;
  bool training_deviation = false;
};

Labels DifferingLabels(const std::vector<AccuracyRow>& rows) {
  Labels labels;
  for (const AccuracyRow& row : rows) {
    labels.task |= row.task() != rows[0].task();
    labels.network |= row.network() != rows[0].network();
    labels.encoding |= row.encoding() != rows[0].encoding();
    labels.learning_rate |= row.learning_rate() != rows[0].learning_rate();
    labels.trials |= row.trials().succeeded() > 1;
    labels.training |= row.training_accuracy().trials() > 0;
    labels.training_deviation |= row.training_accuracy().trials() > 1;
  }
  // Every row needs at least one label.
  labels.encoding |= !labels.task && !labels.network && !labels.learning_rate;
  return labels;
}

std::string RowName(const AccuracyRow& row, const Labels& labels) {
  std::string name = row.encoding();
  if (labels.network) name = absl::StrCat(row.network(), " ", name);
  if (labels.task) name = absl::StrCat(row.task(), " ", name);
  if (labels.learning_rate) absl::StrAppend(&name, " lr", FormatExact(row.learning_rate()));
  return name;
}

// Returns the sparkline of the row's accuracies, with a dotted rule between lengths seen and not
// seen.
std::string ShapeOf(const AccuracyRow& row, const std::vector<int32_t>& seen,
                    const std::vector<int32_t>& unseen) {
  const size_t all = seen.size() + unseen.size();
  const size_t blocks = std::min(all, kMostBlocks);
  const auto side = [&](const std::vector<int32_t>& lengths) {
    std::vector<double> means;
    if (lengths.empty()) return means;
    for (const LengthGroup group :
         GroupLengths(lengths.size(), std::max<size_t>(1, blocks * lengths.size() / all))) {
      means.push_back(GroupMean(row, lengths, group, /*is_loss=*/false));
    }
    return means;
  };
  return absl::StrCat(Sparkline(side(seen)), seen.empty() || unseen.empty() ? "" : "┊",
                      Sparkline(side(unseen)));
}

// Scales losses so that the axis begins and ends at a power of ten.
void ScaleLogarithmically(Chart& chart) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const ChartSeries& series : chart.series) {
    for (const auto& [length, loss] : series.points) {
      if (!(loss > 0) || std::isinf(loss)) continue;
      low = std::min(low, std::floor(std::log10(loss)));
      high = std::max(high, std::ceil(std::log10(loss)));
    }
  }
  if (low > high) return;
  if (low == high) ++high;
  for (ChartSeries& series : chart.series) {
    for (auto& [length, loss] : series.points) {
      loss = loss > 0 ? (std::log10(loss) - low) / (high - low) : kNone;
    }
  }
  chart.height_label = [low, high](double height) {
    return absl::StrFormat("%.0e", std::pow(10, low + height * (high - low)));
  };
}

}  // namespace

std::vector<LengthGroup> GroupLengths(size_t count, size_t most) {
  most = std::min(std::max<size_t>(most, 1), count);
  size_t groups = most;
  while (groups > 0 && 2 * groups >= most && count % groups != 0) --groups;
  if (groups == 0 || 2 * groups < most) groups = most;
  std::vector<LengthGroup> result;
  for (size_t g = 0; g < groups; ++g) {
    result.push_back({count * g / groups, count * (g + 1) / groups});
  }
  return result;
}

std::string Sparkline(const std::vector<double>& values) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (const double value : values) {
    if (std::isnan(value)) {
      line += " ";
      continue;
    }
    line += kBlocks[std::lround(std::clamp(value, 0.0, 1.0) * 7)];
  }
  return line;
}

Table MakeAccuracyTable(const AccuracySummary& summary, int width, bool with_sparklines) {
  if (summary.rows.empty()) return Table({});
  const v1::SummarizeExperimentResponse::Heading& heading = summary.heading;
  const bool is_loss = heading.compared_by_loss();
  const Labels labels = DifferingLabels(summary.rows);
  const auto boundary =
      std::upper_bound(summary.lengths.begin(), summary.lengths.end(), heading.seen_up_to());
  const std::vector<int32_t> seen(summary.lengths.begin(), boundary);
  const std::vector<int32_t> unseen(boundary, summary.lengths.end());

  std::vector<Table::Column> columns;
  if (labels.task) columns.push_back({.header = "task", .shrinks_to = 8});
  if (labels.network) columns.push_back({.header = "network", .shrinks_to = 8});
  if (labels.encoding) columns.push_back({.header = "encoding", .shrinks_to = 12});
  if (labels.learning_rate) columns.push_back({.header = "rate", .align = Table::Align::kRight});
  if (labels.trials) columns.push_back({.header = "trials", .align = Table::Align::kRight});
  if (labels.training) {
    columns.push_back(
        {.header = "training set", .align = Table::Align::kRight, .rule_before = true});
  }
  if (labels.training_deviation) {
    columns.push_back({.header = "±", .align = Table::Align::kRight});
  }

  // Room for groups of lengths besides names and means: seven columns each ("16–20" and two
  // spaces), or as many as the longest group name needs.
  int names = 0;
  for (const AccuracyRow& row : summary.rows) {
    names =
        std::max<int>(names, (labels.task ? row.task().size() + 2 : 0) +
                                 (labels.network ? row.network().size() + 2 : 0) +
                                 (labels.encoding ? row.encoding().size() : 0) +
                                 (labels.learning_rate ? 9 : 0) + (labels.trials ? 8 : 0) +
                                 (labels.training ? 15 : 0) + (labels.training_deviation ? 6 : 0));
  }
  const int longest = summary.lengths.empty() ? 1 : summary.lengths.back();
  // "1.23e-05"
  const int score_width = is_loss ? 10 : 0;
  const int group_width =
      std::max(score_width, 3 + 2 * static_cast<int>(absl::StrCat(longest).size()));
  const bool with_deviation = labels.trials && !unseen.empty() && !is_loss;
  const int means = is_loss ? 2 * score_width : labels.trials ? 25 : 18;
  const int longest_line = static_cast<int>(std::min(summary.lengths.size(), kMostBlocks)) + 1;
  // Sparklines take no room from the numbers.
  with_sparklines = with_sparklines && !is_loss && summary.lengths.size() >= kLeastBlocks &&
                    width - names - means - longest_line - 3 >= 4 * group_width;
  const int lines = with_sparklines ? longest_line + 3 : 0;
  const int room = std::max(2, ((width > 0 ? width : 200) - names - means - lines) / group_width);
  // Seen and unseen lengths share the room in proportion to their numbers. Seen lengths get between
  // a quarter and a half.
  size_t seen_room = 0;
  if (!seen.empty()) {
    const double share = static_cast<double>(seen.size()) / summary.lengths.size();
    seen_room = std::max<size_t>(1, std::lround(room * std::clamp(share, 0.25, 0.5)));
    seen_room = std::min<size_t>(seen_room, 5);
  }
  const size_t unseen_room = std::max<size_t>(1, room - seen_room);

  struct AccuracyColumn {
    const std::vector<int32_t>* lengths;
    std::optional<LengthGroup> group;  // absent: all of `lengths`
  };
  std::vector<AccuracyColumn> accuracy_columns;
  Table::Group seen_heading{.header = heading.seen()};
  Table::Group unseen_heading{.header = heading.unseen()};
  const auto add_side = [&](const std::vector<int32_t>& lengths, size_t most,
                            Table::Group& group_heading) {
    if (lengths.empty()) return;
    group_heading.first = columns.size();
    const std::vector<LengthGroup> groups = GroupLengths(lengths.size(), most);
    // A single group equals the mean, which is shown once.
    const bool is_mean = groups.size() == 1;
    for (const LengthGroup group : groups) {
      accuracy_columns.push_back({&lengths, is_mean ? std::nullopt : std::optional(group)});
      columns.push_back({.header = GroupName(lengths, group),
                         .align = Table::Align::kRight,
                         .rule_before = group.begin == 0});
    }
    if (!is_mean) {
      accuracy_columns.push_back({&lengths, std::nullopt});
      columns.push_back({.header = "mean", .align = Table::Align::kRight});
    }
    group_heading.last = columns.size() - 1;
  };
  add_side(seen, seen_room, seen_heading);
  // A narrow column, if all of them are of training.
  if (seen_heading.first == seen_heading.last && heading.seen() == "seen in training") {
    seen_heading.header = "seen";
  }
  add_side(unseen, unseen_room, unseen_heading);
  if (with_deviation) {
    columns.push_back({.header = "±", .align = Table::Align::kRight});
    unseen_heading.last = columns.size() - 1;
  }

  if (with_sparklines)
    columns.push_back({.header = absl::StrCat("by ", heading.axis()), .rule_before = true});

  Table table(columns);
  if (!seen.empty()) table.AddGroup(seen_heading);
  if (!unseen.empty()) table.AddGroup(unseen_heading);
  for (const AccuracyRow& row : summary.rows) {
    std::vector<Table::Cell> cells;
    if (labels.task) cells.emplace_back(row.task());
    if (labels.network) cells.emplace_back(row.network());
    if (labels.encoding) cells.emplace_back(row.encoding());
    if (labels.learning_rate) cells.emplace_back(FormatExact(row.learning_rate()));
    if (labels.trials) cells.emplace_back(absl::StrCat(row.trials().succeeded()));
    if (labels.training) cells.emplace_back(FormatPercent(MeanOf(row.training_accuracy())));
    if (labels.training_deviation) {
      cells.emplace_back(FormatPercent(DeviationOf(row.training_accuracy())));
    }
    for (const AccuracyColumn& column : accuracy_columns) {
      if (column.group.has_value()) {
        cells.emplace_back(
            FormatScore(GroupMean(row, *column.lengths, *column.group, is_loss), is_loss));
        continue;
      }
      const bool is_seen = column.lengths == &seen;
      const double value = SideScore(row, is_seen, is_loss);
      bool best = summary.rows.size() > 1;
      for (const AccuracyRow& other : summary.rows) {
        if (other.task() != row.task()) continue;
        const double beside = SideScore(other, is_seen, is_loss);
        if (is_loss ? beside < value : beside > value) best = false;
      }
      cells.emplace_back(FormatScore(value, is_loss), best ? Paint::kGreen : Paint::kBold);
    }
    if (with_deviation) cells.emplace_back(FormatPercent(DeviationOf(row.unseen_accuracy())));
    if (with_sparklines) cells.emplace_back(ShapeOf(row, seen, unseen), Paint::kCyan);
    table.AddRow(std::move(cells));
  }
  return table;
}

Chart MakeAccuracyChart(const AccuracySummary& summary, size_t max_series) {
  Chart chart;
  const Labels labels = DifferingLabels(summary.rows);
  std::vector<const AccuracyRow*> rows;
  for (const AccuracyRow& row : summary.rows) rows.push_back(&row);
  if (rows.size() > max_series) {
    // As the choice of a learning rate: of equal scores the lower loss, then the lower rate. Rows
    // without a score last, and what is not a number.
    const auto last = [](double value) {
      return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
    };
    const auto key = [&](const AccuracyRow& row) {
      const bool has_score = row.selection().trials() > 0;
      return std::tuple(!has_score, has_score ? last(-MeanOf(row.selection())) : 0,
                        last(row.selection_loss()), row.learning_rate());
    };
    const auto is_better = [&](const AccuracyRow* a, const AccuracyRow* b) {
      return key(*a) < key(*b);
    };
    // Tasks differ in chance and difficulty, so that only rows of one task are ranked: the best of
    // each task come before all second ones.
    std::stable_sort(rows.begin(), rows.end(), is_better);
    std::map<absl::string_view, int> ranked;
    std::vector<std::pair<int, const AccuracyRow*>> ranks;
    for (const AccuracyRow* row : rows) ranks.emplace_back(ranked[row->task()]++, row);
    std::stable_sort(ranks.begin(), ranks.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    rows.clear();
    for (size_t i = 0; i < max_series; ++i) rows.push_back(ranks[i].second);
  }
  for (const AccuracyRow* row : rows) {
    ChartSeries series{.name = RowName(*row, labels)};
    for (int i = 0; i < row->lengths_size(); ++i) {
      series.points.emplace_back(row->lengths(i),
                                 ScoreAt(*row, i, summary.heading.compared_by_loss()));
    }
    chart.series.push_back(std::move(series));
  }
  const v1::SummarizeExperimentResponse::Heading& heading = summary.heading;
  if (heading.compared_by_loss()) ScaleLogarithmically(chart);
  if (!summary.lengths.empty() && summary.lengths.front() <= heading.seen_up_to() &&
      summary.lengths.back() > heading.seen_up_to()) {
    chart.split = heading.seen_up_to();
    chart.split_labels = {heading.seen(), heading.unseen()};
  }
  chart.x_label = heading.axis();
  return chart;
}

}  // namespace lengthwise::client
