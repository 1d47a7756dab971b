// Learned vector for each position, added to the embeddings (Gehring et al. 2017). With
// positions: subset it is the label encoding of Li and McClelland 2022.
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/encodings/encoding.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

class Learned : public Encoding {
 public:
  Learned(const catalogue::Parameters& parameters, const EncodingShape& shape,
          ParameterLayout& layout)
      : trained_(parameters.Bool("trained")) {
    const Initializer initializer = {.kind = parameters.String("distribution") == "normal"
                                                 ? Initializer::Kind::kNormal
                                                 : Initializer::Kind::kTruncatedNormal,
                                     .stddev = parameters.Double("stddev")};
    const std::vector<int64_t> size = {parameters.Int("max_position"), shape.d_model};
    for (int64_t b = 0; b < (shape.in_every_block ? shape.blocks : 1); ++b) {
      const std::string prefix = shape.in_every_block ? absl::StrCat("blocks.", b, ".") : "";
      tables_.push_back(layout.Add(prefix + "encoding.table", size, initializer, trained_));
    }
  }

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    const at::Tensor& table = parameters[tables_[static_cast<size_t>(block)]];
    return Embed(positions.to(at::kLong).unsqueeze(1), trained_ ? table : table.detach());
  }

 private:
  bool trained_;
  std::vector<ParameterId> tables_;
};

}  // namespace

std::unique_ptr<Encoding> CreateLearned(const catalogue::Parameters& parameters,
                                        const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<Learned>(parameters, shape, layout);
}

}  // namespace lengthwise::models
