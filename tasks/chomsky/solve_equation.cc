#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/arithmetic_expression.h"

namespace lengthwise::tasks::chomsky {
namespace {

class SolveEquationTask final : public TransductionTask {
 public:
  // Without multiplication the unknown has coefficient 1 or -1, so there is exactly one solution.
  explicit SolveEquationTask(int32_t modulus) : alphabet_(modulus, /*multiplication=*/false) {}

  int32_t input_size() const override { return alphabet_.modulus() + 6; }
  int32_t output_size() const override { return alphabet_.modulus(); }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    if (n < 3) {  // No room for an equation; the reference code uses this constant.
      std::fill(input.begin(), input.end(), 0);
      target[0] = 0;
      return;
    }
    const absl::Span<int32_t> expression = input.first(input.size() - 2);
    DrawExpression(alphabet_, stream, expression);
    input[input.size() - 2] = alphabet_.equals();
    input.back() = Evaluate(alphabet_, expression).constant;
    // Picks the first digit at or, cyclically, to the right of a uniform place. As in the reference
    // code, digits after several brackets are more likely.
    size_t place = stream.Below(static_cast<uint32_t>(expression.size()));
    while (expression[place] >= alphabet_.modulus()) place = (place + 1) % expression.size();
    target[0] = expression[place];
    expression[place] = alphabet_.unknown();
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    if (input.size() < 3) {
      target[0] = 0;
      return;
    }
    const LinearValue left = Evaluate(alphabet_, input.first(input.size() - 2));
    const int32_t rest = input.back() - left.constant;
    target[0] = Residue(left.coefficient == 1 ? rest : -rest, alphabet_.modulus());
  }

 private:
  const ExpressionAlphabet alphabet_;
};

}  // namespace

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
      [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
        return std::make_unique<SolveEquationTask>(Modulus(parameters));
      }};
}

}  // namespace lengthwise::tasks::chomsky
