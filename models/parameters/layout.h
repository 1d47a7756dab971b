// Where each parameter of a network lies in its arena row, and how it is initialised. No LibTorch.
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

// Index of a parameter in its layout.
using ParameterId = int;

// The parameters of one model, in the order in which the network added them. Each starts at a
// multiple of 16 elements (64 bytes in float32), and so does each row of an arena, so that a
// model's numbers do not depend on its place in a pack; the padding is zero and stays zero.
class ParameterLayout {
 public:
  struct Slot {
    std::string name;  // "blocks.0.attention.query"
    std::vector<int64_t> shape;
    Initializer initializer;
    int64_t offset = 0;  // elements from the start of the row
    int64_t size = 0;    // elements
    // False for random numbers that stay what they start as: no gradient reaches them, and weight
    // decay leaves them alone.
    bool trained = true;
    // What no element is left below by an optimizer's step. Initial values may be.
    std::optional<double> minimum = std::nullopt;
  };

  // Names must be new.
  ParameterId Add(std::string name, std::vector<int64_t> shape, Initializer initializer,
                  bool trained = true);

  void SetMinimum(ParameterId id, double minimum);

  const std::vector<Slot>& slots() const { return slots_; }
  // Elements of an arena row, padding included.
  int64_t row_size() const { return row_size_; }
  // Elements without padding: what papers print.
  int64_t parameter_count() const { return parameter_count_; }

 private:
  std::vector<Slot> slots_;
  int64_t row_size_ = 0;
  int64_t parameter_count_ = 0;
};

// Fills a row with the initial weights of `weight_seed`: a function of the seed and of each
// parameter's index, computed in double precision.
void InitializeRow(const ParameterLayout& layout, uint64_t weight_seed, absl::Span<float> row);
void InitializeRow(const ParameterLayout& layout, uint64_t weight_seed, absl::Span<double> row);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PARAMETERS_LAYOUT_H_
