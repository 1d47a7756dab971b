#include "client/commands/compare_display.h"

#include "client/comparison/comparison_display.h"
#include "client/connection/names.h"
#include "client/rendering/table.h"

namespace lengthwise::client {

absl::Status PrintComparison(Program& program, Connection& connection,
                             const v1::Experiment& experiment, PublishedTable table,
                             bool whole_table) {
  auto summary = connection.SummarizeExperiment(experiment.name(),
                                                /*omit_lengths=*/table.quantity != Quantity::kLoss);
  if (!summary.ok()) return summary.status();
  auto differences = DifferencesFromProtocol(experiment.specification(), table.protocol);
  if (!differences.ok()) return differences.status();
  auto comparison = Compare(std::move(table), experiment.specification(), *summary);
  if (!comparison.ok()) return comparison.status();
  const ComparisonDocument document{.experiment = ShortName(experiment.name()),
                                    .comparison = *std::move(comparison),
                                    .differences = *std::move(differences),
                                    .whole_table = whole_table};
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
