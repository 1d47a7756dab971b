#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/commands/commands.h"
#include "client/commands/local_training.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

// Returns true if the inputs of a task are text.
bool ReadsText(const v1::Component& task, bool continues_text) {
  if (!tasks::examples::IsExamples(task.name())) return continues_text;
  const auto contents =
      tasks::examples::ParseContents(specification::ParametersOf(task).String("contents"));
  return contents.ok() && contents->is_text();
}

// Names the option that the user typed in place of the server's field.
absl::Status InTermsOfInput(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrReplaceAll(status.message(), {{"evaluation.attention_inputs[0].tokens", "--input"},
                                             {"evaluation.attention_inputs[0].numbers", "--input"},
                                             {"evaluation.attention_inputs[0].text", "--input"}}));
}

}  // namespace

absl::Status AddInput(const std::string& typed, const v1::TrialSpecification& trial,
                      v1::Evaluation& evaluation) {
  const tasks::TaskEntry* task = tasks::FindTask(trial.task().name());
  const auto is = [task](tasks::TaskKind kind) { return task != nullptr && task->kind == kind; };
  v1::TokenSequence& input = *evaluation.add_attention_inputs();
  // Tokens of text are in brackets, as in the JSON of recorded maps.
  if (ReadsText(trial.task(), is(tasks::TaskKind::kText)) && typed[0] != '[') {
    input.set_text(typed);
  } else {
    // Accepts the formats that `lengthwise sample` and `lengthwise errors` print, too: [0, 1, 1]
    // and 0 1 1.
    std::string text = absl::StrReplaceAll(typed, {{"[", ""}, {"]", ""}});
    if (!absl::StrContains(text, ',')) {
      text =
          absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty()), ",");
    }
    RETURN_IF_ERROR(
        is(tasks::TaskKind::kRegression)
            ? ReadNumbers("--input", text, *input.mutable_numbers())
            : ReadNumbers("--input", text, *input.mutable_tokens(), "tokens such as 0,1,1"));
    if (input.tokens().empty() && input.numbers().empty()) {
      return absl::InvalidArgumentError("--input: got nothing, expected tokens or numbers");
    }
  }
  const bool has_lengths = task == nullptr || is(tasks::TaskKind::kTransduction);
  const auto& evaluated = trial.evaluation().lengths();
  if (!evaluated.empty() &&
      (is(tasks::TaskKind::kText) || tasks::examples::IsExamples(trial.task().name()))) {
    evaluation.add_lengths(evaluated.Get(0));  // there may be no examples of other lengths
  } else {
    evaluation.add_lengths(has_lengths ? input.tokens_size() : 1);
  }
  evaluation.set_sequences(1);
  return absl::OkStatus();
}

absl::StatusOr<v1::Trial> EvaluateQuietly(Program& program, Connection& connection,
                                          const v1::Trial& trial, const v1::Evaluation& evaluation,
                                          const LocalWorkers& workers) {
  std::optional<InterruptGuard> interrupts(std::in_place);
  v1::EvaluateTrialRequest request;
  request.set_trial(trial.name());
  request.set_request_id(RandomRequestId());
  request.set_owner(connection.DefaultOwner());
  *request.mutable_evaluation() = evaluation;
  const auto created = connection.Call<v1::CreateExperimentResponse>(request);
  if (!created.ok()) return InTermsOfInput(created.status());
  ASSIGN_OR_RETURN(const auto ended, TrainOrWatch(program, connection, created->experiment(),
                                                  workers, interrupts, /*quiet=*/true));
  if (ended == kInterrupted) return absl::CancelledError("interrupted");
  ASSIGN_OR_RETURN(auto trials, connection.ListTrials(created->experiment().name(), ""));
  if (trials.empty()) return absl::InternalError("the evaluation has no trial");
  if (ended != kSuccess) {
    return absl::AbortedError(absl::StrCat("the evaluation failed: ", trials.front().reason()));
  }
  return std::move(trials.front());
}

absl::Status WhyNothing(Connection& connection, const v1::Trial& evaluated) {
  ASSIGN_OR_RETURN(const auto events, connection.Log(evaluated.name()));
  for (const v1::Event& event : events) {
    const v1::LogLine& line = event.log_line();
    if (line.severity() != v1::LogLine::WARNING) continue;
    return absl::InvalidArgumentError(absl::StrCat("--input: ", line.text()));
  }
  return absl::NotFoundError(absl::StrCat("nothing was recorded of ", ShortName(evaluated.name())));
}

}  // namespace lengthwise::client
