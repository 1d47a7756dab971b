#include "models/encodings/additive.h"

#include <algorithm>

namespace lengthwise::models {
namespace {

// Memory bound of RowsAtOnce, in numbers.
constexpr int64_t kMaxElements = int64_t{1} << 25;

}  // namespace

at::Tensor AdditiveEncoding::LogitTerm(const ParameterSet& parameters, int64_t block,
                                       const at::Tensor& positions, const at::Tensor& queries,
                                       const at::Tensor& keys) const {
  return Bias(parameters, positions, 0, positions.size(1)).unsqueeze(1);
}

AttentionTerms AdditiveEncoding::Terms(const ParameterSet& parameters, int64_t block,
                                       const at::Tensor& positions, int64_t first,
                                       int64_t count) const {
  return {.additive = Bias(parameters, positions, first, count)};
}

int64_t AdditiveEncoding::RowsAtOnce(int64_t members, int64_t tokens) const {
  return std::clamp<int64_t>(kMaxElements / (members * tokens * NumbersPerPair()), 1, tokens);
}

at::Tensor Distances(const at::Tensor& positions, int64_t first, int64_t count) {
  return positions.unsqueeze(1).sub(positions.narrow(1, first, count).unsqueeze(2)).abs();
}

}  // namespace lengthwise::models
