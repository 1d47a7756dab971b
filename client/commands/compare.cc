// `lengthwise compare A B`: two experiments side by side.
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/comparison/experiment_difference.h"
#include "client/connection/names.h"
#include "client/rendering/numbers.h"
#include "client/rendering/table.h"

namespace lengthwise::client {
namespace {

using Cell = v1::SummarizeExperimentResponse::Cell;
using SeedStatistic = v1::SummarizeExperimentResponse::Statistic;
// Task, network, encoding, learning rate.
using Key = std::tuple<std::string, std::string, std::string, double>;

struct Pair {
  Key key;
  // Null where the experiment has no such cell.
  const Cell* first = nullptr;
  const Cell* second = nullptr;
};

// In the order of the first experiment's grid, then what only the second has.
std::vector<Pair> Match(const v1::SummarizeExperimentResponse& first,
                        const v1::SummarizeExperimentResponse& second) {
  std::vector<Pair> pairs;
  std::map<Key, size_t> index;
  const auto add = [&](const Cell& cell, const Cell* Pair::*side) {
    const Key key(cell.task(), cell.network(), cell.encoding(), cell.learning_rate());
    const auto [found, is_new] = index.emplace(key, pairs.size());
    if (is_new) pairs.push_back({.key = key});
    pairs[found->second].*side = &cell;
  };
  for (const Cell& cell : first.cells()) add(cell, &Pair::first);
  for (const Cell& cell : second.cells()) add(cell, &Pair::second);
  return pairs;
}

bool HasUnseen(const Cell* cell) { return cell != nullptr && cell->unseen_accuracy().trials() > 0; }

std::string FormatStatistic(const Cell* cell) {
  if (!HasUnseen(cell)) return "";
  const SeedStatistic& unseen = cell->unseen_accuracy();
  std::string text = FormatPercent(unseen.mean());
  if (unseen.trials() > 1) absl::StrAppend(&text, " ± ", FormatPercent(unseen.deviation()));
  return text;
}

std::string FormatTrials(const Cell* cell) {
  return HasUnseen(cell) ? absl::StrCat(cell->unseen_accuracy().trials()) : "";
}

std::optional<double> Difference(const Pair& pair) {
  if (!HasUnseen(pair.first) || !HasUnseen(pair.second)) return std::nullopt;
  return 100 * (pair.second->unseen_accuracy().mean() - pair.first->unseen_accuracy().mean());
}

Table MakeTable(const std::vector<Pair>& pairs, const std::string& first,
                const std::string& second) {
  bool networks = false;
  bool rates = false;
  for (const Pair& pair : pairs) {
    networks |= std::get<1>(pair.key) != std::get<1>(pairs[0].key);
    rates |= std::get<3>(pair.key) != std::get<3>(pairs[0].key);
  }
  std::vector<Table::Column> columns = {{.header = "task", .shrinks_to = 8}};
  if (networks) columns.push_back({.header = "network", .shrinks_to = 8});
  columns.push_back({.header = "encoding", .shrinks_to = 12});
  if (rates) columns.push_back({.header = "rate", .align = Table::Align::kRight});
  std::vector<Table::Group> groups;
  for (const std::string& name : {first, second}) {
    groups.push_back({name, columns.size(), columns.size() + 1});
    columns.push_back({.header = "unseen %", .align = Table::Align::kRight, .rule_before = true});
    columns.push_back({.header = "n", .align = Table::Align::kRight});
  }
  columns.push_back({.header = "Δ", .align = Table::Align::kRight, .rule_before = true});
  Table table(columns);
  for (Table::Group& group : groups) table.AddGroup(std::move(group));
  for (const Pair& pair : pairs) {
    std::vector<Table::Cell> cells = {std::get<0>(pair.key)};
    if (networks) cells.emplace_back(std::get<1>(pair.key));
    cells.emplace_back(std::get<2>(pair.key));
    if (rates) cells.emplace_back(FormatExact(std::get<3>(pair.key)));
    for (const Cell* cell : {pair.first, pair.second}) {
      cells.emplace_back(FormatStatistic(cell), Paint::kBold);
      cells.emplace_back(FormatTrials(cell), Paint::kDim);
    }
    const std::optional<double> difference = Difference(pair);
    cells.emplace_back(!difference.has_value() ? ""
                       : *difference < 0       ? absl::StrFormat("−%.1f", -*difference)
                                               : absl::StrFormat("+%.1f", *difference));
    table.AddRow(std::move(cells));
  }
  return table;
}

Records MakeRecords(const std::vector<Pair>& pairs) {
  Records records{.columns = {"task", "network", "encoding", "learning_rate", "first_unseen",
                              "first_deviation", "first_trials", "second_unseen",
                              "second_deviation", "second_trials", "difference"}};
  for (const Pair& pair : pairs) {
    std::vector<Value> row = {std::get<0>(pair.key), std::get<1>(pair.key), std::get<2>(pair.key),
                              std::get<3>(pair.key)};
    for (const Cell* cell : {pair.first, pair.second}) {
      const SeedStatistic unseen = cell == nullptr ? SeedStatistic() : cell->unseen_accuracy();
      row.push_back(OrNothing(unseen.trials() > 0 ? std::optional(unseen.mean()) : std::nullopt));
      row.push_back(
          OrNothing(unseen.trials() > 1 ? std::optional(unseen.deviation()) : std::nullopt));
      row.push_back(int64_t{unseen.trials()});
    }
    const std::optional<double> difference = Difference(pair);
    row.push_back(
        OrNothing(difference.has_value() ? std::optional(*difference / 100) : std::nullopt));
    records.rows.push_back(std::move(row));
  }
  return records;
}

absl::StatusOr<int> CompareTwo(Program& program, const std::string& first_name,
                               const std::string& second_name) {
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  auto first = FindExperiment(**connection, first_name);
  if (!first.ok()) return first.status();
  auto second = FindExperiment(**connection, second_name);
  if (!second.ok()) return second.status();
  auto first_summary = (*connection)->SummarizeExperiment(first->name(), /*omit_lengths=*/true);
  if (!first_summary.ok()) return first_summary.status();
  auto second_summary = (*connection)->SummarizeExperiment(second->name(), /*omit_lengths=*/true);
  if (!second_summary.ok()) return second_summary.status();
  const std::vector<Pair> pairs = Match(*first_summary, *second_summary);
  if (program.output == "json" || program.output == "csv") {
    program.Write(MakeRecords(pairs));
    return kSuccess;
  }
  const std::string first_short = ShortName(first->name());
  const std::string second_short = ShortName(second->name());
  const Table table = MakeTable(pairs, first_short, second_short);
  std::ostream& out = program.out();
  if (program.output == "markdown" || program.output == "latex") {
    out << (program.output == "latex" ? table.RenderLatex() : table.RenderMarkdown());
    return kSuccess;
  }
  out << program.palette()(Paint::kBold, absl::StrCat(second_short, " against ", first_short))
      << ": mean accuracy over unseen lengths\n\n"
      << table.Render(program.width(), program.palette());
  std::vector<std::string> differences;
  for (const ExperimentDifference& difference :
       Differences(first->specification(), second->specification())) {
    const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
    differences.push_back(absl::StrCat(difference.field, " ", text(difference.second), " (",
                                       first_short, ": ", text(difference.first), ")"));
  }
  out << "\n"
      << Wrap(differences.empty()
                  ? "Both were trained and scored alike."
                  : absl::StrCat("How ", second_short,
                                 " differs: ", absl::StrJoin(differences, "; "), "."),
              program.width(), 2)
      << "\n";
  return kSuccess;
}

}  // namespace

void AddCompare(CLI::App& app, Program& program) {
  auto names = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* command = program.AddCommand(
      app, "compare", "Prints two experiments side by side", kServerGroup,
      "lengthwise compare quickstart-1 quickstart-2\n"
      "lengthwise compare table1-1 table1-2 --output csv",
      [&program, names] { return CompareTwo(program, names->first, names->second); });
  command->add_option("first", names->first, "An experiment's name, or its specification's")
      ->required()
      ->type_name("");
  command->add_option("second", names->second, "The one to hold against it")
      ->required()
      ->type_name("");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
  program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
}

}  // namespace lengthwise::client
