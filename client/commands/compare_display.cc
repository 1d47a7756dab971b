#include "client/commands/compare_display.h"

#include <utility>

#include "client/comparison/comparison_display.h"
#include "client/comparison/fetch_comparison.h"
#include "client/rendering/table.h"

namespace lengthwise::client {

absl::Status PrintComparison(Program& program, Connection& connection,
                             const v1::Experiment& experiment, PublishedTable table,
                             bool whole_table) {
  auto summary = connection.SummarizeExperiment(experiment.name(),
                                                /*omit_lengths=*/table.quantity != Quantity::kLoss);
  if (!summary.ok()) return summary.status();
  auto fetched = FetchComparison(connection, experiment, *summary, std::move(table));
  if (!fetched.ok()) return fetched.status();
  ComparisonDocument& document = *fetched;
  document.whole_table = whole_table;
  if (program.output == "csv") {
    program.Write(ComparisonRecords(document.comparison));
  } else if (program.output == "json") {
    WriteComparisonJson(document, program.out());
  } else if (program.output == "markdown") {
    WriteMarkdown(document, program.out());
  } else if (program.output == "latex") {
    WriteLatex(document, program.out());
  } else {
    WriteTerminal(document, program.width(), program.palette(), program.out());
  }
  return absl::OkStatus();
}

absl::Status PrintPublishedTables(Program& program) {
  auto tables = PublishedTables();
  if (!tables.ok()) return tables.status();
  Table listing({{.header = "key"}, {.header = "paper"}, {.header = "title"}});
  Records records{.columns = {"key", "paper", "table", "title"}};
  for (const PublishedTable& table : *tables) {
    const std::string paper = table.citation.substr(0, table.citation.find(','));
    records.rows.push_back({table.key, paper, table.table, table.title});
    listing.AddRow({table.key, paper, table.title});
  }
  if (program.output == "markdown") {
    program.out() << listing.RenderMarkdown();
  } else if (program.output == "latex") {
    program.out() << listing.RenderLatex();
  } else if (program.output_is_table()) {
    program.out() << listing.Render(program.width(), program.palette());
  } else {
    program.Write(records);
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
