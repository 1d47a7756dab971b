#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/arithmetic_expression.h"

namespace lengthwise::tasks::chomsky {
namespace {

class ModularArithmeticBracketsTask final : public TransductionTask {
 public:
  ModularArithmeticBracketsTask(int32_t modulus, bool multiplication)
      : alphabet_(modulus, multiplication) {}

  // As in the reference code, which counts too many: with modulus 5, token 10 never occurs.
  int32_t input_size() const override { return alphabet_.modulus() + 6; }
  int32_t output_size() const override { return alphabet_.modulus(); }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    DrawExpression(alphabet_, stream, input);
    Solve(input, target);
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    target[0] = Evaluate(alphabet_, input).constant;
  }

 private:
  const ExpressionAlphabet alphabet_;
};

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
      [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
        return std::make_unique<ModularArithmeticBracketsTask>(Modulus(parameters),
                                                               parameters.Bool("multiplication"));
      }};
}

}  // namespace lengthwise::tasks::chomsky
