// Tasks on bracketed expressions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/arithmetic_expression.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

void SolveBrackets(const ExpressionAlphabet& alphabet, absl::Span<const int32_t> input,
                   absl::Span<int32_t> target) {
  target[0] = Evaluate(alphabet, input).constant;
}

void DrawEquation(const ExpressionAlphabet& alphabet, random::Stream& stream,
                  absl::Span<int32_t> input) {
  if (input.size() < 3) {  // No room for an equation; the reference code uses this constant.
    std::fill(input.begin(), input.end(), 0);
    return;
  }
  const absl::Span<int32_t> expression = input.first(input.size() - 2);
  DrawExpression(alphabet, stream, expression);
  input[input.size() - 2] = alphabet.equals();
  input.back() = Evaluate(alphabet, expression).constant;
  // Picks the first digit at or, cyclically, to the right of a uniform place. As in the reference
  // code, digits after several brackets are more likely.
  size_t place = stream.Below(static_cast<uint32_t>(expression.size()));
  while (expression[place] >= alphabet.modulus()) place = (place + 1) % expression.size();
  expression[place] = alphabet.unknown();
}

// Without multiplication the unknown has coefficient 1 or -1, so there is exactly one solution.
void SolveForX(const ExpressionAlphabet& alphabet, absl::Span<const int32_t> input,
               absl::Span<int32_t> target) {
  target[0] = 0;
  if (input.size() < 3) return;
  const LinearValue left = Evaluate(alphabet, input.first(input.size() - 2));
  const int32_t rest = input.back() - left.constant;
  target[0] = Residue(left.coefficient == 1 ? rest : -rest, alphabet.modulus());
}

}  // namespace

TaskEntry ModularArithmeticBrackets() {
  return {
      {.name = "modular_arithmetic_brackets",
       .title = "Modular Arithmetic",
       .documentation =
           "Evaluates an expression modulo 5: digits, + (5), - (6), * (7) and brackets (8 and 9) "
           "around every operation. Ruoss et al. 2023, Table 1. The length of an operation's left "
           "operand is uniform, and so are digits and operators.",
       .parameters =
           {ModulusParameter(),
            {.name = "multiplication",
             .default_value = true,
             .documentation =
                 "Includes the operator *. Without it the brackets' tokens are lower by one."}}},
      TaskKind::kTransduction,
      "deterministic context-free",
      0.2,
      [](const catalogue::Parameters& parameters) {
        const ExpressionAlphabet alphabet(Modulus(parameters), parameters.Bool("multiplication"));
        return FromFunctions(
            // As in the reference code, which counts too many: with modulus 5, token 10 never
            // occurs.
            {.input_size = alphabet.modulus() + 6,
             .output_size = alphabet.modulus(),
             .output_length = OneToken,
             .solve = std::bind_front(SolveBrackets, alphabet),
             .draw = std::bind_front(DrawExpression, alphabet)});
      }};
}

TaskEntry SolveEquation() {
  return {
      {.name = "solve_equation",
       .title = "Solve Equation",
       .documentation =
           "Solves an equation modulo 5 for x (9). The left side has digits, x, + (5), - (6) and "
           "brackets (7 and 8) around every operation; = (10) and the value follow. Ruoss et al. "
           "2023, Table 1. At lengths 1 and 2 input and target are zeros.",
       .parameters = {ModulusParameter()}},
      TaskKind::kTransduction,
      "deterministic context-free",
      0.2,
      [](const catalogue::Parameters& parameters) {
        const ExpressionAlphabet alphabet(Modulus(parameters), /*multiplication=*/false);
        return FromFunctions({.input_size = alphabet.modulus() + 6,
                              .output_size = alphabet.modulus(),
                              .output_length = OneToken,
                              .solve = std::bind_front(SolveForX, alphabet),
                              .draw = std::bind_front(DrawEquation, alphabet)});
      }};
}

}  // namespace lengthwise::tasks::chomsky
