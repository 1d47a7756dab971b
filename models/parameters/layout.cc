#include "models/parameters/layout.h"

#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "random/stream.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kAlignment = 16;  // elements

int64_t RoundUp(int64_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

double Draw(const Initializer& initializer, random::Stream& stream) {
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      return 0;
    case Initializer::Kind::kOnes:
      return 1;
    case Initializer::Kind::kConstant:
      return initializer.value;
    case Initializer::Kind::kNormal:
      return initializer.stddev * stream.NextNormal();
    case Initializer::Kind::kTruncatedNormal: {
      // Rejection sampling; one draw in 22 is rejected.
      double value = stream.NextNormal();
      while (std::abs(value) > 2) value = stream.NextNormal();
      return initializer.stddev * value;
    }
    case Initializer::Kind::kUniform:
      return initializer.value * (2 * stream.NextDouble() - 1);
    case Initializer::Kind::kUniformAboveZero:
      return initializer.value * stream.NextDouble();
    case Initializer::Kind::kValues:
      break;  // handled by InitializeRow
  }
  return 0;
}

}  // namespace

Initializer HaikuLinear(int64_t fan_in) {
  return {.kind = Initializer::Kind::kTruncatedNormal,
          .stddev = 1 / std::sqrt(static_cast<double>(fan_in))};
}

Initializer TorchLinear(int64_t fan_in) {
  return {.kind = Initializer::Kind::kUniform, .value = 1 / std::sqrt(static_cast<double>(fan_in))};
}

ParameterId ParameterLayout::Add(std::string name, std::vector<int64_t> shape,
                                 Initializer initializer, bool trained) {
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  slots_.push_back({.name = std::move(name),
                    .shape = std::move(shape),
                    .initializer = std::move(initializer),
                    .offset = row_size_,
                    .size = size,
                    .trained = trained});
  row_size_ = RoundUp(row_size_ + size);
  parameter_count_ += size;
  return static_cast<ParameterId>(slots_.size()) - 1;
}

void ParameterLayout::SetMinimum(ParameterId id, double minimum) {
  slots_[static_cast<size_t>(id)].minimum = minimum;
}

template <typename Number>
void InitializeRow(const ParameterLayout& layout, uint64_t weight_seed, absl::Span<Number> row) {
  for (size_t i = 0; i < layout.slots().size(); ++i) {
    const ParameterLayout::Slot& slot = layout.slots()[i];
    const absl::Span<Number> elements =
        row.subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    if (slot.initializer.kind == Initializer::Kind::kValues) {
      for (size_t e = 0; e < elements.size(); ++e) {
        elements[e] = static_cast<Number>(slot.initializer.values.at(e));
      }
      continue;
    }
    // A stream for each parameter: its values do not depend on the sizes of those before it.
    random::Stream stream(weight_seed, random::Purpose::kWeights, 0, static_cast<uint32_t>(i));
    for (Number& element : elements) element = static_cast<Number>(Draw(slot.initializer, stream));
  }
}

template void InitializeRow(const ParameterLayout&, uint64_t, absl::Span<float>);
template void InitializeRow(const ParameterLayout&, uint64_t, absl::Span<double>);

}  // namespace lengthwise::models
