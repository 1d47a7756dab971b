#include "specification/examples.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "platform/sha256.h"
#include "specification/text_training.h"
#include "specification/training_data.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"
#include "tasks/task.h"

namespace lengthwise::specification {
namespace {

using tasks::examples::Contents;
using tasks::examples::Form;

// The first of `lengths` that has no test examples.
template <typename Lengths>
void CheckTested(const std::string& field, const Lengths& lengths, const std::string& file,
                 const Contents& contents, Findings& findings) {
  for (const int32_t length : lengths) {
    if (contents.test.lengths.contains(length)) continue;
    findings.Add(field, absl::StrCat("got ", length, ", ", file, " has test examples of lengths ",
                                     tasks::examples::ShowLengths(contents.test.lengths)));
    return;
  }
}

void CheckTraining(const v1::Training& training, const std::string& file, const Contents& contents,
                   Findings& findings) {
  const auto first = contents.training.lengths.lower_bound(training.lengths().min());
  if (first == contents.training.lengths.end() || first->first > training.lengths().max()) {
    findings.Add("training.lengths",
                 absl::StrCat("got ", training.lengths().min(), "..", training.lengths().max(),
                              ", ", file, " has training examples of lengths ",
                              tasks::examples::ShowLengths(contents.training.lengths)));
  }
  if (training.examples() > 0) {
    findings.Add("training.examples",
                 "not of a file's examples, of which every step draws; leave it out and set "
                 "training.steps");
  }
}

// Of a language model; returns the tokens of the longest sequence.
int64_t CheckFileText(const v1::ExperimentSpecification& specification, const std::string& file,
                      const Contents& contents, Findings& findings) {
  CheckTextEvaluation(specification.evaluation(), findings);
  const v1::Training& training = specification.training();
  if (!training.has_packing()) return 0;  // not all tasks are text, a problem of its own
  // With the end token.
  const int64_t longest_training = contents.training.longest + 1;
  if (const int64_t tokens = training.packing().tokens(); tokens < longest_training) {
    findings.Add("training.packing.tokens",
                 absl::StrCat("got ", tokens, ", expected at least ", longest_training,
                              ", the tokens of the longest training example of ", file));
  }
  return JoinsExamples(training.packing())
             ? std::max<int64_t>(training.packing().tokens(), contents.test.longest + 1)
             : std::max(longest_training, contents.test.longest + 1);
}

void CheckInputs(const v1::Evaluation& evaluation, const std::string& file,
                 const Contents& contents, Findings& findings) {
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const v1::TokenSequence& input = evaluation.attention_inputs(i);
    const std::string field = absl::StrCat("evaluation.attention_inputs[", i, "]");
    if (contents.form == Form::kNumbers) continue;  // whole numbers may stand as tokens
    if (!input.numbers().empty()) {
      findings.Add(field + ".numbers", absl::StrCat(file, " has symbols: give tokens instead"));
      continue;
    }
    for (const int32_t token : input.tokens()) {
      if (token >= 0 && token < contents.input_symbols) continue;
      findings.Add(field + ".tokens",
                   absl::StrCat("got ", token, ", ", file, " has input symbols from 0 to ",
                                contents.input_symbols - 1));
      break;
    }
  }
}

}  // namespace

int64_t CheckExamples(const v1::ExperimentSpecification& specification, const std::string& path,
                      const tasks::TaskEntry& entry, const catalogue::Parameters& parameters,
                      Findings& findings) {
  const std::string& train = parameters.String("train");
  if (train.empty()) {
    findings.AddMissing(path + ".train", "required: a file of examples, such as my_train.jsonl");
    return 0;
  }
  const std::string& text = parameters.String("contents");
  if (text.empty()) {
    findings.Add(path + ".train",
                 absl::StrCat("nothing is known of the file ", train,
                              "; submit the specification with `lengthwise submit`, which brings "
                              "it, or train it with `lengthwise run`"));
    return 0;
  }
  const absl::StatusOr<Contents> contents = tasks::examples::ParseContents(text);
  if (!contents.ok()) {
    findings.Add(path + ".contents", std::string(contents.status().message()));
    return 0;
  }
  const std::string& test = parameters.String("test");
  for (const char* file : {"train", "test"}) {
    const std::string field = absl::StrCat(file, "_sha256");
    const bool wanted = !parameters.String(file).empty();
    if (platform::IsSha256Hex(parameters.String(field)) == wanted) continue;
    findings.Add(absl::StrCat(path, ".", field),
                 wanted ? "expected 64 lower-case hexadecimal digits, or nothing"
                        : absl::StrCat("is of no file: set `", file, "`, or leave it out"));
  }
  const bool numbers = contents->form == Form::kNumbers;
  const bool is_text = entry.kind == tasks::TaskKind::kText;
  if (numbers != (entry.kind == tasks::TaskKind::kRegression)) {
    findings.Add(path + ".name", absl::StrCat(train, " has ", numbers ? "numbers" : "symbols",
                                              ", \"", entry.name, "\" is for others"));
    return 0;
  }
  const std::string& tested = test.empty() ? train : test;
  const v1::Evaluation& evaluation = specification.evaluation();
  CheckTraining(specification.training(), train, *contents, findings);
  CheckTested("evaluation.lengths", evaluation.lengths(), tested, *contents, findings);
  CheckTested("evaluation.interval_lengths", evaluation.interval_lengths(), tested, *contents,
              findings);
  CheckTested("evaluation.attention_lengths", evaluation.attention_lengths(), tested, *contents,
              findings);
  if (evaluation.has_projection()) {
    const v1::ProjectionSettings& projection = evaluation.projection();
    CheckTested("evaluation.projection.fitted_length",
                std::initializer_list<int32_t>{projection.fitted_length()}, tested, *contents,
                findings);
    CheckTested("evaluation.projection.lengths", projection.lengths(), tested, *contents, findings);
  }
  const int64_t longest = std::max(contents->training.longest, contents->test.longest);
  if (is_text) return CheckFileText(specification, train, *contents, findings);
  CheckInputs(evaluation, train, *contents, findings);
  // Two tokens are the shortest sequence; only a limit is wanted.
  return numbers && contents->same_length ? longest / 2 : longest;
}

std::vector<DataFile> DataFilesOf(const v1::ExperimentSpecification& specification) {
  std::vector<DataFile> files;
  for (const v1::Component& task : specification.tasks()) {
    if (!tasks::examples::IsExamples(task.name())) continue;
    const auto text = [&](const char* parameter) -> std::string {
      const auto found = task.parameters().find(parameter);
      return found == task.parameters().end() ? "" : found->second.string_value();
    };
    const auto bytes = tasks::examples::ParseFileBytes(text("contents"));
    if (!bytes.ok()) continue;  // of a specification that was never resolved
    for (const DataFile& file : {DataFile{text("train_sha256"), bytes->train},
                                 DataFile{text("test_sha256"), bytes->test}}) {
      const bool known = std::find(files.begin(), files.end(), file) != files.end();
      if (!file.sha256.empty() && !known) files.push_back(file);
    }
  }
  return files;
}

}  // namespace lengthwise::specification
