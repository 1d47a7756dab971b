// Offsets of a network's parameters in an arena row, and their initialisation. No LibTorch.
#ifndef LENGTHWISE_MODELS_PARAMETERS_LAYOUT_H_
#define LENGTHWISE_MODELS_PARAMETERS_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace lengthwise::models {

struct Initializer {
  enum class Kind {
    kZeros,
    kOnes,
    kNormal,            // N(0, stddev)
    kConstant,          // value
    kTruncatedNormal,   // stddev * N(0, 1) truncated to [-2, 2], without variance correction
    kUniform,           // U(-value, value)
    kUniformAboveZero,  // U(0, value)
    kValues,            // `values`, one for each element
  };
  Kind kind = Kind::kZeros;
  double stddev = 0;
  double value = 0;
  std::vector<double> values = {};
};

// How layers with `fan_in` inputs start. HaikuLinear: weights as hk.Linear of Haiku, from a normal
// distribution of deviation 1 / sqrt(fan_in), truncated at two. TorchLinear: weights and biases as
// torch.nn.Linear, uniform up to 1 / sqrt(fan_in).
Initializer HaikuLinear(int64_t fan_in);
Initializer TorchLinear(int64_t fan_in);

// Index of a parameter in its layout.
using ParameterId = int;

// Parameters of one model, in the order in which the network added them. Each parameter, and each
// row of an arena, starts at a multiple of 16 elements (64 bytes in float32), so that a model's
// numbers do not depend on its place in a pack. Padding is and stays zero.
class ParameterLayout {
 public:
  struct Slot {
    std::string name;  // "blocks.0.attention.query"
    std::vector<int64_t> shape;
    Initializer initializer;
    int64_t offset = 0;  // elements from the start of the row
    int64_t size = 0;    // elements
    // False keeps random initial values: no gradient reaches the parameter, and weight decay skips
    // it.
    bool trained = true;
    // Lower bound of every element after an optimizer's step. Initial values may be lower.
    std::optional<double> minimum = std::nullopt;
  };

  // Names must be unique.
  ParameterId Add(std::string name, std::vector<int64_t> shape, Initializer initializer,
                  bool trained = true);

  void SetMinimum(ParameterId id, double minimum);

  const std::vector<Slot>& slots() const { return slots_; }
  // Elements of an arena row, padding included.
  int64_t row_size() const { return row_size_; }
  // Elements without padding: the parameter count that papers print.
  int64_t parameter_count() const { return parameter_count_; }

 private:
  std::vector<Slot> slots_;
  int64_t row_size_ = 0;
  int64_t parameter_count_ = 0;
};

// Fills a row with the initial weights of `weight_seed`: a function of the seed and of each
// parameter's index and initializer, computed in double precision.
// `Number` is float or double.
template <typename Number>
void InitializeRow(const ParameterLayout& layout, uint64_t weight_seed, absl::Span<Number> row);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PARAMETERS_LAYOUT_H_
