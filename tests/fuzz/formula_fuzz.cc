// The encoding `formula`. The first line is its parameters; the second byte of the rest selects
// which formula the remaining bytes are.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_expression.h"
#include "models/encodings/formula_values.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  if (end == absl::string_view::npos || end + 1 == size) return 0;
  const std::vector<models::FormulaPlace>& places = models::FormulaPlaces();
  const auto chosen = static_cast<unsigned char>(text[end + 1] - '0');
  const models::FormulaPlace& place = places[chosen % places.size()];
  catalogue::Parameters given;
  given.Set("parameters", std::string(text.substr(0, end)));
  given.Set(place.name, std::string(text.substr(end + 2)));
  std::vector<catalogue::Problem> problems;
  const models::FormulaDefinition definition = models::ReadFormula(given, "e", problems);
  for (const catalogue::Problem& problem : problems) {
    Must(!problem.field.empty() && !problem.description.empty(), "a refusal says where and why");
  }
  if (!problems.empty()) return 0;
  const std::string written = models::FormatFormulaParameters(definition.parameters);
  Must(models::FormatFormulaParameters(models::ParseFormulaParameters(written, "e", problems)) ==
               written &&
           problems.empty(),
       "parameters read back as written");
  const models::FormulaNodes& nodes = (definition.*place.nodes).value();
  Must(nodes.size() <= models::kMaxFormulaNodes, "a formula is bounded");
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const size_t operand : nodes[i].operands) {
      Must(operand < i, "operands precede their results");
    }
  }
  models::CheckFormulaValues(definition,
                             {.d_model = 8,
                              .heads = 2,
                              .blocks = 2,
                              .longest_sequence = 9,
                              .shortest_sequence = 1,
                              .operations = 20'000},
                             models::PositionPolicy({}), "e", problems);
  if (problems.empty() && definition.logits) {
    models::FormulaEvaluator evaluator(*definition.logits, definition.parameters);
    Must(std::isfinite(evaluator.At(std::vector<double>{0, 8, 1, 2, 9}, 1, 1)),
         "checked formulas are finite");
  }
  return 0;
}
