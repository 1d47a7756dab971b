// Tasks that repeat or rearrange the tokens of a string.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

class StringTask : public UniformInputTask {
 public:
  explicit StringTask(int32_t vocabulary) : UniformInputTask(vocabulary) {}

  int32_t output_size() const final { return input_size(); }
  int64_t OutputLength(int64_t n) const override { return n; }
};

class CopyStringTask final : public StringTask {
 public:
  using StringTask::StringTask;

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    std::copy(input.begin(), input.end(), target.begin());
  }
};

class ReverseStringTask final : public StringTask {
 public:
  using StringTask::StringTask;

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    std::reverse_copy(input.begin(), input.end(), target.begin());
  }
};

class DuplicateStringTask final : public StringTask {
 public:
  using StringTask::StringTask;

  int64_t OutputLength(int64_t n) const override { return 2 * n; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    const auto middle = std::copy(input.begin(), input.end(), target.begin());
    std::copy(input.begin(), input.end(), middle);
  }
};

class OddsFirstTask final : public StringTask {
 public:
  using StringTask::StringTask;

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    auto place = target.begin();
    for (size_t i = 1; i < input.size(); i += 2) *place++ = input[i];
    for (size_t i = 0; i < input.size(); i += 2) *place++ = input[i];
  }
};

class BucketSortTask final : public StringTask {
 public:
  using StringTask::StringTask;

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    absl::InlinedVector<size_t, 16> buckets(static_cast<size_t>(input_size()));
    for (const int32_t token : input) ++buckets[static_cast<size_t>(token)];
    auto place = target.begin();
    for (size_t token = 0; token < buckets.size(); ++token) {
      place = std::fill_n(place, buckets[token], static_cast<int32_t>(token));
    }
  }
};

catalogue::ParameterEntry VocabularyParameter(int64_t default_value) {
  return {.name = "vocabulary",
          .default_value = default_value,
          .documentation = "Number of distinct tokens.",
          .minimum = 2,
          .maximum = 1000};
}

template <typename T>
std::unique_ptr<Task> Create(const catalogue::Parameters& parameters) {
  return std::make_unique<T>(static_cast<int32_t>(parameters.Int("vocabulary")));
}

}  // namespace

TaskEntry CopyString() {
  return {{.name = "copy_string",
           .title = "Copy String",
           .documentation = "Writes the input. Zhou et al. 2023, \"What Algorithms can "
                            "Transformers Learn?\" (arXiv 2310.16028); Fan et al. 2024 "
                            "(2409.15647). Input tokens are independent and uniform.",
           .parameters = {VocabularyParameter(2)}},
          TaskKind::kTransduction,
          "",
          0.5,
          Create<CopyStringTask>};
}

TaskEntry ReverseString() {
  return {{.name = "reverse_string",
           .title = "Reverse String",
           .documentation = "Reverses the input. Ruoss et al. 2023, Table 1. Input "
                            "tokens are independent and uniform.",
           .parameters = {VocabularyParameter(2)}},
          TaskKind::kTransduction,
          "deterministic context-free",
          0.5,
          Create<ReverseStringTask>};
}

TaskEntry DuplicateString() {
  return {{.name = "duplicate_string",
           .title = "Duplicate String",
           .documentation = "Writes the input twice. Ruoss et al. 2023, Table 1. Input "
                            "tokens are independent and uniform.",
           .parameters = {VocabularyParameter(2)}},
          TaskKind::kTransduction,
          "context-sensitive",
          0.5,
          Create<DuplicateStringTask>};
}

TaskEntry OddsFirst() {
  return {
      {.name = "odds_first",
       .title = "Odds First",
       .documentation = "Writes the tokens at odd positions, then those at even positions, counted "
                        "from 0. Ruoss et al. 2023, Table 1 (follows the reference code; its "
                        "description counts from 1). Input tokens are independent and uniform.",
       .parameters = {VocabularyParameter(2)}},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      Create<OddsFirstTask>};
}

TaskEntry BucketSort() {
  return {{.name = "bucket_sort",
           .title = "Bucket Sort",
           .documentation = "Sorts the input's tokens in ascending order. Ruoss et al. "
                            "2023, Table 1. Input tokens are independent and uniform.",
           .parameters = {VocabularyParameter(5)}},
          TaskKind::kTransduction,
          "context-sensitive",
          0.2,
          Create<BucketSortTask>,
          /*permutation_invariant=*/true};
}

}  // namespace lengthwise::tasks::chomsky
