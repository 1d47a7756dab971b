#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "tasks/all_tasks.h"
#include "tasks/numeric/value_range.h"
#include "tasks/regression.h"

namespace lengthwise::tasks::numeric {
namespace {

// Fills `y` with the task's answer for `x`, which has the same size.
using Function = void (*)(absl::Span<const double> x, absl::Span<double> y);

struct AlgorithmicSettings {
  double bound = 2;
  bool scratchpad = true;
  bool integers_have_bounds = false;
  double rounding_unit = 1;
};

class AlgorithmicTask final : public RegressionTask {
 public:
  AlgorithmicTask(Function function, const AlgorithmicSettings& settings)
      : function_(function), settings_(settings) {}

  absl::Status Check(const Domain& domain) const override {
    if (domain.n < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("vectors have 1 element or more, not ", domain.n));
    }
    RETURN_IF_ERROR(CheckScale(domain.scale));
    if (domain.integers && settings_.bound * domain.scale < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("no whole number lies below ", settings_.bound * domain.scale));
    }
    return absl::OkStatus();
  }

  int64_t Rows(int64_t n) const override { return n + (settings_.scratchpad ? 1 : 0); }

  void Mask(int64_t n, absl::Span<uint8_t> mask) const override {
    std::fill(mask.begin(), mask.end(), uint8_t{0});
    std::fill_n(mask.begin(), n, uint8_t{1});
  }

  void Sample(const Domain& domain, random::Stream& stream,
              RegressionSample sample) const override {
    const auto n = static_cast<size_t>(domain.n);
    std::fill(sample.inputs.begin(), sample.inputs.end(), 0.0);
    if (domain.integers && !settings_.integers_have_bounds) {
      // The reference's half-open range: {-2c, ..., 2c - 1}.
      const auto limit = static_cast<int64_t>(std::floor(settings_.bound * domain.scale));
      for (double& x : sample.inputs.first(n)) {
        x = static_cast<double>(stream.Between(-limit, limit - 1));
      }
    } else {
      const ValueRange range = DrawRange({-settings_.bound, settings_.bound}, domain.scale, stream);
      for (double& x : sample.inputs.first(n)) {
        x = range.At(stream.NextDouble());
        // Adding 0 turns -0 into 0.
        if (domain.integers) x = std::nearbyint(x) + 0.0;
      }
    }
    Solve(sample);
  }

  void Solve(RegressionSample sample) const override {
    const size_t n = sample.inputs.size() - (settings_.scratchpad ? 1 : 0);
    std::fill(sample.targets.begin(), sample.targets.end(), 0.0);
    function_(sample.inputs.first(n), sample.targets.first(n));
  }

  std::optional<double> InDomainProbabilityBound(const Domain& domain) const override {
    if (domain.integers) return std::nullopt;
    return numeric::InDomainProbabilityBound(domain.n, domain.scale);
  }

  double rounding_unit() const override { return settings_.rounding_unit; }

 private:
  const Function function_;
  const AlgorithmicSettings settings_;
};

void Sum(absl::Span<const double> x, absl::Span<double> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) y[i] = sum += x[i];
}

void Min(absl::Span<const double> x, absl::Span<double> y) {
  double smallest = x[0];
  for (size_t i = 0; i < x.size(); ++i) y[i] = smallest = std::min(smallest, x[i]);
}

void Median(absl::Span<const double> x, absl::Span<double> y) {
  std::vector<double> sorted;
  for (size_t i = 0; i < x.size(); ++i) {
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), x[i]), x[i]);
    y[i] = (sorted[i / 2] + sorted[(i + 1) / 2]) / 2;
  }
}

// Kadane's algorithm. Subarrays are not empty.
void MaxSumSubarray(absl::Span<const double> x, absl::Span<double> y) {
  double best = x[0];
  double ending_here = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    ending_here = i == 0 ? x[0] : std::max(x[i], ending_here + x[i]);
    y[i] = best = std::max(best, ending_here);
  }
}

void Sort(absl::Span<const double> x, absl::Span<double> y) {
  std::copy(x.begin(), x.end(), y.begin());
  std::sort(y.begin(), y.end());
}

template <Function function>
std::unique_ptr<Task> Create(const catalogue::Parameters& parameters) {
  return std::make_unique<AlgorithmicTask>(
      function,
      AlgorithmicSettings{.bound = parameters.Double("bound"),
                          .scratchpad = parameters.Bool("scratchpad"),
                          .integers_have_bounds = parameters.String("integer_inputs") == "bounded",
                          .rounding_unit = function == Median ? 0.5 : 1.0});
}

template <Function function>
TaskEntry Entry(std::string name, std::string title, const std::string& what,
                bool permutation_invariant = false) {
  return {
      {.name = std::move(name),
       .title = std::move(title),
       .documentation = absl::StrCat(
           what,
           " \"Positional Attention: Out-of-Distribution Generalization and Expressivity for "
           "Neural Algorithmic Reasoning\", section 6. Each sample draws bounds within [-2, 2] in "
           "training and [-2c, 2c] at scale c, and uniform real numbers between them."),
       .parameters =
           {{.name = "bound",
             .default_value = 2.0,
             .documentation = "Training values lie between -bound and bound.",
             .minimum = 0.001,
             .maximum = 1e6},
            {.name = "scratchpad",
             .default_value = true,
             .documentation = "Appends a row of input 0, which the network may write to. It does "
                              "not count in the loss."},
            {.name = "integer_inputs",
             .default_value = std::string("uniform"),
             .documentation =
                 "Distribution of whole numbers, for the accuracy by rounding. \"uniform\": from "
                 "{-2c, ..., 2c - 1}, as in the authors' program. \"bounded\": drawn like real "
                 "numbers, with bounds and rejection, then rounded.",
             .allowed = {"uniform", "bounded"}}}},
      TaskKind::kRegression,
      "",
      0.0,
      Create<function>,
      permutation_invariant,
      /*axis=*/"scale",
      /*axis_title=*/"scale of the numbers",
      /*accuracy_title=*/"accuracy by closeness",
      /*seen_up_to=*/1,
      /*compared_by_loss=*/true,
      /*loss_title=*/"mean squared error"};
}

}  // namespace

TaskEntry CumulativeSum() {
  return Entry<Sum>("cumulative_sum", "Cumulative Sum", "Sums of the first 1, 2, ..., n numbers.");
}

TaskEntry CumulativeMin() {
  return Entry<Min>("cumulative_min", "Cumulative Min",
                    "Minima of the first 1, 2, ..., n numbers.");
}

TaskEntry CumulativeMedian() {
  return Entry<Median>("cumulative_median", "Cumulative Median",
                       "Medians of the first 1, 2, ..., n numbers. An even count takes the mean of "
                       "the two middle numbers.");
}

TaskEntry CumulativeMaxSumSubarray() {
  return Entry<MaxSumSubarray>(
      "cumulative_max_sum_subarray", "Cumulative Max Sum Subarray",
      "Largest sums of a contiguous, non-empty subarray of the first 1, 2, ..., n numbers.");
}

TaskEntry Sorting() {
  return Entry<Sort>("sorting", "Sorting", "Sorts n numbers in ascending order.",
                     /*permutation_invariant=*/true);
}

}  // namespace lengthwise::tasks::numeric
