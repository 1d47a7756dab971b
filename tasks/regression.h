// Regression: rows of real numbers in, a number for each row out. The scale of the numbers takes
// the place of length. Does not depend on LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_REGRESSION_H_
#define LENGTHWISE_TASKS_REGRESSION_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// The distribution that samples are drawn from.
struct Domain {
  // Number of elements. A sample has RegressionTask::Rows(n) rows.
  int64_t n = 8;
  // c >= 1: values reach up to c times their range in training. Above 1, bounds that training could
  // have drawn are redrawn.
  double scale = 1;
  // Draws features that training never shows: the unseen categories of relational_query. False for
  // training and for validation at its scale.
  bool unseen = false;
  // Draws whole numbers, for accuracies by rounding.
  bool integers = false;
};

// One sample. Row r is the number inputs[r], or the token tokens[r] with inputs[r] = 0.
struct RegressionSample {
  absl::Span<double> inputs;
  // kNumberRow for a row that is a number. Empty if vocabulary() is 0.
  absl::Span<int32_t> tokens;
  absl::Span<double> targets;
};

inline constexpr int32_t kNumberRow = -1;

// Immutable after construction. Thread-safe.
class RegressionTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kRegression; }

  // INVALID_ARGUMENT, with the limits, for a domain without samples. All other methods require a
  // domain that passes.
  virtual absl::Status Check(const Domain& domain) const = 0;

  virtual int64_t Rows(int64_t n) const = 0;

  // Tokens are {0, ..., vocabulary() - 1}. 0 if all rows are numbers.
  virtual int32_t vocabulary() const { return 0; }

  // Sets 1 for the rows of Rows(n) whose output counts in the loss and in every metric, 0 for the
  // others.
  virtual void Mask(int64_t n, absl::Span<uint8_t> mask) const = 0;

  // Draws one sample; `sample` has Rows(domain.n) rows.
  virtual void Sample(const Domain& domain, random::Stream& stream,
                      RegressionSample sample) const = 0;

  // Computes the targets of inputs that Sample could have drawn. Defines the task.
  virtual void Solve(RegressionSample sample) const = 0;

  // Upper bound for the probability that training could have drawn a sample of `domain`, if the
  // task's paper gives one.
  virtual std::optional<double> InDomainProbabilityBound(const Domain& /*domain*/) const {
    return std::nullopt;
  }

  // An output is right by rounding if its nearest multiple of this is the target.
  virtual double rounding_unit() const { return 1; }
};

// Caller-owned buffers of a batch, row-major [batch, Rows(n)].
struct RegressionBatch {
  absl::Span<double> inputs;
  absl::Span<int32_t> tokens;  // empty if vocabulary() is 0
  absl::Span<double> targets;
};

// As SampleRows of tasks/task.h: fixed data sets need no storage, and a batch can be made in parts
// and in any order.
void SampleRows(const RegressionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                const Domain& domain, absl::Span<const uint32_t> rows, RegressionBatch batch);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_REGRESSION_H_
