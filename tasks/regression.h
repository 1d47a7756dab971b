// Regression: rows of real numbers in, a number for each row out, and a scale of the numbers in the
// place of length. No LibTorch, no gRPC.
#ifndef LENGTHWISE_TASKS_REGRESSION_H_
#define LENGTHWISE_TASKS_REGRESSION_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// Where samples are drawn from.
struct Domain {
  // Number of elements; a sample has RegressionTask::Rows(n) rows.
  int64_t n = 8;
  // c >= 1: values go up to c times what they are in training. Above 1, what training could have
  // drawn bounds for is drawn again.
  double scale = 1;
  // Of what is not there in training at all: the categories of relational_query. False for training
  // and, at its scale, validation.
  bool unseen = false;
  // Whole numbers, for accuracies by rounding.
  bool integers = false;
};

// One sample. Row r is the number inputs[r], or the token tokens[r] with inputs[r] 0.
struct RegressionSample {
  absl::Span<double> inputs;
  // kNumberRow for a row that is a number; empty where vocabulary() is 0.
  absl::Span<int32_t> tokens;
  absl::Span<double> targets;
};

inline constexpr int32_t kNumberRow = -1;

// Immutable after construction; all methods may be called from any thread.
class RegressionTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kRegression; }

  // INVALID_ARGUMENT, with the limits, for a domain that the task has no samples of. All other
  // methods need one that is OK.
  virtual absl::Status Check(const Domain& domain) const = 0;

  virtual int64_t Rows(int64_t n) const = 0;

  // Tokens are {0, ..., vocabulary() - 1}; 0 where all rows are numbers.
  virtual int32_t vocabulary() const { return 0; }

  // Marks with 1 the rows of Rows(n) whose output is compared with the target, in the loss and in
  // every metric, with 0 the others.
  virtual void Mask(int64_t n, absl::Span<uint8_t> mask) const = 0;

  // Draws one sample; `sample` has Rows(domain.n) rows.
  virtual void Sample(const Domain& domain, random::Stream& stream,
                      RegressionSample sample) const = 0;

  // Computes the targets of inputs that Sample could have made: what the task is.
  virtual void Solve(RegressionSample sample) const = 0;

  // An upper bound for the probability that a sample of `domain` is one that training could have
  // drawn, where its paper gives one.
  virtual std::optional<double> InDomainProbabilityBound(const Domain& /*domain*/) const {
    return std::nullopt;
  }

  // An output is right by rounding when the nearest multiple of this is the target.
  virtual double rounding_unit() const { return 1; }
};

// Caller-owned buffers of a batch, row-major [batch, Rows(n)].
struct RegressionBatch {
  absl::Span<double> inputs;
  absl::Span<int32_t> tokens;  // empty where vocabulary() is 0
  absl::Span<double> targets;
};

// Fills samples first .. first + count - 1 of (seed, purpose, step); sample i is a function of
// (seed, purpose, step, i) alone, so a set that is drawn once is never stored, and a batch may be
// made in parts or in any order. Buffers hold exactly `count` samples.
void SampleBatch(const RegressionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                 const Domain& domain, uint32_t first, uint32_t count, RegressionBatch batch);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_REGRESSION_H_
