#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/encodings/formula.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_values.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const size_t before = problems.size();
  CheckPositions(parameters, context.longest_sequence, path, problems);
  const FormulaDefinition definition = ReadFormula(parameters, path, problems);
  if (definition.angle && context.heads > 0 && context.d_model % (2 * context.heads) != 0) {
    problems.push_back(
        {.field = absl::StrCat(path, ".angle"),
         .description = absl::StrCat(
             "turns pairs of features, so each head needs an even number of them; the network has "
             "d_model = ",
             context.d_model, " and ", context.heads, " heads")});
  }
  if (definition.logits && context.open_ended && UsesArgument(*definition.logits, 4)) {
    problems.push_back({.field = absl::StrCat(path, ".logits"),
                        .description = "n is not known where a text is continued token by token; "
                                       "use q and k alone"});
  }
  for (const FormulaParameter& parameter : definition.parameters) {
    const bool per_head = parameter.per == FormulaParameter::Per::kHead;
    const int64_t expected = per_head ? context.heads : context.blocks;
    if (parameter.size > 0 || parameter.initial.size() == 1 ||
        static_cast<int64_t>(parameter.initial.size()) == expected) {
      continue;
    }
    problems.push_back(
        {.field = absl::StrCat(path, ".parameters"),
         .description = absl::StrCat("\"", parameter.name, "\" has ", parameter.initial.size(),
                                     " initial values, the network has ", expected,
                                     per_head ? " heads" : " layers")});
  }
  if (problems.size() != before) return;
  const PositionPolicy policy(parameters);
  CheckFormulaValues(definition,
                     {.heads = context.heads,
                      .layers = context.blocks,
                      .d_model = context.d_model,
                      .shortest = context.shortest_sequence,
                      .longest = context.longest_sequence,
                      .max_position = policy.randomized() ? policy.max_position() : 0,
                      .operations = context.operations},
                     path, problems);
}

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  const auto add = [&](const char* name, const char* documentation) {
    parameters.push_back(
        {.name = name, .default_value = std::string(), .documentation = documentation});
  };
  add("logits",
      "Formula of query position q, key position k, head h of H and length n: added to the "
      "attention logits of head h.");
  add("embedding",
      "Formula of position p and channel c of d = d_model: added to the embedding of each token.");
  add("angle",
      "Formula of position p and pair i of the d / 2 pairs of a head's d features: queries and "
      "keys are rotated by it.");
  add("parameters",
      "The formulas' own parameters: a map from names to numbers, lists or settings in a "
      "specification, a text such as \"a per head = 1\" when resolved.");
  return parameters;
}

}  // namespace

const EncodingEntry& FormulaEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "formula",
       .title = "Formula",
       .documentation =
           "An encoding of your own, written in the specification: formulas for what is added to "
           "the logits, added to the embeddings, or rotates queries and keys, with parameters that "
           "are learned or fixed.",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

std::string FormulaPage() {
  return R"page(An example:

  encodings:
    - name: formula
      label: my_bias                  # what tables and figures show
      logits: "-softplus(a) * log1p(softplus(b) * abs(q - k))"
      parameters:
        a: {per: head, initial: 1.0}
        b: {per: head, initial: 0.1}

Where a formula may stand (at least one place), and its arguments:
  logits      q, k: positions of query and key; h of H heads; n tokens (input and output)
  embedding   p: position; c of d channels, d = d_model
  angle       p: position; i of the d / 2 pairs of a head's d features
Positions, heads, channels and pairs count from 0. Randomized positions are what q, k and p are.

What a formula is made of:
  numbers     10, 0.5, 1e-3, pi
  operators   a ^ b, then -a, then a * b and a / b, then a + b and a - b, then comparisons
  comparisons <  <=  >  >=  ==  !=     1 where they hold, else 0
  functions   abs cos exp floor log log1p sigmoid sin softplus sqrt tanh, max(a, b), min(a, b)
  where(condition, a, b)               a where the condition is not 0, else b
  t[x]        element floor(x) of the table t, counted from 0; beyond its ends, the first or last
A formula has at most 1,000 characters and 200 numbers, names and operators.

Parameters (at most 16), learned unless they are fixed:
  a: 0.5                                   one number for the model, which starts from 0.5
  a: {per: head, initial: 0.5}             per: head (in logits alone), layer or model
  a: {per: head, initial: [1, 2, 4, 8]}    one initial value for each head or layer
  t: [0, 0.5, 1]                           a table of three numbers
  t: {size: 32, per: head, stddev: 0.1}    a table for each head, from N(0, stddev)
  s: {initial: 8, fixed: true}             never trained

`lengthwise validate` names mistakes by column, and formulas that are not finite somewhere in the
lengths of the specification. `lengthwise encodings --draw FILE.yaml` draws them.
)page";
}

}  // namespace lengthwise::models
