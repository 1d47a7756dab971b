#include "statistics/paired_t_test.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "statistics/student_t.h"
#include "statistics/summary.h"

namespace lengthwise::statistics {

absl::StatusOr<PairedTTestResult> PairedTTest(absl::Span<const double> first,
                                              absl::Span<const double> second) {
  if (first.size() != second.size() || first.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a paired t test needs two pairs or more; there are ", first.size(), " and ",
                     second.size(), " values"));
  }
  std::vector<double> differences(first.size());
  for (size_t i = 0; i < first.size(); ++i) differences[i] = first[i] - second[i];
  const double deviation = SampleStandardDeviation(differences);
  if (deviation == 0) {
    return absl::FailedPreconditionError(absl::StrCat("all ", first.size(), " pairs differ by ",
                                                      differences[0],
                                                      ": there is no t without variation"));
  }
  const auto count = static_cast<double>(first.size());
  PairedTTestResult result{.t = Mean(differences) / (deviation / std::sqrt(count)),
                           .degrees_of_freedom = count - 1};
  result.p_value = TwoSidedPValue(result.t, result.degrees_of_freedom);
  return result;
}

}  // namespace lengthwise::statistics
