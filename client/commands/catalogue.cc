// `lengthwise tasks|encodings|networks|optimizers|schedules|protocols [NAME]`.
#include "models/encodings/catalogue.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/entry.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "models/encodings/formula_definition.h"
#include "models/networks/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "models/schedules/catalogue.h"
#include "specification/catalogues.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

// An entry with the properties that only its kind has.
struct Listed {
  const catalogue::Entry* entry;
  std::vector<std::pair<std::string, std::string>> facts;
};

std::vector<Listed> Tasks() {
  std::vector<Listed> listed;
  for (const tasks::TaskEntry* entry : tasks::EveryTaskEntry()) {
    listed.push_back(
        {entry,
         {{"level", entry->chomsky_level},
          // Only a file knows how many symbols there are to guess from.
          {"chance %",
           tasks::examples::IsExamples(entry->name) ? "" : FormatPercent(entry->random_accuracy)},
          {"order matters", entry->permutation_invariant ? "no" : "yes"},
          {"evaluated by", entry->axis}}});
  }
  return listed;
}

std::vector<Listed> Encodings() {
  std::vector<Listed> listed;
  for (const models::EncodingEntry* entry : models::EveryEncodingEntry()) {
    listed.push_back({entry, {{"uses positions", entry->uses_positions() ? "yes" : "no"}}});
  }
  return listed;
}

template <typename Entries>
std::vector<Listed> Plain(const Entries& entries) {
  std::vector<Listed> listed;
  for (const catalogue::Entry* entry : entries) listed.push_back({entry, {}});
  return listed;
}

// Returns the first sentence. A period ends it only before a capital letter and not after "et al",
// as in "Zhou et al. 2024" and "Su et al. In".
std::string FirstSentence(const std::string& text) {
  for (size_t end = text.find(". "); end != std::string::npos; end = text.find(". ", end + 1)) {
    const absl::string_view before = absl::string_view(text).substr(0, end);
    const bool capital = end + 2 < text.size() && absl::ascii_isupper(text[end + 2]);
    if (capital && !absl::EndsWith(before, "et al")) return text.substr(0, end + 1);
  }
  return text;
}

// "1,048,576", "0.5".
std::string FormatLimit(double limit) {
  const auto integer = static_cast<int64_t>(limit);
  return static_cast<double>(integer) == limit ? FormatCount(integer) : FormatExact(limit);
}

std::string Limits(const catalogue::ParameterEntry& parameter) {
  if (!parameter.allowed.empty()) return absl::StrJoin(parameter.allowed, ", ");
  if (parameter.minimum.has_value() && parameter.maximum.has_value()) {
    return absl::StrCat(FormatLimit(*parameter.minimum), " to ", FormatLimit(*parameter.maximum));
  }
  if (parameter.minimum.has_value())
    return absl::StrCat("at least ", FormatLimit(*parameter.minimum));
  if (parameter.maximum.has_value())
    return absl::StrCat("at most ", FormatLimit(*parameter.maximum));
  return "";
}

const char* TypeName(const catalogue::ParameterValue& value) {
  static constexpr const char* kNames[] = {"bool", "integer", "number", "string"};
  return kNames[value.index()];
}

nlohmann::ordered_json ToJson(const Listed& listed) {
  nlohmann::ordered_json json = {{"name", listed.entry->name},
                                 {"title", listed.entry->title},
                                 {"documentation", listed.entry->documentation},
                                 {"parameters", nlohmann::ordered_json::array()}};
  for (const auto& [name, value] : listed.facts) json["facts"][name] = value;
  for (const catalogue::ParameterEntry& parameter : listed.entry->parameters) {
    nlohmann::ordered_json described = {{"name", parameter.name},
                                        {"type", TypeName(parameter.default_value)},
                                        {"documentation", parameter.documentation}};
    std::visit([&](const auto& value) { described["default"] = value; }, parameter.default_value);
    if (parameter.minimum.has_value()) described["minimum"] = *parameter.minimum;
    if (parameter.maximum.has_value()) described["maximum"] = *parameter.maximum;
    if (!parameter.allowed.empty()) described["allowed"] = parameter.allowed;
    json["parameters"].push_back(described);
  }
  return json;
}

void PrintAll(Program& program, const std::string& kind, const std::vector<Listed>& all) {
  if (program.output == "json") {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Listed& listed : all) json.push_back(ToJson(listed));
    program.out() << json.dump(1) << "\n";
    return;
  }
  if (program.output == "csv") {
    Records records{.columns = {"name", "title", "documentation"}};
    for (const Listed& listed : all) {
      records.rows.push_back(
          {listed.entry->name, listed.entry->title, listed.entry->documentation});
    }
    program.Write(records);
    return;
  }
  std::vector<Table::Column> columns = {{.header = kind}};
  if (!all.empty()) {
    for (const auto& [name, value] : all[0].facts) {
      columns.push_back({.header = name,
                         .shrinks_to = program.is_terminal ? 12 : 0,
                         .may_go = program.is_terminal && columns.size() > 2});
    }
  }
  columns.push_back({.header = "description", .shrinks_to = 16});
  Table table(columns);
  for (const Listed& listed : all) {
    std::vector<Table::Cell> cells = {Table::Cell(listed.entry->name, Paint::kBold)};
    for (const auto& [name, value] : listed.facts) cells.emplace_back(value);
    cells.emplace_back(FirstSentence(listed.entry->documentation));
    table.AddRow(std::move(cells));
  }
  program.Write(table);
}

