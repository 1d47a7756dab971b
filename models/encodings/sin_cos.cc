// Fixed sinusoids of a token's position in a string, or of its column and row in a grid.
#include <algorithm>

#include "ATen/ops/cat.h"
#include "models/encodings/encoding.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

// Sinusoids of positions, added to the embeddings (Vaswani et al. 2017, section 3.5).
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

// Sinusoids of column and row, for the cells of a grid (relational reasoning on Latin squares,
// appendix 5.1, "2d-fixed"). The first half of the features is the column's, the second the row's,
// with frequencies 10000^(-2i/(d/2)). Sine and cosine are interleaved, as in the released code that
// produced the paper's results.
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

std::unique_ptr<Encoding> CreateSinCos(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos>(parameters.Bool("interleaved"), shape);
}

std::unique_ptr<Encoding> CreateSinCos2d(const catalogue::Parameters& parameters,
                                         const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<SinCos2d>(parameters.Int("columns"), shape.d_model);
}

}  // namespace lengthwise::models
