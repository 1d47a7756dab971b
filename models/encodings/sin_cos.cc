#include "models/encodings/sin_cos.h"

#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

class SinCos : public Encoding {
 public:
  explicit SinCos(int64_t d_model) : d_model_(d_model) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters,
                           const at::Tensor& positions) const override {
    const at::Tensor& any = parameters[0];
    return Sinusoids(positions, d_model_, any.scalar_type()).unsqueeze(1);
  }

 private:
  int64_t d_model_;
};

}  // namespace

std::unique_ptr<Encoding> CreateSinCos(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos>(shape.d_model);
}

}  // namespace lengthwise::models
