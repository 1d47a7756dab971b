#include "specification/examples.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/networks/catalogue.h"
#include "platform/sha256.h"
#include "specification/checks.h"
#include "specification/training_data.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/line.h"
#include "tasks/task.h"

namespace lengthwise::specification {
namespace {

// A file may have examples of every length that a specification may name.
static_assert(tasks::examples::kMostLength == kMostLength);

using tasks::examples::Contents;
using tasks::examples::Form;

// Fewer test examples than this give an accuracy in steps of more than five points.
constexpr int64_t kFewExamples = 20;

// Reports those of `lengths` that have no test examples.
void CheckTested(const std::string& field, const std::vector<int32_t>& lengths,
                 const std::string& file, const Contents& contents, Findings& findings) {
  std::map<int32_t, int64_t> untested;
  for (const int32_t length : lengths) {
    if (!contents.test.lengths.contains(length)) untested[length] = 0;
  }
  if (untested.empty()) return;
  findings.Add(field, "got ", tasks::examples::ShowLengths(untested), ", ", file,
               " has test examples of lengths ",
               tasks::examples::ShowLengths(contents.test.lengths));
}

// Returns the longest length within training.lengths of which there are training examples.
std::optional<int32_t> LongestTrained(const v1::Training& training, const Contents& contents) {
  const auto behind = contents.training.lengths.upper_bound(training.lengths().max());
  if (behind == contents.training.lengths.begin()) return std::nullopt;
  const int32_t longest = std::prev(behind)->first;
  return longest < training.lengths().min() ? std::nullopt : std::optional<int32_t>(longest);
}

// Says how many different examples a step has, if they are fewer than its batch.
std::string ScarceExamples(const v1::Training& training, const std::string& file,
                           const Contents& contents) {
  if (!contents.one_size.has_value()) return "";
  const v1::LengthRange& trained = training.lengths();
  const auto& lengths = contents.training.lengths;
  int64_t all = 0, fewest = 0, most = 0;
  std::map<int32_t, int64_t> scarce;
  for (auto one = lengths.lower_bound(trained.min());
       one != lengths.end() && one->first <= trained.max(); ++one) {
    all += one->second;
    if (one->second >= training.batch_size()) continue;
    fewest = scarce.empty() ? one->second : std::min(fewest, one->second);
    most = std::max(most, one->second);
    scarce.insert(*one);
  }
  // Examples of one size are drawn length by length, but a language model packs all lengths.
  const bool by_length = *contents.one_size && !training.has_packing();
  if (by_length ? scarce.empty() : all >= training.batch_size()) return "";
  if (!by_length) fewest = most = all;
  return absl::StrCat("a step has only ", fewest, fewest == most ? "" : absl::StrCat(" to ", most),
                      " different examples of ", file,
                      by_length ? absl::StrCat(" at lengths ", tasks::examples::ShowLengths(scarce),
                                               ", because all examples of a step have one length")
                                : "",
                      "; training.batch_size is ", training.batch_size(),
                      ", so some occur several times");
}

// Text of a task's parameter; empty if it is unset.
std::string TextOf(const v1::Component& task, const char* parameter) {
  const auto found = task.parameters().find(parameter);
  return found == task.parameters().end() ? "" : found->second.string_value();
}

// The contents of a task's files; an error if it has none or they were never read.
absl::StatusOr<Contents> ContentsOf(const v1::Component& task) {
  if (!tasks::examples::IsExamples(task.name())) return absl::NotFoundError("no task of examples");
  return tasks::examples::ParseContents(TextOf(task, "contents"));
}

void CheckTraining(const v1::Training& training, const std::string& file, const Contents& contents,
                   Findings& findings) {
  const auto first = contents.training.lengths.lower_bound(training.lengths().min());
  if (first == contents.training.lengths.end() || first->first > training.lengths().max()) {
    findings.Add("training.lengths", "got ", training.lengths().min(), "..",
                 training.lengths().max(), ", ", file, " has training examples of lengths ",
                 tasks::examples::ShowLengths(contents.training.lengths));
  }
  if (training.examples() > 0) {
    findings.Add("training.examples",
                 "does not apply to a file's examples, from which every step draws; remove it and "
                 "set training.steps");
  }
}

// Tokens of the longest example with a length from `smallest` to `largest`.
int64_t LongestOf(const Contents::OfPart& part, int32_t smallest, int32_t largest) {
  if (part.longest_by_length.empty()) return part.longest;
  int64_t longest = 0;
  for (auto one = part.longest_by_length.lower_bound(smallest);
       one != part.longest_by_length.end() && one->first <= largest; ++one) {
    longest = std::max(longest, one->second);
  }
  return longest;
}

std::set<int32_t> EvaluatedLengths(const v1::Evaluation& evaluation) {
  std::set<int32_t> all;
  for (const auto& [field, lengths] : EvaluatedFields(evaluation)) {
    all.insert(lengths.begin(), lengths.end());
  }
  return all;
}

// Sequences of a network that reads whole examples: training and test examples of each length that
// is trained on or evaluated.
SequenceRange SequencesOf(const v1::ExperimentSpecification& specification,
                          const Contents& contents) {
  const v1::LengthRange& trained = specification.training().lengths();
  const std::set<int32_t> evaluated = EvaluatedLengths(specification.evaluation());
  // An attention input may be as long as any example, so with one, every length counts.
  const bool any = specification.evaluation().attention_inputs_size() > 0;
  const int64_t values = contents.form == Form::kNumbers && contents.same_length ? 2 : 1;
  SequenceRange range;
  for (const Contents::OfPart* part : {&contents.training, &contents.test}) {
    if (part->longest_by_length.empty()) range.Take({0, part->longest / values});
    for (const auto& [length, longest] : part->longest_by_length) {
      const bool is_trained = length >= trained.min() && length <= trained.max();
      if (!any && !is_trained && !evaluated.contains(length)) continue;
      range.Take({part->shortest_by_length.at(length) / values, longest / values});
    }
  }
  return range;
}

// Checks a file used by a language model. Returns the tokens of its longest sequence.
int64_t CheckFileText(const v1::ExperimentSpecification& specification, const std::string& file,
                      const Contents& contents, Findings& findings) {
  CheckTextEvaluation(specification.evaluation(), findings);
  const v1::Training& training = specification.training();
  if (!training.has_packing()) return 0;  // mixed task kinds, reported elsewhere
  // One more for the end token.
  const v1::LengthRange& lengths = training.lengths();
  const int64_t longest_training = LongestOf(contents.training, lengths.min(), lengths.max()) + 1;
  if (const int64_t tokens = training.packing().tokens(); tokens < longest_training) {
    findings.Add("training.packing.tokens", "got ", tokens, ", expected at least ",
                 longest_training, ", the tokens of the longest training example of ", file);
  }
  const std::set<int32_t> evaluated = EvaluatedLengths(specification.evaluation());
  // Length and tokens are independent: a shorter length may have the longest example.
  const int32_t largest =
      evaluated.empty() ? lengths.max() : std::max(lengths.max(), *evaluated.rbegin());
  const int64_t longest =
      std::max(LongestOf(contents.training, 1, largest), LongestOf(contents.test, 1, largest)) + 1;
  return JoinsExamples(training.packing()) ? std::max<int64_t>(training.packing().tokens(), longest)
                                           : longest;
}

void CheckInputs(const v1::Evaluation& evaluation, const std::string& file,
                 const Contents& contents, Findings& findings) {
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const v1::TokenSequence& input = evaluation.attention_inputs(i);
    const std::string field = absl::StrCat("evaluation.attention_inputs[", i, "]");
    if (!input.text().empty() && !contents.is_text()) {
      findings.Add(field + ".text", file, " has no text: give ",
                   contents.form == Form::kNumbers ? "numbers" : "tokens", " instead");
      continue;
    }
    if (contents.form == Form::kNumbers) continue;  // whole numbers are accepted as tokens
    if (!input.numbers().empty()) {
      findings.Add(field + ".numbers", file, " has symbols: give tokens instead");
      continue;
    }
    for (const int32_t token : input.tokens()) {
      if (token >= 0 && token < contents.input_symbols) continue;
      findings.Add(field + ".tokens", "got ", token, ", ", file, " has input symbols from 0 to ",
                   contents.input_symbols - 1);
      break;
    }
  }
}

}  // namespace

