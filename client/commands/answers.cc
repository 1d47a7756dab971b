// `lengthwise errors TRIAL` and `lengthwise predict TRIAL`: show what a model answers.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/commands/local_training.h"
#include "client/display/table.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct AnswerOptions {
  std::string trial;
  std::string input;
  int length = 0;
  int count = 20;
  LocalWorkers workers;
};

// The answers of a trial to sequences of `length` or, if it is 0, to the user's own input.
absl::StatusOr<std::vector<v1::Answer>> AnswersOf(Connection& connection, const v1::Trial& trial,
                                                  int length) {
  ASSIGN_OR_RETURN(auto events, connection.QueryAnalyses(trial.name()));
  std::vector<v1::Answer> answers;
  for (v1::Event& event : events) {
    const v1::Answer& answer = event.answer();
    if (!event.has_answer() || (answer.input_number() > 0) != (length == 0)) continue;
    if (length > 0 && answer.length() != length) continue;
    answers.push_back(std::move(*event.mutable_answer()));
  }
  return answers;
}

// The symbols as text for people; wrong ones are in brackets, and "_" stands for a missing one.
std::string Marked(const v1::Answer& answer) {
  std::vector<std::string> symbols(answer.given().begin(), answer.given().end());
  symbols.resize(static_cast<size_t>(std::max(answer.given_size(), answer.expected_size())), "_");
  for (const int32_t place : answer.wrong()) {
    const auto i = static_cast<size_t>(place);
    if (i < symbols.size()) symbols[i] = absl::StrCat("[", symbols[i], "]");
  }
  return platform::PrintableLine(absl::StrJoin(symbols, answer.separator()));
}

int Write(Program& program, const std::vector<v1::Answer>& answers) {
  Records records{.columns = {"length", "sequence", "input", "expected", "given", "wrong"}};
  Table table({{.header = "sequence", .align = Table::Align::kRight},
               {.header = "input", .shrinks_to = 10},
               {.header = "expected", .shrinks_to = 10},
               {.header = "given", .shrinks_to = 10}});
  for (const v1::Answer& answer : answers) {
    const std::string expected = absl::StrJoin(answer.expected(), answer.separator());
    records.rows.push_back({int64_t{answer.length()}, int64_t{answer.sequence()} + 1,
                            answer.input(), expected,
                            absl::StrJoin(answer.given(), answer.separator()),
                            std::vector<int64_t>(answer.wrong().begin(), answer.wrong().end())});
    table.AddRow({absl::StrCat(answer.sequence() + 1), platform::PrintableLine(answer.input()),
                  platform::PrintableLine(expected), Marked(answer)});
  }
  return program.output_is_table() ? program.Write(table) : program.Write(records);
}

absl::StatusOr<int> Errors(Program& program, const AnswerOptions& options) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToTrain());
  ASSIGN_OR_RETURN(auto trial, FindTrial(*connection, options.trial));
  const v1::Evaluation& evaluated = trial.specification().evaluation();
  const auto longest = absl::c_max_element(evaluated.lengths());
  const int length = options.length > 0                     ? options.length
                     : longest == evaluated.lengths().end() ? 1
                                                            : *longest;
  // A trial that recorded fewer answers, or none of this length, is evaluated again.
  if (evaluated.answers() < options.count || !absl::c_linear_search(evaluated.lengths(), length)) {
    v1::Evaluation again;
    again.add_lengths(length);
    again.set_answers(options.count);
    ASSIGN_OR_RETURN(trial, EvaluateQuietly(program, *connection, trial, again, options.workers));
  }
  ASSIGN_OR_RETURN(auto answers, AnswersOf(*connection, trial, length));
  if (answers.empty()) {
    return absl::NotFoundError(absl::StrCat(ShortName(trial.name()), " has no answers of length ",
                                            length, "; `lengthwise show ", options.trial,
                                            program.WhereArguments(), "` says how far it is"));
  }
  std::erase_if(answers, [](const v1::Answer& answer) { return answer.wrong().empty(); });
  if (answers.size() > static_cast<size_t>(options.count)) {
    answers.resize(static_cast<size_t>(options.count));
  }
  if (answers.empty() && program.output_is_table()) {
    program.out() << "Every evaluated sequence of length " << length
                  << " is answered without a mistake.\n";
    return kSuccess;
  }
  return Write(program, answers);
}

absl::StatusOr<int> Predict(Program& program, const AnswerOptions& options) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToTrain());
  ASSIGN_OR_RETURN(const auto trial, FindTrial(*connection, options.trial));
  v1::Evaluation evaluation;
  RETURN_IF_ERROR(AddInput(options.input, trial.specification(), evaluation));
  ASSIGN_OR_RETURN(const v1::Trial evaluated,
                   EvaluateQuietly(program, *connection, trial, evaluation, options.workers));
  ASSIGN_OR_RETURN(const auto answers, AnswersOf(*connection, evaluated, 0));
  if (answers.empty()) return WhyNothing(*connection, evaluated);
  const v1::Answer& answer = answers.front();
  const std::string given = absl::StrJoin(answer.given(), answer.separator());
  if (program.output_is_table()) {
    program.out() << platform::PrintableLine(given) << "\n";
    return kSuccess;
  }
  return program.Write(Records{.columns = {"input", "given"}, .rows = {{answer.input(), given}}});
}

void AddCommon(Command command, Program& program, AnswerOptions& options) {
  command.AddOption("trial", options.trial, "EXPERIMENT/TRIAL, or EXPERIMENT/INDEX of the trial");
  AddWorkerOptions(command, options.workers);
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace

void AddErrors(Command root, Program& program) {
  const auto [command, options] =
      program.AddCommand(root, "errors", "Shows what a trained model answers wrongly", kServerGroup,
                         "lengthwise errors figure6-1/0\n"
                         "lengthwise errors figure6-1/0 --length 40 --count 20",
                         Errors);
  command
      .AddOption("--length N", options->length,
                 "Length of the inputs; default: the longest that the trial evaluates")
      .Positive();
  command
      .AddOption(
          "--count K", options->count,
          "Number of answers with a mistake, the first of the evaluation. A worker evaluates "
          "the model again unless evaluation.answers recorded as many")
      .Range(1, 1000)
      .ShowDefault();
  AddCommon(command, program, *options);
}

void AddPredict(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "predict", "Shows what a trained model answers to your own input", kServerGroup,
      "lengthwise predict figure6-1/0 --input 0,1,1,0,1\n"
      "lengthwise predict addition-1/0 --input '12+07='\n"
      "lengthwise predict my_task-1/0 --input 'three plus four'",
      Predict);
  command
      .AddOption("--input TOKENS", options->input,
                 "Your own input, on which a worker runs the model: tokens, text for tasks on text "
                 "or, for tasks on real numbers, numbers including a scratchpad's 0")
      .Required()
      .NotEmpty();
  AddCommon(command, program, *options);
}

}  // namespace lengthwise::client
