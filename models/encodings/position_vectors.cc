// Encodings that give positions as vectors, for networks that attend by them.
#include <bit>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/one_hot.h"
#include "models/encodings/encoding.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

// One-hot vector: 1 at the position, 0 elsewhere (positional attention, section 4).
class OneHot : public Encoding {
 public:
  OneHot(int64_t size, bool last_apart) : size_(size), last_apart_(last_apart) {}

  at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const override {
    at::Tensor places = positions.to(at::kLong);
    if (last_apart_) {
      const int64_t others = places.size(1) - 1;
      const at::Tensor last = places.narrow(1, others, 1);
      places = at::cat({places.narrow(1, 0, others), at::full_like(last, size_ - 1)}, 1);
    }
    return at::one_hot(places, size_).to(parameters[0].scalar_type());
  }
  int64_t vector_size() const override { return size_; }

 private:
  int64_t size_;
  bool last_apart_;
};

// Binary digits of the position as -1 and 1, lowest first (positional attention, appendix C.3).
class Binary : public Encoding {
 public:
  explicit Binary(int64_t digits) : digits_(digits) {}

  at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const override {
    const at::Tensor places = positions.to(at::kLong).unsqueeze(-1);
    const at::Tensor digit = at::arange(digits_, places.options());
    return places.bitwise_right_shift(digit).bitwise_and(1).mul(2).sub(1).to(
        parameters[0].scalar_type());
  }
  int64_t vector_size() const override { return digits_; }

 private:
  int64_t digits_;
};

}  // namespace

std::unique_ptr<Encoding> CreateOneHot(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  const PositionPolicy policy(parameters);
  return std::make_unique<OneHot>(policy.Integers(shape.longest_sequence),
                                  parameters.Bool("last_apart") && !policy.drawn());
}

std::unique_ptr<Encoding> CreateBinary(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  const int64_t positions = PositionPolicy(parameters).Integers(shape.longest_sequence);
  // Digits of the largest position, positions - 1; at least one, for sequences of one token.
  const int digits = std::bit_width(static_cast<uint64_t>(positions < 2 ? 1 : positions - 1));
  return std::make_unique<Binary>(digits);
}

}  // namespace lengthwise::models