SequenceRange CheckExamples(const v1::ExperimentSpecification& specification,
                            const std::string& path, const tasks::TaskEntry& entry,
                            const catalogue::Parameters& parameters, Findings& findings) {
  const std::string& train = parameters.String("train");
  if (train.empty()) {
    findings.AddMissing(path + ".train", "required: a file of examples, such as my_train.jsonl");
    return {};
  }
  const std::string& text = parameters.String("contents");
  if (text.empty()) {
    // Python clients since 0.2.0 recognize the first words of this message, and then send the file.
    findings.Add(path + ".train", "nothing is known of the file ", train,
                 "; submit the specification with `lengthwise submit`, which uploads "
                 "it, or train with `lengthwise run`");
    return {};
  }
  const absl::StatusOr<Contents> contents = tasks::examples::ParseContents(text);
  if (!contents.ok()) {
    findings.Add(path + ".contents", contents.status().message());
    return {};
  }
  const std::string& test = parameters.String("test");
  for (const char* file : {"train", "test"}) {
    const std::string field = absl::StrCat(file, "_sha256");
    const bool wanted = !parameters.String(file).empty();
    if (platform::IsSha256Hex(parameters.String(field)) == wanted) continue;
    findings.Add(absl::StrCat(path, ".", field),
                 wanted ? "expected 64 lower-case hexadecimal digits, or nothing"
                        : absl::StrCat("belongs to no file: set `", file, "`, or remove this"));
  }
  const bool numbers = contents->form == Form::kNumbers;
  const bool is_text = entry.kind == tasks::TaskKind::kText;
  if (numbers != (entry.kind == tasks::TaskKind::kRegression)) {
    findings.Add(path + ".name", train, " has ", numbers ? "numbers" : "symbols", ", \"",
                 entry.name, "\" is for others");
    return {};
  }
  const std::string& tested = test.empty() ? train : test;
  const v1::Evaluation& evaluation = specification.evaluation();
  CheckTraining(specification.training(), train, *contents, findings);
  for (auto& [field, lengths] : EvaluatedFields(evaluation)) {
    if (field == "evaluation.interval_lengths") {
      // The default is some of evaluation.lengths, which are reported already.
      std::erase_if(lengths,
                    [&](int32_t n) { return absl::c_binary_search(evaluation.lengths(), n); });
    }
    CheckTested(field, lengths, tested, *contents, findings);
  }
  SequenceRange range;
  if (is_text) {
    range.longest = CheckFileText(specification, train, *contents, findings);
  } else {
    CheckInputs(evaluation, train, *contents, findings);
    range = SequencesOf(specification, *contents);
  }
  range.largest_id = contents->largest_position;
  range.largest_id_line = contents->largest_position_line;
  return range;
}

