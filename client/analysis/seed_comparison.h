// Whether one encoding does better than another, seed by seed (relational reasoning on Latin
// squares, section 3: a paired t-test between encodings that were trained with the same fifteen
// seeds).
#ifndef LENGTHWISE_CLIENT_ANALYSIS_SEED_COMPARISON_H_
#define LENGTHWISE_CLIENT_ANALYSIS_SEED_COMPARISON_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/analysis/trial_sets.h"
#include "statistics/paired_t_test.h"

namespace lengthwise::client {

struct SeedComparison {
  const TrialSet* set = nullptr;
  // Accuracies of the seeds that both have, in the same order.
  std::vector<double> own;
  std::vector<double> reference;
  // Absent for fewer than two pairs, or where all differences are the same.
  std::optional<statistics::PairedTTestResult> test;  // positive where the reference is better
};

// A row for each set but the reference's own that has a reference of its task, network, training
// and learning rate. INVALID_ARGUMENT for an unknown reference; FAILED_PRECONDITION where no set
// shares a seed with it.
absl::StatusOr<std::vector<SeedComparison>> CompareSeeds(
    const std::vector<TrialSet>& sets, absl::string_view reference,
    const std::map<std::string, double>& accuracies);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_SEED_COMPARISON_H_
