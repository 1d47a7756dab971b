// A comparison for programs: CSV and JSON.
#include <nlohmann/json.hpp>
#include <optional>

#include "client/comparison/comparison_display.h"

namespace lengthwise::client {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

}  // namespace

Records ComparisonRecords(const Comparison& comparison) {
  Records records;
  records.columns = {"task",
                     "level",
                     "permutation_invariant",
                     "random_accuracy",
                     "encoding",
                     "measured",
                     "measured_deviation",
                     "trials",
                     "published",
                     "published_deviation",
                     "difference",
                     "best_measured",
                     "best_published",
                     "quantity"};
  const PublishedTable& table = comparison.table;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    for (size_t column = 0; column < table.columns.size(); ++column) {
      const ComparisonCell& cell = comparison.cells[row][column];
      const bool run = cell.measured.has_value();
      const bool printed = cell.published.has_value();
      records.rows.push_back(
          {table.rows[row].task, table.rows[row].level, table.rows[row].permutation_invariant,
           table.rows[row].random_accuracy, table.columns[column].key,
           OrNothing(run ? std::optional(cell.measured->value) : std::nullopt),
           OrNothing(run ? cell.measured->deviation : std::nullopt),
           int64_t{run ? cell.measured->trials : 0},
           OrNothing(printed ? std::optional(cell.published->value) : std::nullopt),
           OrNothing(printed ? cell.published->deviation : std::nullopt),
           OrNothing(cell.Difference(table.quantity)), cell.best_measured, cell.best_published,
           QuantityName(table.QuantityOf(row))});
    }
  }
  return records;
}

void WriteComparisonJson(const ComparisonDocument& document, std::ostream& out) {
  const Comparison& comparison = document.comparison;
  Json json = {{"experiment", document.experiment},
               {"table", comparison.table.key},
               {"citation", comparison.table.citation},
               {"aggregation", comparison.table.aggregation},
               {"cells_run", comparison.cells_run},
               {"cell_count", comparison.cell_count},
               {"trials_counted", comparison.counted},
               {"trials_unfinished", comparison.unfinished},
               {"trials_without_value", comparison.without_value},
               {"trials_elsewhere", comparison.elsewhere},
               {"notes", comparison.table.notes}};
  json["differences"] = Json::array();
  for (const ProtocolDifference& difference : document.differences) {
    json["differences"].push_back({{"what", difference.what},
                                   {"here", difference.here},
                                   {"published", difference.published}});
  }
  const Records records = ComparisonRecords(comparison);
  json["cells"] = Json::array();
  for (const auto& row : records.rows) {
    Json cell = Json::object();
    for (size_t i = 0; i < row.size(); ++i) cell[records.columns[i]] = ToJson(row[i]);
    json["cells"].push_back(std::move(cell));
  }
  out << json.dump(1) << "\n";
}

}  // namespace lengthwise::client