std::vector<DataFile> DataFilesOf(const v1::ExperimentSpecification& specification) {
  std::vector<DataFile> files;
  for (const v1::Component& task : specification.tasks()) {
    if (!tasks::examples::IsExamples(task.name())) continue;
    const auto bytes = tasks::examples::ParseFileBytes(TextOf(task, "contents"));
    if (!bytes.ok()) continue;  // the specification was never resolved
    for (const DataFile& file : {DataFile{TextOf(task, "train_sha256"), bytes->train},
                                 DataFile{TextOf(task, "test_sha256"), bytes->test}}) {
      const bool known = std::find(files.begin(), files.end(), file) != files.end();
      if (!file.sha256.empty() && !known) files.push_back(file);
    }
  }
  for (const v1::Component& network : specification.networks()) {
    const auto bytes = network.parameters().find("file_bytes");
    if (network.name() != models::kPythonNetwork || bytes == network.parameters().end()) continue;
    const DataFile file = {TextOf(network, "file_sha256"),
                           static_cast<int64_t>(bytes->second.number_value())};
    if (!absl::c_linear_search(files, file)) files.push_back(file);
  }
  return files;
}

std::optional<int32_t> SeenInFiles(const v1::ExperimentSpecification& specification) {
  std::optional<int32_t> smallest;
  for (const v1::Component& task : specification.tasks()) {
    const auto contents = ContentsOf(task);
    if (!contents.ok()) return std::nullopt;
    const auto longest = LongestTrained(specification.training(), *contents);
    if (!longest.has_value()) return std::nullopt;
    smallest = std::min(smallest.value_or(*longest), *longest);
  }
  return smallest;
}

std::vector<std::string> ExampleWarnings(const v1::ExperimentSpecification& specification) {
  std::vector<std::string> warnings;
  const v1::LengthRange& trained = specification.training().lengths();
  for (const v1::Component& task : specification.tasks()) {
    const auto contents = ContentsOf(task);
    if (!contents.ok()) continue;
    std::map<int32_t, int64_t> untrained, few;
    for (const int32_t length : specification.evaluation().lengths()) {
      const bool is_trained = length >= trained.min() && length <= trained.max() &&
                              contents->training.lengths.contains(length);
      const int32_t seen_up_to = specification.evaluation().seen_up_to();
      if (length <= seen_up_to && !is_trained) untrained[length] = 0;
      const auto tests = contents->test.lengths.find(length);
      if (tests != contents->test.lengths.end() && tests->second < kFewExamples) few[length] = 0;
    }
    const std::string train = TextOf(task, "train"), test = TextOf(task, "test");
    if (std::string scarce = ScarceExamples(specification.training(), train, *contents);
        !scarce.empty()) {
      warnings.push_back(std::move(scarce));
    }
    if (!untrained.empty()) {
      warnings.push_back(absl::StrCat(
          "training has no examples of lengths ", tasks::examples::ShowLengths(untrained), " of ",
          train, ", but results count them as seen; set evaluation.seen_up_to to change that"));
    }
    if (!few.empty()) {
      warnings.push_back(absl::StrCat(
          test.empty() ? train : test, " has fewer than ", kFewExamples,
          " test examples of lengths ", tasks::examples::ShowLengths(few),
          ": their accuracies are coarse, and a mean over lengths counts each length the same"));
    }
  }
  return warnings;
}

}  // namespace lengthwise::specification
