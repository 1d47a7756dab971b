#include "models/encodings/sin_cos.h"

#include <algorithm>

#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

class SinCos : public Encoding {
 public:
  SinCos(bool interleaved, const EncodingShape& shape)
      : interleaved_(interleaved),
        d_model_(shape.d_model),
        vector_size_(std::max<int64_t>(2, shape.longest_sequence / 4 * 2)) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    return Features(parameters, positions, d_model_).unsqueeze(1);
  }

  at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const override {
    return Features(parameters, positions, vector_size_);
  }
  int64_t vector_size() const override { return vector_size_; }

 private:
  at::Tensor Features(const ParameterSet& parameters, const at::Tensor& positions,
                      int64_t size) const {
    const at::ScalarType type = parameters[0].scalar_type();
    return interleaved_ ? InterleavedSinusoids(positions, size, type)
                        : Sinusoids(positions, size, type);
  }

  bool interleaved_;
  int64_t d_model_;
  int64_t vector_size_;
};

}  // namespace

std::unique_ptr<Encoding> CreateSinCos(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos>(parameters.Bool("interleaved"), shape);
}

}  // namespace lengthwise::models
