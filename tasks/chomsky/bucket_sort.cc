#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"
#include "tasks/chomsky/vocabulary.h"

namespace lengthwise::tasks::chomsky {
namespace {

class BucketSortTask final : public UniformInputTask {
 public:
  explicit BucketSortTask(int32_t vocabulary) : UniformInputTask(vocabulary) {}

  int32_t output_size() const override { return input_size(); }
  int64_t OutputLength(int64_t n) const override { return n; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    absl::InlinedVector<size_t, 16> buckets(static_cast<size_t>(input_size()));
    for (const int32_t token : input) ++buckets[static_cast<size_t>(token)];
    auto place = target.begin();
    for (size_t token = 0; token < buckets.size(); ++token) {
      place = std::fill_n(place, buckets[token], static_cast<int32_t>(token));
    }
  }
};

}  // namespace

const TaskEntry& BucketSort() {
  static const auto& entry =
      *new TaskEntry{{.name = "bucket_sort",
                      .title = "Bucket Sort",
                      .documentation = "Sorts the input's tokens in ascending order. Ruoss et al. "
                                       "2023, Table 1. Input tokens are independent and uniform.",
                      .parameters = {VocabularyParameter(5)}},
                     TaskKind::kTransduction,
                     "context-sensitive",
                     0.2,
                     /*permutation_invariant=*/true,
                     [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
                       return std::make_unique<BucketSortTask>(Vocabulary(parameters));
                     }};
  return entry;
}

}  // namespace lengthwise::tasks::chomsky
