// `lengthwise evaluate TRIAL`: evaluates a stored model on other lengths. The evaluations by which
// other commands ask a model (local_training.h).
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/commands/commands.h"
#include "client/commands/experiment_display.h"
#include "client/commands/local_training.h"
#include "client/commands/program.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<v1::CreateExperimentResponse> Submit(Connection& connection, const v1::Trial& trial,
                                                    const v1::Evaluation& evaluation) {
  v1::EvaluateTrialRequest request;
  request.set_trial(trial.name());
  request.set_request_id(RandomRequestId());
  request.set_owner(connection.DefaultOwner());
  *request.mutable_evaluation() = evaluation;
  return connection.Call<v1::CreateExperimentResponse>(request);
}

struct EvaluateOptions {
  std::string trial;
  std::string lengths;
  std::optional<int32_t> sequences;
  std::optional<uint64_t> seed;
  std::string attention_lengths;
  std::optional<int32_t> attention_sequences;
  std::string projection_lengths;
  bool sequence_scores = false;
  std::optional<int32_t> answers;
  std::vector<double> embedding_noise;
  std::optional<int64_t> training_examples;
  LocalWorkers workers;
  bool detach = false;
};

absl::Status FillEvaluation(const EvaluateOptions& options, v1::Evaluation& evaluation) {
  absl::Status status = ReadNumbers("--lengths", options.lengths, *evaluation.mutable_lengths());
  status.Update(ReadNumbers("--attention_lengths", options.attention_lengths,
                            *evaluation.mutable_attention_lengths()));
  if (!options.projection_lengths.empty()) {
    status.Update(ReadNumbers("--projection_lengths", options.projection_lengths,
                              *evaluation.mutable_projection()->mutable_lengths()));
  }
  if (options.attention_sequences.has_value()) {
    evaluation.set_attention_sequences(*options.attention_sequences);
  }
  if (options.sequence_scores) evaluation.set_sequence_scores(true);
  if (options.answers.has_value()) evaluation.set_answers(*options.answers);
  evaluation.mutable_embedding_noise()->Add(options.embedding_noise.begin(),
                                            options.embedding_noise.end());
  if (options.training_examples.has_value()) {
    evaluation.set_training_examples(*options.training_examples);
  }
  if (options.sequences.has_value()) evaluation.set_sequences(*options.sequences);
  if (options.seed.has_value()) evaluation.set_seed(*options.seed);
  return status;
}

absl::StatusOr<int> Evaluate(Program& program, const EvaluateOptions& options) {
  if (options.detach && !program.data_dir.empty()) {
    return absl::InvalidArgumentError(
        "--detach needs a server: with --data_dir nothing would run the evaluation after this "
        "command");
  }
  v1::Evaluation evaluation;
  RETURN_IF_ERROR(FillEvaluation(options, evaluation));
  std::optional<InterruptGuard> interrupts(std::in_place);
  ASSIGN_OR_RETURN(auto connection, program.ConnectToTrain());
  ASSIGN_OR_RETURN(auto trial, FindTrial(*connection, options.trial));
  ASSIGN_OR_RETURN(auto created, Submit(*connection, trial, evaluation));
  const std::string name = created.experiment().name();
  if (program.output_is_table()) {
    program.out() << "Evaluating " << ShortName(trial.name()) << " again as " << ShortName(name)
                  << "\n";
  }
  if (options.detach) {
    if (!program.output_is_table()) program.Write({.columns = {"name"}, .rows = {{name}}});
    return kSuccess;
  }
  auto ended =
      TrainOrWatch(program, *connection, created.experiment(), options.workers, interrupts);
  if (!ended.ok() || *ended == kInterrupted) return ended;
  ASSIGN_OR_RETURN(auto experiment, connection->GetExperiment(name));
  if (program.output_is_table()) program.out() << "\n";
  RETURN_IF_ERROR(PrintResults(program, *connection, experiment, false));
  return ended;
}

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
  const auto created = Submit(connection, trial, evaluation);
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

void AddEvaluate(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "evaluate", "Evaluates a trained model again, on other lengths", kServerGroup,
      "lengthwise evaluate table1-1/0 --lengths 41..500 --sequences 500\n"
      "lengthwise evaluate quickstart/1 --lengths 61..100 --data_dir "
      "~/.local/share/lengthwise/runs\n"
      "lengthwise evaluate table2-1/0 --attention_lengths 1..3 --attention_sequences 36",
      Evaluate);
  command.AddOption("trial", options->trial, "EXPERIMENT/TRIAL, or EXPERIMENT/INDEX of the trial");
  command
      .AddOption("--lengths LIST", options->lengths,
                 "Lengths, such as 41..500 or 10,20,50; default: the trial's")
      .NotEmpty();
  command.AddOption("--sequences N", options->sequences,
                    "Sequences per length; default: the trial's");
  command.AddOption("--seed S", options->seed, "Seed of the sequences; default: the trial's")
      .NonNegative();
  command
      .AddOption("--attention_lengths LIST", options->attention_lengths,
                 "Also records attention maps at these lengths")
      .NotEmpty();
  command.AddOption("--attention_sequences N", options->attention_sequences,
                    "Sequences with attention maps per length; default 1");
  command.AddFlag("--sequence_scores", options->sequence_scores,
                  "Also records the score of every sequence");
  command.AddOption("--answers N", options->answers,
                    "Also records this many answers per length, and as many with a mistake");
  command
      .AddOption("--embedding_noise LIST", options->embedding_noise,
                 "Also evaluates with noise of these standard deviations on the embeddings of "
                 "tokens: 0.02,0.04,0.1")
      .SeparatedBy(',');
  command.AddOption("--training_examples N", options->training_examples,
                    "Also scores this many examples of the trial's own data set");
  command
      .AddOption("--projection_lengths LIST", options->projection_lengths,
                 "Also records projections of activations at these lengths")
      .NotEmpty();
  command.AddFlag("--detach", options->detach, "Submits the evaluation without waiting for it");
  AddWorkerOptions(command, options->workers);
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
