#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "client/commands/commands.h"
#include "client/commands/specification_file.h"
#include "client/display/shaded_grid.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_values.h"
#include "models/networks/catalogue.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"
#include "tasks/puzzles.h"
#include "tasks/text_task.h"

namespace lengthwise::client {
namespace {

// More tokens are not visible in a terminal and open slowly in a browser.
constexpr int64_t kMaxTokens = 512;

// Returns the sizes of the first network that takes encodings.
models::EncodingContext ContextOf(const v1::ExperimentSpecification& specification) {
  std::vector<catalogue::Problem> problems;
  for (const v1::Component& network : specification.networks()) {
    for (const models::NetworkEntry* entry : models::NetworkEntries()) {
      if (entry->name != network.name() || entry->encoding_context == nullptr ||
          models::ReadsInOrder(entry->name)) {
        continue;
      }
      return entry->encoding_context(catalogue::Resolve(
          *entry, specification::ParametersOf(network), network.name(), problems));
    }
  }
  return {};
}

// Returns the tokens of the longest training input of all tasks; of a text, with its answer.
absl::StatusOr<int64_t> LongestInput(const ResolvedFile& resolved) {
  const v1::ExperimentSpecification& specification = resolved.grid.specification;
  const v1::LengthRange& lengths = specification.training().lengths();
  int64_t longest = 1;
  for (int i = 0; i < specification.tasks_size(); ++i) {
    const v1::Component& component = specification.tasks(i);
    if (const auto& set = resolved.examples.sets[i]; set != nullptr) {
      const bool is_text = component.name() == tasks::examples::ExamplesText().name;
      for (const auto& [length, group] : set->training) {
        if (length < lengths.min() || length > lengths.max()) continue;
        for (const tasks::examples::Example& example : group.examples) {
          longest =
              std::max<int64_t>(longest, example.inputs + (is_text ? example.targets + 1 : 0));
        }
      }
      continue;
    }
    ASSIGN_OR_RETURN(const auto task,
                     tasks::CreateTask(component.name(), specification::ParametersOf(component)));
    if (const auto* text = dynamic_cast<const tasks::TextTask*>(task.get())) {
      longest = std::max(longest, text->LongestTrainingExample(lengths.min(), lengths.max()));
    } else if (const auto* puzzles = dynamic_cast<const tasks::PuzzleTask*>(task.get())) {
      longest = std::max<int64_t>(longest, puzzles->cells());
    } else {
      longest = std::max<int64_t>(longest, lengths.max());
    }
  }
  return longest;
}

// Writes a picture that Python draws.
absl::StatusOr<int> WritePicture(Program& program, const std::vector<NumberGrid>& grids,
                                 const std::string& out) {
  nlohmann::json all = nlohmann::json::array();
  for (const NumberGrid& grid : grids) {
    all.push_back({{"title", grid.title},
                   {"row_name", grid.row_name},
                   {"column_name", grid.column_name},
                   {"columns", grid.columns},
                   {"values", grid.values}});
  }
  const std::string numbers = out + ".json.tmp";
  // Never UNAVAILABLE, which says that the server is unreachable.
  if (const absl::Status written = platform::WriteFileAtomically(numbers, all.dump());
      !written.ok()) {
    return absl::FailedPreconditionError(written.message());
  }
  const auto code = program.RunPython({"grids", numbers, "--out", out}, /*asks_server=*/false);
  std::error_code error;
  std::filesystem::remove(numbers, error);
  return code;
}

// Returns the grids of one encoding: a bias for each head, then features.
std::vector<NumberGrid> GridsOf(const v1::Component& encoding,
                                const models::EncodingContext& context, int64_t tokens) {
  std::vector<catalogue::Problem> problems;
  const models::FormulaDefinition definition =
      models::ReadFormula(catalogue::Resolve(models::FormulaEntry(),
                                             specification::ParametersOf(encoding), "", problems),
                          "", problems);
  std::vector<NumberGrid> grids;
  const auto add = [&](const models::FormulaNodes& nodes, NumberGrid grid, int64_t head,
                       const auto& arguments) {
    models::FormulaEvaluator evaluator(nodes, definition.parameters);
    for (int64_t row = 0; row < grid.rows; ++row) {
      for (int64_t column = 0; column < grid.columns; ++column) {
        grid.values.push_back(
            evaluator.At(arguments(static_cast<double>(row), static_cast<double>(column)),
                         static_cast<size_t>(head), 0));
      }
    }
    grids.push_back(std::move(grid));
  };
  const auto heads = static_cast<double>(context.heads), n = static_cast<double>(tokens);
  for (int64_t head = 0; definition.logits && head < context.heads; ++head) {
    add(*definition.logits,
        {.title = absl::StrCat(encoding.label(), " logits, head ", head + 1, " of ", context.heads),
         .row_name = "q",
         .column_name = "k",
         .rows = tokens,
         .columns = tokens},
        head, [&](double q, double k) {
          return std::vector<double>{q, k, static_cast<double>(head), heads, n};
        });
  }
  const auto add_features = [&](const models::FormulaNodes& nodes, const char* place,
                                const char* column, int64_t columns, int64_t d) {
    add(nodes,
        {.title = absl::StrCat(encoding.label(), " ", place),
         .row_name = "p",
         .column_name = column,
         .rows = tokens,
         .columns = columns},
        0, [&](double p, double c) {
          return std::vector<double>{p, c, static_cast<double>(d)};
        });
  };
  if (definition.embedding) {
    add_features(*definition.embedding, "embedding", "c", context.d_model, context.d_model);
  }
  if (definition.angle) {
    const int64_t d = context.d_model / context.heads;
    add_features(*definition.angle, "angle", "i", d / 2, d);
  }
  return grids;
}

}  // namespace

absl::StatusOr<int> DrawFormulas(Program& program, const FormulaDrawing& drawing) {
  if (!drawing.out.empty() && !absl::EndsWith(drawing.out, ".svg") &&
      !absl::EndsWith(drawing.out, ".png") && !absl::EndsWith(drawing.out, ".pdf")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--out: got ", drawing.out, ", expected a name that ends in .svg, .png or .pdf"));
  }
  ASSIGN_OR_RETURN(const auto resolved, ResolveFile(drawing.specification));
  const v1::ExperimentSpecification& specification = resolved.grid.specification;
  const models::EncodingContext context = ContextOf(specification);
  int64_t tokens = drawing.tokens;
  if (tokens == 0) {
    ASSIGN_OR_RETURN(tokens, LongestInput(resolved));
    tokens = std::min(tokens, kMaxTokens);
  }
  if (tokens < 1 || tokens > kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--length: got ", tokens, ", a picture has 1 to ", kMaxTokens, " tokens"));
  }
  if (drawing.head < 1 || drawing.head > context.heads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--head: got ", drawing.head, ", the network has heads 1 to ", context.heads));
  }
  std::vector<NumberGrid> all;
  bool first = true;
  for (const v1::Component& encoding : specification.encodings()) {
    if (encoding.name() != models::FormulaEntry().name) continue;
    const std::vector<NumberGrid> grids = GridsOf(encoding, context, tokens);
    all.insert(all.end(), grids.begin(), grids.end());
    if (!drawing.out.empty()) continue;
    const int64_t biases = grids.empty() || grids[0].row_name != "q" ? 0 : context.heads;
    for (size_t i = 0; i < grids.size(); ++i) {
      if (static_cast<int64_t>(i) < biases && static_cast<int64_t>(i) != drawing.head - 1) continue;
      program.out() << (first ? "" : "\n")
                    << RenderGrid(grids[i], program.width(), program.palette());
      first = false;
    }
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(drawing.specification,
                     " has no encoding `formula`; `lengthwise encodings formula` explains "
                     "how to write one"));
  }
  if (drawing.out.empty()) return kSuccess;
  return WritePicture(program, all, drawing.out);
}

}  // namespace lengthwise::client