void PrintOne(Program& program, const Listed& listed) {
  if (program.output == "json") {
    program.out() << ToJson(listed).dump(1) << "\n";
    return;
  }
  const std::vector<std::string> names = {"parameter", "type", "default", "accepted", "meaning"};
  if (program.output == "csv") {
    Records records{.columns = names};
    for (const catalogue::ParameterEntry& parameter : listed.entry->parameters) {
      records.rows.push_back({parameter.name, std::string(TypeName(parameter.default_value)),
                              catalogue::FormatValue(parameter.default_value), Limits(parameter),
                              parameter.documentation});
    }
    program.Write(records);
    return;
  }
  const Palette palette = program.palette();
  const int width = std::min(program.width(), 110);
  program.out() << palette(Paint::kBold, listed.entry->name) << " (" << listed.entry->title
                << ")\n\n  " << Wrap(listed.entry->documentation, width, 2) << "\n\n";
  for (const auto& [name, value] : listed.facts) {
    if (value.empty()) continue;
    program.out() << "  " << name << ": " << value << "\n";
  }
  if (!listed.facts.empty()) program.out() << "\n";
  if (listed.entry->parameters.empty()) {
    program.out() << "  No parameters.\n";
    return;
  }
  for (const catalogue::ParameterEntry& parameter : listed.entry->parameters) {
    const std::string limits = Limits(parameter);
    const std::string value = catalogue::FormatValue(parameter.default_value);
    program.out() << "  " << palette(Paint::kBold, parameter.name) << " ("
                  << TypeName(parameter.default_value) << ", default "
                  << (value.empty() ? "empty" : value)
                  << (limits.empty() ? "" : absl::StrCat(", ", limits)) << ")\n      "
                  << Wrap(parameter.documentation, width, 6) << "\n";
  }
  if (listed.entry == &models::FormulaEntry()) program.out() << "\n" << models::FormulaPage();
}

Command AddKind(Command root, Program& program, const std::string& command, const std::string& kind,
                const std::string& examples, std::vector<Listed> (*entries)(),
                std::shared_ptr<FormulaDrawing> drawing = nullptr) {
  auto name = std::make_shared<std::string>();
  const Command added = program.AddCommand(
      root, command, absl::StrCat("Lists ", command, "; with a name, explains one"), kOfflineGroup,
      examples, [&program, name, kind, entries, drawing]() -> absl::StatusOr<int> {
        if (drawing != nullptr && !drawing->specification.empty()) {
          return DrawFormulas(program, *drawing);
        }
        const std::vector<Listed> all = entries();
        if (name->empty()) {
          PrintAll(program, kind, all);
          return kSuccess;
        }
        std::vector<const catalogue::Entry*> entries_of_kind;
        entries_of_kind.reserve(all.size());
        for (const Listed& listed : all) entries_of_kind.push_back(listed.entry);
        std::vector<catalogue::Problem> problems;
        const auto found = catalogue::Find(entries_of_kind, *name, kind, "", problems);
        if (!found.has_value()) return absl::InvalidArgumentError(problems[0].description);
        PrintOne(program, all[*found]);
        return kSuccess;
      });
  added.AddOption("[name]", *name, absl::StrCat("A ", kind, "'s name"));
  program.AddOutputOption(added);
  return added;
}

// `lengthwise encodings` also draws a specification's formula encodings.
void AddEncodings(Command root, Program& program) {
  auto drawing = std::make_shared<FormulaDrawing>();
  const Command command =
      AddKind(root, program, "encodings", "encoding",
              "lengthwise encodings\nlengthwise encodings sin_cos --output json\n"
              "lengthwise encodings formula\n"
              "lengthwise encodings --draw my.yaml",
              Encodings, drawing);
  const Option draw = command.AddOption("--draw FILE", drawing->specification,
                                        "Draws the formula encodings of this specification with "
                                        "the initial values of their parameters");
  command
      .AddOption("-o,--out FILE", drawing->out,
                 "File for the drawing of all heads: .svg, .png or .pdf; default: the terminal")
      .Needs(draw);
  command.AddOption("--head N", drawing->head, "Head to draw in the terminal, from 1; default 1")
      .Needs(draw);
  command
      .AddOption("--length N", drawing->tokens,
                 "Tokens to draw, 1 to 512; default: those of the longest training input")
      .Needs(draw);
}

}  // namespace

void AddCatalogueCommands(Command root, Program& program) {
  AddKind(root, program, "tasks", "task", "lengthwise tasks\nlengthwise tasks bucket_sort", Tasks);
  AddEncodings(root, program);
  AddKind(root, program, "networks", "network", "lengthwise networks encoder",
          [] { return Plain(models::EveryNetworkEntry()); });
  AddKind(root, program, "optimizers", "optimizer", "lengthwise optimizers adam",
          [] { return Plain(models::OptimizerEntries()); });
  AddKind(root, program, "schedules", "schedule", "lengthwise schedules",
          [] { return Plain(models::ScheduleEntries()); });
  AddKind(root, program, "protocols", "protocol", "lengthwise protocols",
          [] { return Plain(specification::ProtocolEntries()); });
}

}  // namespace lengthwise::client
