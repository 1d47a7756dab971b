#include "tasks/examples/file_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/status_macros.h"
#include "random/permutation.h"
#include "tasks/transduction_text.h"

namespace lengthwise::tasks::examples {
namespace {

// The value of the last key up to `key`; 0 if there is none.
int64_t UpTo(const std::map<int32_t, int64_t>& values, int64_t key) {
  const auto next = values.upper_bound(static_cast<int32_t>(key));
  return next == values.begin() ? 0 : std::prev(next)->second;
}

std::vector<int32_t> PlacesOf(const std::vector<std::string>& symbols,
                              const std::vector<std::string>& vocabulary) {
  std::vector<int32_t> places;
  for (const std::string& symbol : symbols) {
    const auto found = std::lower_bound(vocabulary.begin(), vocabulary.end(), symbol);
    places.push_back(static_cast<int32_t>(found - vocabulary.begin()));
  }
  return places;
}

}  // namespace

FileText::FileText(std::shared_ptr<const ExampleSet> set) : set_(std::move(set)) {
  std::set_union(set_->input_vocabulary.begin(), set_->input_vocabulary.end(),
                 set_->target_vocabulary.begin(), set_->target_vocabulary.end(),
                 std::back_inserter(vocabulary_));
  inputs_ = PlacesOf(set_->input_vocabulary, vocabulary_);
  targets_ = PlacesOf(set_->target_vocabulary, vocabulary_);
  symbols_ = set_->form == Form::kSymbols ? std::max(set_->input_symbols, set_->target_symbols)
                                          : static_cast<int32_t>(vocabulary_.size());
  for (const Part* part : {&set_->training, &set_->test}) {
    for (const auto& [length, group] : *part) {
      int64_t& longest = longest_[length];
      longest = std::max(longest, group.longest + 1);
    }
  }
  int64_t longest = 0, examples = 0;
  for (auto& [length, tokens] : longest_) longest = tokens = std::max(longest, tokens);
  for (const auto& [length, group] : set_->training) {
    training_[length] = examples += static_cast<int64_t>(group.examples.size());
  }
}

absl::Status FileText::Check(int64_t size) const {
  if (Questions(size, 1) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got ", size, ", but the task's file has no test examples of this length"));
}

absl::Status FileText::CheckTraining(int64_t smallest, int64_t largest) const {
  if (UpTo(training_, largest) > UpTo(training_, smallest - 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got ", smallest, "..", largest,
                   ", but the task's file has no training examples of these lengths"));
}

int64_t FileText::LongestExample(int64_t size) const { return UpTo(longest_, size); }

int64_t FileText::LongestTrainingExample(int64_t smallest, int64_t largest) const {
  int64_t longest = 0;
  for (auto group = set_->training.lower_bound(static_cast<int32_t>(smallest));
       group != set_->training.end() && group->first <= largest; ++group) {
    longest = std::max(longest, group->second.longest + 1);
  }
  return longest;
}

int64_t FileText::DrawSize(int64_t smallest, int64_t largest, random::Stream& stream) const {
  const int64_t before = UpTo(training_, smallest - 1);
  const int64_t any = before + stream.Between(0, UpTo(training_, largest) - before - 1);
  return std::find_if(training_.begin(), training_.end(),
                      [&](const auto& one) { return one.second > any; })
      ->first;
}

TextExample FileText::TextOf(const Example& example) const {
  const auto token = [](const std::vector<int32_t>& places, int32_t symbol) {
    return places.empty() ? symbol : places[static_cast<size_t>(symbol)];
  };
  TextExample text;
  for (const int32_t symbol : set_->Input(example)) text.tokens.push_back(token(inputs_, symbol));
  for (const int32_t symbol : set_->Target(example)) text.tokens.push_back(token(targets_, symbol));
  text.tokens.push_back(end_token());
  text.prompt = example.inputs;
  if (has_ids()) {
    const auto first = set_->positions.begin() + static_cast<std::ptrdiff_t>(example.first);
    text.ids.assign(first, first + example.inputs + example.targets);
  }
  return text;
}

TextExample FileText::Sample(int64_t size, bool /*augmented*/, random::Stream& stream) const {
  const std::vector<Example>& examples = Find(set_->training, size)->examples;
  return TextOf(examples[stream.Below(static_cast<uint32_t>(examples.size()))]);
}

TextExample FileText::Question(int64_t size, int64_t number, random::Stream& /*stream*/) const {
  const std::vector<Example>& examples = Find(set_->test, size)->examples;
  const random::Permutation order(/*seed=*/0, random::Purpose::kExampleOrder,
                                  static_cast<uint64_t>(size), examples.size());
  return TextOf(examples[order(static_cast<uint64_t>(number))]);
}

AnswerComparison FileText::Compare(const TextExample& example,
                                   absl::Span<const int32_t> given) const {
  return CompareSymbols(example.Answer(), given);
}

std::string FileText::Format(absl::Span<const int32_t> tokens) const {
  return absl::StrJoin(tokens, separator(), [&](std::string* out, int32_t token) {
    if (token == end_token()) {
      out->append("<eos>");
    } else if (token == padding_token()) {
      out->append("<pad>");
    } else if (vocabulary_.empty()) {
      absl::StrAppend(out, token);
    } else {
      out->append(vocabulary_[static_cast<size_t>(token)]);
    }
  });
}

absl::StatusOr<std::vector<int32_t>> FileText::Parse(absl::string_view text) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, set_->ReadInput(text));
  for (int32_t& symbol : tokens) symbol = inputs_[static_cast<size_t>(symbol)];
  return tokens;
}

}  // namespace lengthwise::tasks::examples
