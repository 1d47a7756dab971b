#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "specification/checks.h"
#include "specification/training_data.h"

namespace lengthwise::specification {
namespace {

constexpr int32_t kMostTokens = 1 << 20;
// Limit for the tokens of a step, which a worker holds in memory: 64 times the usual 128 sequences
// of 2,048 tokens.
constexpr int64_t kMostStepTokens = int64_t{1} << 24;

// Reports the first of `sizes` for which the task has no examples.
void CheckSizes(absl::string_view field, const std::vector<int32_t>& sizes,
                const tasks::TextTask& task, Findings& findings) {
  for (const int32_t size : sizes) {
    if (size < 1) continue;  // reported elsewhere
    const absl::Status status = task.Check(size);
    if (status.ok()) continue;
    findings.Add(field, status.message());
    return;
  }
}

// The size whose positions an input has.
absl::StatusOr<int64_t> SizeOf(const std::string& input, const tasks::TextTask& task) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, task.Parse(input));
  return tasks::SizeOfPrompt(task, tokens.size());
}

// A model could not emit an end token outside its vocabulary, and would stop at equal padding.
absl::Status CheckVocabulary(const tasks::TextTask& task) {
  const int32_t tokens = task.vocabulary(), end = task.end_token(), padding = task.padding_token();
  const auto is_token = [tokens](int32_t token) { return token >= 0 && token < tokens; };
  if (is_token(end) && is_token(padding) && end != padding) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the task's vocabulary clashes: its end token ", end, " and its padding ", padding,
      " must be two different ones of its ", tokens, " tokens, 0 to ", tokens - 1));
}

}  // namespace

void CheckPacking(const v1::Training& training, Findings& findings) {
  const int64_t tokens = training.packing().tokens();
  if (tokens < 1 || tokens > kMostTokens) {
    findings.Add("training.packing.tokens", "got ", tokens, ", expected an integer from 1 to ",
                 kMostTokens);
  } else if (training.batch_size() * tokens > kMostStepTokens) {
    findings.Add("training.batch_size", "got ", training.batch_size(), " sequences of ", tokens,
                 " tokens (training.packing.tokens); expected at most ", kMostStepTokens,
                 " tokens in a step");
  }
}

void CheckTextEvaluation(const v1::Evaluation& evaluation, Findings& findings) {
  constexpr char kNotOfText[] = "does not apply to text tasks; remove it";
  if (evaluation.has_projection()) findings.Add("evaluation.projection", kNotOfText);
  if (evaluation.embedding_noise_size() > 0) findings.Add("evaluation.embedding_noise", kNotOfText);
  if (evaluation.training_examples() > 0) findings.Add("evaluation.training_examples", kNotOfText);
}

int64_t CheckText(const v1::ExperimentSpecification& specification, const std::string& path,
                  const tasks::TextTask& task, Findings& findings) {
  // A parameter that is wrong for every size is reported as the parameter's problem.
  if (const absl::Status status = task.Check(1); !status.ok()) {
    findings.Add(path, status.message());
    return 0;
  }
  if (const absl::Status status = CheckVocabulary(task); !status.ok()) {
    findings.Add(path, status.message());
    return 0;
  }
  const v1::Training& training = specification.training();
  const v1::Evaluation& evaluation = specification.evaluation();
  if (!training.has_packing()) return 0;  // mixed task kinds, reported elsewhere
  const std::vector<EvaluatedField> evaluated = EvaluatedFields(evaluation);
  CheckSizes("training.lengths", {training.lengths().max()}, task, findings);
  for (const auto& [field, sizes] : evaluated) CheckSizes(field, sizes, task, findings);
  CheckTextEvaluation(evaluation, findings);
  int64_t longest_input = 0;
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const std::string field = absl::StrCat("evaluation.attention_inputs[", i, "].text");
    const std::string& text = evaluation.attention_inputs(i).text();
    if (text.empty()) {
      findings.Add(field, "required: the task reads text");
      continue;
    }
    const auto size = SizeOf(text, task);
    if (!size.ok()) {
      findings.Add(field, size.status().message());
      break;  // to find that no size fits takes time
    }
    longest_input = std::max(longest_input, tasks::LongestContinued(task, *size));
  }
  if (!findings.empty()) return 0;

  const v1::Packing& packing = training.packing();
  const int64_t longest_example = task.LongestExample(training.lengths().max());
  if (longest_example > packing.tokens()) {
    findings.Add("training.packing.tokens", "got ", packing.tokens(), ", expected at least ",
                 longest_example, ", the tokens of an example of ", training.lengths().max(),
                 " (training.lengths.max)");
  }
  // Packing skips examples longer than a sequence: training would miss the longest ones.
  if (const int64_t augmented = tasks::LongestContinued(task, training.lengths().max());
      longest_example <= packing.tokens() && augmented > packing.tokens()) {
    findings.Add("training.packing.tokens", "got ", packing.tokens(), ", expected at least ",
                 augmented, ", twice the tokens of an example of ", training.lengths().max(),
                 " (training.lengths.max), which augmentation makes longer");
  }
  int64_t longest =
      std::max(longest_input, tasks::LongestTraining(task, training.lengths().max(),
                                                     packing.tokens(), JoinsExamples(packing)));
  for (const auto& [field, sizes] : evaluated) {
    for (const int32_t size : sizes) {
      longest = std::max(longest, tasks::LongestContinued(task, size));
    }
  }
  return longest;
}

}  // namespace lengthwise::specification
