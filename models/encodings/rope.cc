// Rotary encoding (RoFormer: Su et al. 2021, section 3.2.2): rotates each pair of features
// (2i, 2i + 1) of a head's queries and keys by the angle p f_i, f_i = 10000^(-2i/dh), so that their
// product depends only on the difference of positions.
#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

class Rope : public Encoding {
 public:
  explicit Rope(int64_t head_size) : head_size_(head_size) {}

  at::Tensor Rotation(const ParameterSet& parameters, int64_t block,
                      const at::Tensor& positions) const override {
    return Sinusoids(positions, head_size_, parameters[0].scalar_type());
  }

  bool SameInEveryBlock() const override { return true; }

 private:
  int64_t head_size_;
};

}  // namespace

std::unique_ptr<Encoding> CreateRope(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  // A head's queries and keys rotate by the same angle, which changes no logit.
  if (parameters.String("turned_by") == "heads") return std::make_unique<Encoding>();
  return std::make_unique<Rope>(shape.HeadSize());
}

}  // namespace lengthwise::models
