// Tasks that repeat or rearrange the tokens of a string.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

void Copy(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  std::copy(input.begin(), input.end(), target.begin());
}

void Reverse(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  std::reverse_copy(input.begin(), input.end(), target.begin());
}

void Duplicate(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  const auto middle = std::copy(input.begin(), input.end(), target.begin());
  std::copy(input.begin(), input.end(), middle);
}

void PutOddsFirst(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  auto place = target.begin();
  for (size_t i = 1; i < input.size(); i += 2) *place++ = input[i];
  for (size_t i = 0; i < input.size(); i += 2) *place++ = input[i];
}

void Sort(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  Copy(input, target);
  std::sort(target.begin(), target.end());
}

catalogue::ParameterEntry VocabularyParameter(int64_t default_value) {
  return {.name = "vocabulary",
          .default_value = default_value,
          .documentation = "Number of distinct tokens.",
          .minimum = 2,
          .maximum = 1000};
}

// Targets have `times` the tokens of inputs.
template <Solver solve, int64_t times = 1>
std::unique_ptr<Task> Create(const catalogue::Parameters& parameters) {
  const auto vocabulary = static_cast<int32_t>(parameters.Int("vocabulary"));
  return FromFunctions({.input_size = vocabulary,
                        .output_size = vocabulary,
                        .output_length = [](int64_t n) { return times * n; },
                        .solve = solve});
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
          Create<Copy>};
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
          Create<Reverse>};
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
          Create<Duplicate, 2>};
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
      Create<PutOddsFirst>};
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
          Create<Sort>,
          /*permutation_invariant=*/true};
}

}  // namespace lengthwise::tasks::chomsky
