#include "worker/data/file_examples.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "platform/mutex.h"
#include "platform/status_macros.h"
#include "random/permutation.h"
#include "tasks/examples/contents.h"

namespace lengthwise::worker::data {
namespace {

using tasks::examples::Example;
using tasks::examples::ExampleSet;
using tasks::examples::Find;
using tasks::examples::Form;
using tasks::examples::LengthGroup;
using tasks::examples::Part;

// Identity of a set: trials with equal keys share the loaded set.
std::string SetKey(const catalogue::Parameters& parameters, tasks::TaskKind kind) {
  std::string key = absl::StrCat(static_cast<int>(kind));
  for (const auto& [name, value] : parameters.values()) {
    absl::StrAppend(&key, "\n", name, "=", catalogue::FormatValue(value));
  }
  return key;
}

struct Newest {
  platform::Mutex mutex;
  std::string key ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const ExampleSet> set ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleSet>> LoadExamples(
    const catalogue::Parameters& parameters, tasks::TaskKind kind, const FetchFile& fetch) {
  static auto& newest = *new Newest;
  const std::string key = SetKey(parameters, kind);
  {
    const platform::MutexLock lock(newest.mutex);
    if (newest.key == key) return newest.set;
  }
  // Without the lock, because a download may take minutes.
  ASSIGN_OR_RETURN(const tasks::examples::Contents contents,
                   tasks::examples::ParseContents(parameters.String("contents")));
  const auto bring = [&](const char* name, int64_t bytes,
                         tasks::examples::File& file) -> absl::Status {
    file.name = parameters.String(name);
    if (file.name.empty()) return absl::OkStatus();
    file.sha256 = parameters.String(absl::StrCat(name, "_sha256"));
    ASSIGN_OR_RETURN(file.path, fetch(file.sha256, bytes));
    return absl::OkStatus();
  };
  tasks::examples::File train, test;
  RETURN_IF_ERROR(bring("train", contents.train_bytes, train));
  RETURN_IF_ERROR(bring("test", contents.test_bytes, test));
  tasks::examples::Options options = tasks::examples::OptionsOf(parameters);
  options.as_numbers = kind == tasks::TaskKind::kRegression && contents.form == Form::kNumbers;
  options.reading = contents.reading;
  options.continues_text = kind == tasks::TaskKind::kText;
  tasks::examples::Problems problems;
  ASSIGN_OR_RETURN(const tasks::examples::Loaded loaded,
                   tasks::examples::Load(train, test, options, problems));
  if (!tasks::examples::Agrees(contents, tasks::examples::ContentsOf(loaded))) {
    return absl::InvalidArgumentError(absl::StrCat(
        train.name, " differs from the specification's `contents`: submit the experiment again"));
  }
  const platform::MutexLock lock(newest.mutex);
  newest.key = key;
  newest.set = loaded.set;
  return loaded.set;
}

FileExamples::FileExamples(std::shared_ptr<const ExampleSet> set, const v1::Training& training)
    : set_(std::move(set)) {
  if (set_->one_size) return;
  Pool sizes;
  for (auto group = set_->training.lower_bound(training.lengths().min());
       group != set_->training.end() && group->first <= training.lengths().max(); ++group) {
    const absl::Span<const Example> examples = group->second.examples;
    const std::vector<uint32_t>& shapes = group->second.shapes;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const size_t end = i + 1 < shapes.size() ? shapes[i + 1] : examples.size();
      const auto run = examples.subspan(shapes[i], end - shapes[i]);
      SizeGroup& size = sizes[{run[0].inputs, run[0].targets}];
      size.runs.push_back(run);
      size.examples += static_cast<int64_t>(run.size());
    }
  }
  Pool pool;
  int64_t examples = 0;
  for (auto& [size, group] : sizes) {
    examples += group.examples;
    pool.emplace(size, std::move(group));
    if (examples < training.batch_size()) continue;
    pools_.emplace(size, std::move(pool));
    pool.clear();
    examples = 0;
  }
  if (pool.empty()) return;
  // Too few for a batch: they join the pool before them.
  if (!pools_.empty()) pool.merge(pools_.extract(std::prev(pools_.end())).mapped());
  const auto largest = pool.rbegin()->first;
  pools_.emplace(largest, std::move(pool));
}

int64_t FileExamples::InputTokens(int64_t n) const {
  std::optional<int64_t> shortest;
  for (const Part* part : {&set_->test, &set_->training}) {
    // Examples are sorted by input length.
    if (const LengthGroup* group = Find(*part, n); group != nullptr) {
      shortest = std::min<int64_t>(shortest.value_or(group->examples[0].inputs),
                                   group->examples[0].inputs);
    }
  }
  return shortest.value_or(0);
}

int64_t FileExamples::SequenceTokens(int64_t n) const {
  int64_t longest = 0;
  for (const Part* part : {&set_->test, &set_->training}) {
    if (const LengthGroup* group = Find(*part, n); group != nullptr) {
      longest = std::max(longest, answers_in_place() ? group->longest / 2 : group->longest);
    }
  }
  return longest;
}

std::string FileExamples::Symbol(int64_t token, bool is_target) const {
  const auto& vocabulary = is_target ? set_->target_vocabulary : set_->input_vocabulary;
  return vocabulary.empty() ? Examples::Symbol(token, is_target)
                            : vocabulary[static_cast<size_t>(token)];
}

int64_t FileExamples::LongestTraining(const v1::Training& training) const {
  int64_t longest = 0;
  for (auto group = set_->training.lower_bound(training.lengths().min());
       group != set_->training.end() && group->first <= training.lengths().max(); ++group) {
    longest = std::max(longest, SequenceTokens(group->first));
  }
  return longest;
}

std::vector<int64_t> FileExamples::Weights(const v1::LengthRange& lengths) const {
  std::vector<int64_t> weights;
  for (int64_t n = lengths.min(); n <= lengths.max(); ++n) {
    const LengthGroup* group = Find(set_->training, n);
    weights.push_back(group == nullptr ? 0 : static_cast<int64_t>(group->examples.size()));
  }
  return weights;
}

void FileExamples::Append(const Example& example, Batch& batch) const {
  const auto inputs = static_cast<std::ptrdiff_t>(example.inputs);
  const auto targets = static_cast<std::ptrdiff_t>(example.targets);
  const auto first = static_cast<std::ptrdiff_t>(example.first);
  if (has_numbers()) {
    const auto values = set_->numbers.begin() + first;
    batch.numbers.insert(batch.numbers.end(), values, values + inputs);
    if (!answers_in_place()) batch.numbers.insert(batch.numbers.end(), example.targets, 0.0);
    batch.number_targets.insert(batch.number_targets.end(), values + inputs,
                                values + inputs + targets);
  } else {
    const auto values = set_->symbols.begin() + first;
    batch.tokens.insert(batch.tokens.end(), values, values + inputs);
    batch.tokens.insert(batch.tokens.end(), example.targets, set_->input_symbols);
    batch.targets.insert(batch.targets.end(), values + inputs, values + inputs + targets);
  }
  if (!set_->positions.empty()) {
    const auto ids = set_->positions.begin() + first;
    batch.ids.insert(batch.ids.end(), ids, ids + inputs + targets);
  }
  if (set_->mask.empty()) {
    batch.mask.insert(batch.mask.end(), example.targets, 1);
  } else {
    const auto mask = set_->mask.begin() + first + inputs;
    batch.mask.insert(batch.mask.end(), mask, mask + targets);
  }
  ++batch.rows;
  batch.tokens_per_row = inputs + (answers_in_place() ? 0 : targets);
  batch.outputs_per_row = targets;
}

void FileExamples::AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const {
  const std::vector<Example>& examples = Find(set_->training, n)->examples;
  for (const uint32_t row : addresses.rows) {
    random::Stream stream(addresses.seed, addresses.purpose, addresses.step, row);
    Append(examples[stream.Below(static_cast<uint32_t>(examples.size()))], batch);
  }
}

void FileExamples::AppendStep(const SampleAddresses& addresses, int64_t n,
                              std::vector<Batch>& batches) const {
  if (!MixesSizes()) return Examples::AppendStep(addresses, n, batches);
  // Any example of the step's length stands for its pool, so that a pool is as likely as its
  // examples are many.
  const std::vector<Example>& of_length = Find(set_->training, n)->examples;
  random::Stream schedule(addresses.schedule_seed, random::Purpose::kBatchOrder, addresses.step,
                          static_cast<uint32_t>(n));
  const Example& any = of_length[schedule.Below(static_cast<uint32_t>(of_length.size()))];
  const Pool& pool = pools_.lower_bound({any.inputs, any.targets})->second;
  int64_t in_pool = 0;
  for (const auto& [size, group] : pool) in_pool += group.examples;
  const auto rows = static_cast<int64_t>(addresses.rows.size());
  const std::vector<int64_t> drawn =
      random::SampleWithoutReplacement(schedule, in_pool, rows % in_pool, /*sorted=*/true);
  auto next = drawn.begin();
  int64_t end = 0;
  size_t number = 0;
  uint32_t row = 0;
  for (const auto& [size, group] : pool) {
    end += group.examples;
    const auto first = next;
    next = std::lower_bound(first, drawn.end(), end);
    // A batch larger than the pool has all its examples, as often as they fit, and some once more.
    const int64_t count = rows / in_pool * group.examples + (next - first);
    if (count == 0) continue;
    if (batches.size() <= number) batches.emplace_back();
    random::Stream stream(addresses.seed, addresses.purpose, addresses.step, row);
    const std::vector<int64_t> chosen = random::SampleWithoutReplacement(
        stream, group.examples, std::min(count, group.examples), /*sorted=*/false);
    for (int64_t i = 0; i < count; ++i) {
      auto place = static_cast<size_t>(chosen[static_cast<size_t>(i % group.examples)]);
      auto run = group.runs.begin();
      for (; place >= run->size(); ++run) place -= run->size();
      Append((*run)[place], batches[number]);
    }
    ++number;
    row += static_cast<uint32_t>(count);
  }
}

std::vector<const Example*> FileExamples::Chosen(int64_t n, int64_t asked, bool in_order) const {
  std::vector<const Example*> chosen;
  const LengthGroup* group = Find(set_->test, n);
  if (group == nullptr) return chosen;
  const auto count = static_cast<int64_t>(group->examples.size());
  const random::Permutation order(/*seed=*/0, random::Purpose::kExampleOrder,
                                  static_cast<uint64_t>(n), static_cast<uint64_t>(count));
  for (int64_t i = 0; i < std::min(asked, count); ++i) {
    chosen.push_back(&group->examples[order(static_cast<uint64_t>(i))]);
  }
  if (in_order) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(), [](const Example* a, const Example* b) {
    return std::tie(a->inputs, a->targets) < std::tie(b->inputs, b->targets);
  });
  return chosen;
}

int64_t FileExamples::RowsOfOneShape(int64_t n, int64_t asked, int64_t first) const {
  const std::vector<const Example*> chosen = Chosen(n, asked);
  const auto begin = chosen.begin() + first;
  return std::find_if(begin, chosen.end(),
                      [&](const Example* other) { return !other->SameShape(**begin); }) -
         begin;
}

void FileExamples::AppendEvaluation(const EvaluationRows& rows, Batch& batch) const {
  const std::vector<const Example*> chosen = Chosen(rows.n, rows.asked, rows.in_order);
  for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    Append(*chosen.at(static_cast<size_t>(row)), batch);
  }
}

absl::StatusOr<GivenSequence> FileExamples::Given(const v1::TokenSequence& input) const {
  GivenSequence given;
  if (has_numbers()) {
    ASSIGN_OR_RETURN(given.numbers, GivenNumbers(input));
  } else if (!input.text().empty()) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> symbols, set_->ReadInput(input.text()));
    given.tokens.assign(symbols.begin(), symbols.end());
  } else {
    ASSIGN_OR_RETURN(given.tokens, GivenTokens(input, set_->input_symbols));
  }
  const size_t size = std::max(given.tokens.size(), given.numbers.size());
  // An example with an input of the same size gives the length of the answer.
  for (const Part* part : {&set_->test, &set_->training}) {
    for (const auto& [length, group] : *part) {
      for (const uint32_t first : group.shapes) {
        const Example& example = group.examples[first];
        if (example.inputs != size) continue;
        given.length = length;
        given.mask.assign(example.targets, 1);
        if (answers_in_place()) return given;
        if (has_numbers()) given.numbers.resize(size + example.targets);
        if (!has_numbers()) given.tokens.resize(size + example.targets, set_->input_symbols);
        return given;
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", size, " values, and no example of the task's files has as many"));
}

}  // namespace lengthwise::worker::data
