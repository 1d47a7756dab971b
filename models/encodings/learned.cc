#include "models/encodings/learned.h"

#include "models/encodings/encoding.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

class Learned : public Encoding {
 public:
  explicit Learned(ParameterId table) : table_(table) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters,
                           const at::Tensor& positions) const override {
    return Embed(positions.unsqueeze(1), parameters[table_]);
  }

 private:
  ParameterId table_;
};

}  // namespace

std::unique_ptr<Encoding> CreateLearned(const catalogue::Parameters& parameters,
                                        const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<Learned>(
      layout.Add("encoding.table", {parameters.Int("max_position"), shape.d_model},
                 {.kind = Initializer::Kind::kTruncatedNormal, .stddev = 1}));
}

}  // namespace lengthwise::models
