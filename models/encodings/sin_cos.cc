#include "models/encodings/sin_cos.h"

#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

class SinCos : public Encoding {
 public:
  SinCos(bool interleaved, int64_t d_model) : interleaved_(interleaved), d_model_(d_model) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    const at::ScalarType type = parameters[0].scalar_type();
    return (interleaved_ ? InterleavedSinusoids(positions, d_model_, type)
                         : Sinusoids(positions, d_model_, type))
        .unsqueeze(1);
  }

 private:
  bool interleaved_;
  int64_t d_model_;
};

}  // namespace

std::unique_ptr<Encoding> CreateSinCos(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos>(parameters.Bool("interleaved"), shape.d_model);
}

}  // namespace lengthwise::models
