#include "models/encodings/binary.h"

#include <bit>

#include "ATen/ops/arange.h"
#include "models/encodings/encoding.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

class Binary : public Encoding {
 public:
  explicit Binary(int64_t digits) : digits_(digits) {}

  at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const override {
    const at::Tensor digit = at::arange(digits_, positions.options());
    return positions.unsqueeze(-1).bitwise_right_shift(digit).bitwise_and(1).mul(2).sub(1).to(
        parameters[0].scalar_type());
  }
  int64_t vector_size() const override { return digits_; }

 private:
  int64_t digits_;
};

}  // namespace

std::unique_ptr<Encoding> CreateBinary(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  const PositionPolicy policy(parameters);
  const int64_t positions = policy.randomized() ? policy.max_position() : shape.longest_sequence;
  // Of the largest, positions - 1; a sequence of one token has a digit, too.
  const int digits = std::bit_width(static_cast<uint64_t>(positions < 2 ? 1 : positions - 1));
  return std::make_unique<Binary>(digits);
}

}  // namespace lengthwise::models
