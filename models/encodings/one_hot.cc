#include "models/encodings/one_hot.h"

#include "ATen/ops/cat.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/one_hot.h"
#include "models/encodings/encoding.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

class OneHot : public Encoding {
 public:
  OneHot(int64_t size, bool last_apart) : size_(size), last_apart_(last_apart) {}

  at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const override {
    at::Tensor places = positions;
    if (last_apart_) {
      const int64_t others = positions.size(1) - 1;
      const at::Tensor last = positions.narrow(1, others, 1);
      places = at::cat({positions.narrow(1, 0, others), at::full_like(last, size_ - 1)}, 1);
    }
    return at::one_hot(places, size_).to(parameters[0].scalar_type());
  }
  int64_t vector_size() const override { return size_; }

 private:
  int64_t size_;
  bool last_apart_;
};

}  // namespace

std::unique_ptr<Encoding> CreateOneHot(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  const PositionPolicy policy(parameters);
  return std::make_unique<OneHot>(
      policy.randomized() ? policy.max_position() : shape.longest_sequence,
      parameters.Bool("last_apart") && !policy.randomized());
}

}  // namespace lengthwise::models
