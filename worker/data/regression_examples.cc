#include "worker/data/regression_examples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"

namespace lengthwise::worker::data {
namespace {

constexpr double kTrainingScale = 1;

}  // namespace

RegressionExamples::Share RegressionExamples::ShareOf(int64_t asked, int64_t sequence) const {
  const int64_t lengths = lengths_.max() - lengths_.min() + 1;
  Share share{.n = lengths_.max(), .place = sequence};
  for (int64_t i = 0; i < lengths; ++i, --share.n) {
    share.size = asked / lengths + (i < asked % lengths ? 1 : 0);
    if (share.place < share.size) break;
    share.place -= share.size;
  }
  return share;
}

void RegressionExamples::Append(const tasks::Domain& domain, const SampleAddresses& addresses,
                                Batch& batch) const {
  const auto tokens = static_cast<size_t>(task_->Rows(domain.n));
  const size_t count = addresses.rows.size();
  const size_t old = batch.numbers.size();
  batch.numbers.resize(old + count * tokens);
  batch.number_targets.resize(old + count * tokens);
  batch.mask.resize(old + count * tokens);
  std::vector<int32_t> words(task_->vocabulary() > 0 ? tokens : 0);
  for (size_t row = 0; row < count; ++row) {
    const size_t first = old + row * tokens;
    task_->Mask(domain.n, absl::MakeSpan(batch.mask).subspan(first, tokens));
    tasks::SampleBatch(*task_, addresses.seed, addresses.purpose, addresses.step, domain,
                       addresses.rows[row], 1,
                       {.inputs = absl::MakeSpan(batch.numbers).subspan(first, tokens),
                        .tokens = absl::MakeSpan(words),
                        .targets = absl::MakeSpan(batch.number_targets).subspan(first, tokens)});
    batch.tokens.insert(batch.tokens.end(), words.begin(), words.end());
  }
  batch.rows += static_cast<int64_t>(count);
  batch.tokens_per_row = static_cast<int64_t>(tokens);
  batch.outputs_per_row = static_cast<int64_t>(tokens);
}

void RegressionExamples::AppendTraining(const SampleAddresses& addresses, int64_t n,
                                        Batch& batch) const {
  Append({.n = n, .scale = kTrainingScale}, addresses, batch);
}

int64_t RegressionExamples::RowsOfOneShape(int64_t scale, int64_t asked, int64_t first) const {
  const Share share = ShareOf(asked, first);
  return share.size - share.place;
}

void RegressionExamples::AppendEvaluation(const EvaluationRows& rows, Batch& batch) const {
  const int64_t lengths = lengths_.max() - lengths_.min() + 1;
  const Share share = rows.in_order ? Share{.n = lengths_.max() - rows.first % lengths,
                                            .place = rows.first / lengths}
                                    : ShareOf(rows.asked, rows.first);
  // Each length and scale has its own samples.
  constexpr uint64_t kMostScales = 1'000'000;
  Append({.n = share.n,
          .scale = static_cast<double>(rows.n),
          .unseen = !rows.validation || static_cast<double>(rows.n) > kTrainingScale,
          .integers = rows.whole_numbers},
         {.seed = rows.seed,
          .purpose = random::Purpose::kEvaluationSamples,
          .step = static_cast<uint64_t>(share.n) * kMostScales + static_cast<uint64_t>(rows.n),
          .rows = RowsFrom(share.place, rows.count)},
         batch);
}

bool RegressionExamples::HasWholeNumbers(int64_t scale) const {
  const tasks::Domain domain = {
      .n = lengths_.max(), .scale = static_cast<double>(scale), .integers = true};
  return task_->Check(domain).ok();
}

absl::StatusOr<GivenSequence> RegressionExamples::Given(const v1::TokenSequence& input) const {
  if (task_->vocabulary() > 0) {
    return absl::InvalidArgumentError("the task's inputs are words and numbers");
  }
  if (!input.tokens().empty() && !input.numbers().empty()) {
    return absl::InvalidArgumentError("it has tokens beside its numbers");
  }
  ASSIGN_OR_RETURN(std::vector<double> numbers, GivenNumbers(input));
  const int64_t rows = task_->Rows(lengths_.max());
  if (static_cast<int64_t>(numbers.size()) != rows) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", numbers.size(),
                                                   " numbers; the task's inputs have ", rows,
                                                   ", a scratchpad's 0 among them"));
  }
  GivenSequence given{.length = 1, .numbers = std::move(numbers)};
  given.mask.resize(static_cast<size_t>(rows));
  task_->Mask(lengths_.max(), absl::MakeSpan(given.mask));
  return given;
}

}  // namespace lengthwise::worker::data
