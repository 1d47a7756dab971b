#include "statistics/similarity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::statistics {
namespace {

absl::Status SameLength(absl::Span<const double> first, absl::Span<const double> second) {
  if (first.size() == second.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("vectors of ", first.size(), " and ",
                                                 second.size(), " numbers cannot be compared"));
}

}  // namespace

absl::StatusOr<double> CosineSimilarity(absl::Span<const double> first,
                                        absl::Span<const double> second) {
  if (const absl::Status status = SameLength(first, second); !status.ok()) return status;
  const double first_square = std::inner_product(first.begin(), first.end(), first.begin(), 0.0);
  const double second_square =
      std::inner_product(second.begin(), second.end(), second.begin(), 0.0);
  if (first_square == 0 || second_square == 0) {
    return absl::FailedPreconditionError("a vector of zeros has no direction");
  }
  const double product = std::inner_product(first.begin(), first.end(), second.begin(), 0.0);
  return std::clamp(product / std::sqrt(first_square) / std::sqrt(second_square), -1.0, 1.0);
}

absl::StatusOr<double> JensenShannonDivergence(absl::Span<const double> first,
                                               absl::Span<const double> second) {
  if (const absl::Status status = SameLength(first, second); !status.ok()) return status;
  for (const absl::Span<const double> weights : {first, second}) {
    const bool all_count = std::all_of(weights.begin(), weights.end(), [](double weight) {
      return weight >= 0 && std::isfinite(weight);
    });
    if (!all_count || std::accumulate(weights.begin(), weights.end(), 0.0) <= 0) {
      return absl::InvalidArgumentError(
          "the weights of a distribution are finite, not negative, and not all zero");
    }
  }
  const double first_sum = std::accumulate(first.begin(), first.end(), 0.0);
  const double second_sum = std::accumulate(second.begin(), second.end(), 0.0);
  double divergence = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double p = first[i] / first_sum;
    const double q = second[i] / second_sum;
    const double mean = (p + q) / 2;
    if (p > 0) divergence += p * std::log(p / mean) / 2;
    if (q > 0) divergence += q * std::log(q / mean) / 2;
  }
  return std::max(divergence, 0.0);
}

}  // namespace lengthwise::statistics
