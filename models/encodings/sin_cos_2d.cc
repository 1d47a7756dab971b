#include "models/encodings/sin_cos_2d.h"

#include "ATen/ops/cat.h"
#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

class SinCos2d : public Encoding {
 public:
  SinCos2d(int64_t columns, int64_t d_model) : columns_(columns), d_model_(d_model) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    const at::ScalarType type = parameters[0].scalar_type();
    const at::Tensor column =
        InterleavedSinusoids(positions.remainder(columns_), d_model_ / 2, type);
    const at::Tensor row =
        InterleavedSinusoids(positions.floor_divide(columns_), d_model_ / 2, type);
    return at::cat({column, row}, -1).unsqueeze(1);
  }

 private:
  int64_t columns_;
  int64_t d_model_;
};

}  // namespace

std::unique_ptr<Encoding> CreateSinCos2d(const catalogue::Parameters& parameters,
                                         const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos2d>(parameters.Int("columns"), shape.d_model);
}

}  // namespace lengthwise::models
