// The regular tasks.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/arithmetic_expression.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

void SolveEvenPairs(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  int32_t unequal = 0;
  for (size_t i = 1; i < input.size(); ++i) unequal += input[i - 1] != input[i];
  target[0] = unequal % 2;
}

void SolveParityCheck(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  target[0] = std::accumulate(input.begin(), input.end(), 0) % 2;
}

template <Solver solve>
std::unique_ptr<Task> CreateOfBits(const catalogue::Parameters& /*parameters*/) {
  return FromFunctions(
      {.input_size = 2, .output_size = 2, .output_length = OneToken, .solve = solve});
}

void SolveCycleNavigation(int32_t places, absl::Span<const int32_t> input,
                          absl::Span<int32_t> target) {
  int32_t place = 0;
  for (const int32_t move : input) place = (place + places + move - 1) % places;
  target[0] = place;
}

void DrawModularArithmetic(int32_t modulus, random::Stream& stream, absl::Span<int32_t> input) {
  const auto digits = static_cast<uint32_t>(modulus);
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = i % 2 == 0 ? static_cast<int32_t>(stream.Below(digits))
                          : modulus + static_cast<int32_t>(stream.Below(3));
  }
}

void SolveModularArithmetic(int32_t modulus, absl::Span<const int32_t> input,
                            absl::Span<int32_t> target) {
  int32_t sum = 0;          // of the completed products
  int32_t term = input[0];  // the product being read, with its sign
  for (size_t i = 1; i + 1 < input.size(); i += 2) {
    const int32_t operation = input[i] - modulus;
    const int32_t digit = input[i + 1];
    if (operation == 2) {
      term = term * digit % modulus;
    } else {
      sum = (sum + term) % modulus;
      term = operation == 0 ? digit : -digit;
    }
  }
  target[0] = Residue(sum + term, modulus);
}

}  // namespace

TaskEntry EvenPairs() {
  return {
      {.name = "even_pairs",
       .title = "Even Pairs",
       .documentation = "Counts unequal neighbours (01 or 10): 0 if their number is even, 1 if it "
                        "is odd. Equivalently, 1 if the first bit differs from the last. Ruoss et "
                        "al. 2023, Table 1. Input bits are independent and uniform."},
      TaskKind::kTransduction,
      "regular",
      0.5,
      CreateOfBits<SolveEvenPairs>};
}

TaskEntry ParityCheck() {
  return {{.name = "parity_check",
           .title = "Parity Check",
           .documentation = "Counts the ones modulo 2. Ruoss et al. 2023, Table 1. "
                            "Input bits are independent and uniform."},
          TaskKind::kTransduction,
          "regular",
          0.5,
          CreateOfBits<SolveParityCheck>,
          /*permutation_invariant=*/true};
}

TaskEntry CycleNavigation() {
  return {
      {.name = "cycle_navigation",
       .title = "Cycle Navigation",
       .documentation =
           "Finds where a walk from position 0 of a cycle ends. Moves: 0 a step back, 1 stay, 2 a "
           "step forward. Ruoss et al. 2023, Table 1. Moves are independent and uniform.",
       .parameters = {{.name = "modulus",
                       .default_value = int64_t{5},
                       .documentation = "Number of positions on the cycle.",
                       .minimum = 2,
                       .maximum = 1000}}},
      TaskKind::kTransduction,
      "regular",
      0.2,
      [](const catalogue::Parameters& parameters) {
        return FromFunctions({.input_size = 3,
                              .output_size = Modulus(parameters),
                              .output_length = OneToken,
                              .solve = std::bind_front(SolveCycleNavigation, Modulus(parameters))});
      },
      /*permutation_invariant=*/true};
}

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
          [](const catalogue::Parameters& parameters) {
            const int32_t modulus = Modulus(parameters);
            return FromFunctions(
                // The digits, +, -, * and a padding token, which the reference code counts but
                // never uses.
                {.input_size = modulus + 4,
                 .output_size = modulus,
                 .output_length = OneToken,
                 .solve = std::bind_front(SolveModularArithmetic, modulus),
                 .draw = std::bind_front(DrawModularArithmetic, modulus),
                 // Digits and operators alternate, so expressions have odd lengths. An even length
                 // is rounded down.
                 .input_length = [](int64_t n) { return n - (n + 1) % 2; }});
          }};
}

}  // namespace lengthwise::tasks::chomsky
