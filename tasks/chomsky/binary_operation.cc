#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/binary_number.h"
#include "tasks/chomsky/terminator.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

constexpr int32_t kOperator = 2;

class BinaryOperationTask : public TransductionTask {
 public:
  int32_t input_size() const final { return 3; }
  int32_t output_size() const final { return 3; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const final {
    if (n <= 2) {
      DrawLoneNumber(stream, input);
    } else {
      const auto place = static_cast<size_t>(stream.Between(1, n - 2));
      DrawPositive(stream, input.first(place));
      input[place] = kOperator;
      DrawPositive(stream, input.subspan(place + 1));
    }
    Solve(input, target);
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const final {
    const auto found = std::find(input.begin(), input.end(), kOperator);
    const auto place = static_cast<size_t>(found - input.begin());
    // Without an operator the second number is 0.
    const Limbs second = found == input.end() ? Limbs() : FromLowFirst(input.subspan(place + 1));
    const Limbs result = Calculate(FromLowFirst(input.first(place)), second);
    // Zero is written as one bit if the target has room for it beside the terminator, which a
    // product of length 1 lacks. Every other result fits.
    const size_t length = std::min(target.size() - 1, std::max<size_t>(BitLength(result), 1));
    for (size_t i = 0; i < length; ++i) target[i] = Bit(result, i);
    Terminate(target, target.begin() + static_cast<ptrdiff_t>(length));
  }

  void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const final {
    MaskThroughTerminator(target, mask);
  }

 protected:
  virtual Limbs Calculate(const Limbs& a, const Limbs& b) const = 0;

 private:
  // Uniform in {0, ..., 2^n - 2}: the reference code excludes its upper limit.
  static void DrawLoneNumber(random::Stream& stream, absl::Span<int32_t> bits) {
    DrawPositive(stream, bits);
    for (int32_t& bit : bits) bit = 1 - bit;
  }
};

class BinaryAdditionTask final : public BinaryOperationTask {
 public:
  int64_t OutputLength(int64_t n) const override { return n + 1; }

 private:
  Limbs Calculate(const Limbs& a, const Limbs& b) const override { return Sum(a, b); }
};

class BinaryMultiplicationTask final : public BinaryOperationTask {
 public:
  int64_t OutputLength(int64_t n) const override { return n; }

 private:
  Limbs Calculate(const Limbs& a, const Limbs& b) const override { return Product(a, b); }
};

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
      CreateWithoutParameters<BinaryAdditionTask>};
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
      CreateWithoutParameters<BinaryMultiplicationTask>};
}

}  // namespace lengthwise::tasks::chomsky
