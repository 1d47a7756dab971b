#include "models/encodings/encoding.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/encodings/causal.h"
#include "models/encodings/sinusoids.h"
#include "platform/status_macros.h"

namespace lengthwise::models {
namespace {

// An encoding that adds to the embeddings, and one beside it with counted positions.
class Pair : public EncodingDecorator {
 public:
  Pair(std::unique_ptr<Encoding> added, std::unique_ptr<Encoding> beside)
      : EncodingDecorator(*beside), added_(std::move(added)), beside_(std::move(beside)) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    return added_->EmbeddingTerm(parameters, block, positions);
  }
  at::Tensor PositionsOfTerms(const at::Tensor& positions) const override {
    const int64_t n = positions.size(-1);
    return at::arange(n, positions.options()).expand({positions.size(0), n});
  }
  AttentionTerms TermsWithoutR(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions) const override {
    return beside_->TermsWithoutR(parameters, block, positions);
  }

 private:
  const std::unique_ptr<Encoding> added_;
  const std::unique_ptr<Encoding> beside_;
};

}  // namespace

void Encoding::Rotate(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                      at::Tensor& queries, at::Tensor& keys) const {
  const at::Tensor rotation = Rotation(parameters, block, positions);
  if (!rotation.defined()) return;
  queries = TurnPairs(queries, rotation);
  keys = TurnPairs(keys, rotation);
}

at::Tensor Encoding::LogitTerm(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions, const at::Tensor& /*queries*/,
                               const at::Tensor& /*keys*/) const {
  const at::Tensor bias = Bias(parameters, block, positions, 0, positions.size(1));
  return bias.defined() ? bias.unsqueeze(1) : bias;
}

absl::StatusOr<std::unique_ptr<Encoding>> CreateEncoding(absl::string_view name,
                                                         const catalogue::Parameters& parameters,
                                                         const EncodingShape& shape,
                                                         ParameterLayout& layout) {
  using Create = std::unique_ptr<Encoding> (*)(const catalogue::Parameters&, const EncodingShape&,
                                               ParameterLayout&);
  // Same order as EncodingEntries: both expand one list.
#define LENGTHWISE_CREATE(Name) Create##Name,
  static constexpr Create kCreate[] = {LENGTHWISE_ENCODINGS(LENGTHWISE_CREATE)};
#undef LENGTHWISE_CREATE
  for (size_t i = 0; i < EncodingEntries().size(); ++i) {
    if (EncodingEntries()[i]->name != name) continue;
    std::unique_ptr<Encoding> encoding = kCreate[i](parameters, shape, layout);
    std::vector<catalogue::Problem> problems;
    const std::optional<Beside> beside = BesideOf(parameters, "encoding", problems);
    if (!beside.has_value()) return encoding;
    ASSIGN_OR_RETURN(auto other,
                     CreateEncoding(beside->entry->name, beside->parameters, shape, layout));
    return std::make_unique<Pair>(std::move(encoding), std::move(other));
  }
  return absl::NotFoundError(absl::StrCat("unknown encoding \"", name, "\""));
}

// Without an encoding, the encoder is invariant to the order of its input (randomized positional
// encodings, section 4, "None").
std::unique_ptr<Encoding> CreateNone(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  // All hooks of the base class add nothing.
  auto none = std::make_unique<Encoding>();
  if (!parameters.Bool("causal")) return none;
  return MakeCausal(std::move(none));
}

}  // namespace lengthwise::models
