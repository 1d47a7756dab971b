// Tasks on binary numbers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/binary_number.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

constexpr int32_t kOperator = 2;

void DrawOperation(random::Stream& stream, absl::Span<int32_t> input) {
  if (input.size() <= 2) {
    // A lone number, uniform in {0, ..., 2^n - 2}: the reference code excludes its upper limit.
    DrawPositive(stream, input);
    for (int32_t& bit : input) bit = 1 - bit;
    return;
  }
  const auto place = static_cast<size_t>(stream.Between(1, static_cast<int64_t>(input.size()) - 2));
  DrawPositive(stream, input.first(place));
  input[place] = kOperator;
  DrawPositive(stream, input.subspan(place + 1));
}

using Calculate = Limbs (*)(const Limbs& a, const Limbs& b);

template <Calculate calculate>
void SolveOperation(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  const auto found = std::find(input.begin(), input.end(), kOperator);
  const auto place = static_cast<size_t>(found - input.begin());
  // Without an operator the second number is 0.
  const Limbs second = found == input.end() ? Limbs() : FromLowFirst(input.subspan(place + 1));
  const Limbs result = calculate(FromLowFirst(input.first(place)), second);
  // Zero is written as one bit if the target has room for it beside the terminator, which a product
  // of length 1 lacks. Every other result fits.
  const size_t length = std::min(target.size() - 1, std::max<size_t>(BitLength(result), 1));
  for (size_t i = 0; i < length; ++i) target[i] = Bit(result, i);
  Terminate(target, target.begin() + static_cast<ptrdiff_t>(length));
}

// Targets have `more` tokens than inputs.
template <Calculate calculate, int64_t more>
std::unique_ptr<Task> CreateOperation(const catalogue::Parameters& /*parameters*/) {
  return FromFunctions({.input_size = 3,
                        .output_size = 3,
                        .output_length = [](int64_t n) { return n + more; },
                        .solve = SolveOperation<calculate>,
                        .draw = DrawOperation,
                        .is_terminated = true});
}

void SolveSqrt(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  const Limbs root = SquareRoot(FromHighFirst(input));
  for (size_t i = 0; i < target.size(); ++i) target[i] = Bit(root, target.size() - 1 - i);
}

}  // namespace

TaskEntry BinaryAddition() {
  return {
      {.name = "binary_addition",
       .title = "Binary Addition",
       .documentation =
           "Adds two positive binary numbers joined by + (2), lowest bit first. The target is the "
           "sum, the terminator 2, then zeros that do not count for accuracy. Ruoss et al. 2023, "
           "Table 1, where guessing scores 50 %: one of two bits. The position of the + is "
           "uniform, and so are the numbers; arithmetic is exact at any length. Lengths 1 and 2 "
           "hold a single number, which is the sum."},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      CreateOperation<Sum, 1>};
}

TaskEntry BinaryMultiplication() {
  return {
      {.name = "binary_multiplication",
       .title = "Binary Multiplication",
       .documentation =
           "Multiplies two positive binary numbers joined by * (2), lowest bit first. The target "
           "is the product, the terminator 2, then zeros that do not count for accuracy. Ruoss et "
           "al. 2023, Table 1, where guessing scores 50 %: one of two bits. The position of the * "
           "is uniform, and so are the numbers; arithmetic is exact at any length. Lengths 1 and 2 "
           "hold a single number, and the product is 0."},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      CreateOperation<Product, 0>};
}

TaskEntry ComputeSqrt() {
  return {
      {.name = "compute_sqrt",
       .title = "Compute Sqrt",
       .documentation = "Computes the square root of a binary number, rounded down. Both have the "
                        "highest bit first; leading zeros extend the root to half the input's "
                        "length, rounded up. Ruoss et al. 2023, Table 1. The number is uniform "
                        "from 1 to 2^n - 1; arithmetic is exact at any length."},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      [](const catalogue::Parameters&) {
        return FromFunctions({.input_size = 2,
                              .output_size = 2,
                              .output_length = [](int64_t n) { return (n + 1) / 2; },
                              .solve = SolveSqrt,
                              .draw = DrawPositive});
      }};
}

}  // namespace lengthwise::tasks::chomsky
