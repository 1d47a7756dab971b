#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/arithmetic_expression.h"

namespace lengthwise::tasks::chomsky {
namespace {

class ModularArithmeticTask final : public TransductionTask {
 public:
  explicit ModularArithmeticTask(int32_t modulus) : modulus_(modulus) {}

  // The digits, +, -, * and a padding token, which the reference code counts but never uses.
  int32_t input_size() const override { return modulus_ + 4; }
  int32_t output_size() const override { return modulus_; }
  // Digits and operators alternate, so expressions have odd lengths. An even length is rounded
  // down.
  int64_t InputLength(int64_t n) const override { return n - (n + 1) % 2; }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    const auto digits = static_cast<uint32_t>(modulus_);
    for (size_t i = 0; i < input.size(); ++i) {
      input[i] = i % 2 == 0 ? static_cast<int32_t>(stream.Below(digits))
                            : modulus_ + static_cast<int32_t>(stream.Below(3));
    }
    Solve(input, target);
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    int32_t sum = 0;          // of the completed products
    int32_t term = input[0];  // the product being read, with its sign
    for (size_t i = 1; i + 1 < input.size(); i += 2) {
      const int32_t operation = input[i] - modulus_;
      const int32_t digit = input[i + 1];
      if (operation == 2) {
        term = term * digit % modulus_;
      } else {
        sum = (sum + term) % modulus_;
        term = operation == 0 ? digit : -digit;
      }
    }
    target[0] = Residue(sum + term, modulus_);
  }

 private:
  const int32_t modulus_;
};

}  // namespace

TaskEntry ModularArithmetic() {
  return {{.name = "modular_arithmetic",
           .title = "Modular Arithmetic (Simple)",
           .documentation = "Evaluates digits joined by + (5), - (6) and * (7), modulo 5; products "
                            "first. Ruoss et al. 2023, Table 1. Digits and operators are uniform. "
                            "Samples of even lengths are one token shorter.",
           .parameters = {ModulusParameter()}},
          TaskKind::kTransduction,
          "regular",
          0.2,
          [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
            return std::make_unique<ModularArithmeticTask>(Modulus(parameters));
          }};
}

}  // namespace lengthwise::tasks::chomsky
