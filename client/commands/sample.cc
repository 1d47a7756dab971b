// `lengthwise sample TASK`: prints examples of a task.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/commands/specification_file.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/file_text.h"
#include "tasks/numeric/relational_query.h"
#include "tasks/puzzles.h"
#include "tasks/regression.h"
#include "tasks/text_task.h"

namespace lengthwise::client {
namespace {

struct SampleOptions {
  std::string task;
  int64_t length = 8;
  // Absent: the scale of training.
  std::optional<double> scale;
  int64_t count = 5;
  // Puzzles only: those that trials are validated on instead of those that they train on.
  bool validation = false;
  uint64_t seed = 0;
  std::vector<std::string> settings;  // "name=value"
  // Tells which options were given.
  std::optional<Command> command;
};

catalogue::ParameterValue ParseValue(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (int64_t integer; absl::SimpleAtoi(text, &integer)) return integer;
  if (double number; absl::SimpleAtod(text, &number)) return number;
  return text;
}

// Prints a sample as a line of json or csv, or adds it to the table. Calls only the function that
// the output needs.
void Print(Program& program, absl::FunctionRef<std::vector<std::string>()> cells,
           absl::FunctionRef<nlohmann::ordered_json()> json, Table& table) {
  if (program.output == "json") {
    program.out() << json().dump() << "\n";
  } else if (program.output == "csv") {
    program.out() << absl::StrJoin(cells(), ",", [](std::string* out, const std::string& cell) {
      out->append(CsvCell(cell));
    }) << "\n";
  } else {
    const std::vector<std::string> row = cells();
    table.AddRow({row.begin(), row.end()});
  }
}

// Prints the first puzzles that the trials of a data seed train on or are validated on, in the
// order of the conditions in an evaluation.
absl::StatusOr<int> SamplePuzzles(Program& program, const SampleOptions& options,
                                  const tasks::PuzzleTask& task) {
  ASSIGN_OR_RETURN(const tasks::PuzzleData data, task.Data(options.seed));
  const tasks::PuzzleSet& puzzles = options.validation ? data.validation : data.training;
  Table table({{.header = "puzzle"}, {.header = "answer"}, {.header = "condition"}});
  if (program.output == "csv") program.out() << "puzzle,answer,condition\n";
  for (int64_t i = 0; i < std::min(options.count, puzzles.size()); ++i) {
    const auto first = puzzles.tokens.begin() + static_cast<std::ptrdiff_t>(i * task.cells());
    const std::vector<int32_t> tokens(first, first + static_cast<std::ptrdiff_t>(task.cells()));
    const int32_t answer = puzzles.classes[static_cast<size_t>(i)];
    const auto condition = static_cast<size_t>(puzzles.conditions[static_cast<size_t>(i)]);
    const auto cells = [&]() -> std::vector<std::string> {
      return {
          task.Format(tokens), absl::StrCat(answer + 1),
          program.output_is_table() ? task.conditions()[condition] : absl::StrCat(condition + 1)};
    };
    const auto json = [&]() -> nlohmann::ordered_json {
      return {{"input", tokens}, {"target", {answer}}, {"condition", condition + 1}};
    };
    Print(program, cells, json, table);
  }
  if (program.output_is_table()) program.Write(table);
  return kSuccess;
}

// Prints samples of `options.length` numbers: of training or, with a scale, of evaluation.
absl::StatusOr<int> SampleNumbers(Program& program, const SampleOptions& options,
                                  const tasks::RegressionTask& task) {
  const tasks::Domain domain = {
      .n = options.length, .scale = options.scale.value_or(1), .unseen = options.scale.has_value()};
  RETURN_IF_ERROR(task.Check(domain));
  const auto rows = static_cast<size_t>(task.Rows(options.length));
  std::vector<double> inputs(rows), targets(rows);
  std::vector<int32_t> tokens(task.vocabulary() > 0 ? rows : 0);
  std::vector<uint8_t> mask(rows);
  task.Mask(options.length, absl::MakeSpan(mask));
  const auto text = [&](const std::vector<double>& numbers, const char* separator) {
    return absl::StrJoin(numbers, separator, [](std::string* out, double number) {
      absl::StrAppendFormat(out, "%.3g", number);
    });
  };
  Table table(
      {{.header = "input", .shrinks_to = 10}, {.header = "target of each", .shrinks_to = 10}});
  if (program.output == "csv") program.out() << "input,target\n";
  for (int64_t row = 0; row < options.count; ++row) {
    random::Stream stream(options.seed, random::Purpose::kPreview, /*step=*/0,
                          static_cast<uint32_t>(row));
    task.Sample(domain, stream,
                {.inputs = absl::MakeSpan(inputs),
                 .tokens = absl::MakeSpan(tokens),
                 .targets = absl::MakeSpan(targets)});
    std::vector<double> counted;
    for (size_t i = 0; i < rows; ++i) {
      if (mask[i] != 0) counted.push_back(targets[i]);
    }
    const std::string input =
        tokens.empty() ? text(inputs, " ") : tasks::numeric::RelationalText(inputs, tokens);
    const auto cells = [&]() -> std::vector<std::string> { return {input, text(counted, " ")}; };
    const auto json = [&]() -> nlohmann::ordered_json {
      return {{"input", inputs}, {"target", targets}, {"mask", mask}};
    };
    Print(program, cells, json, table);
  }
  if (program.output_is_table()) {
    program.Write(table);
    if (const std::optional<double> found = task.InDomainProbabilityBound(domain)) {
      // At large scales, squares overflow and the bound is 0 or not a number.
      const double bound = std::max(1e-300, *found);
      // Rounded up, because it is an upper bound.
      const double unit = std::pow(10, std::floor(std::log10(bound)) - 1);
      program.out() << absl::StreamFormat(
          "training could have drawn such a sample with a probability of at most %.2g\n",
          std::ceil(bound / unit) * unit);
    }
  }
  return kSuccess;
}

absl::StatusOr<int> SampleText(Program& program, const SampleOptions& options,
                               const tasks::TextTask& task) {
  RETURN_IF_ERROR(task.Check(options.length));
  Table table({{.header = "prompt", .shrinks_to = 10}, {.header = "answer", .shrinks_to = 10}});
  if (program.output == "csv") program.out() << "prompt,answer\n";
  for (int64_t row = 0; row < options.count; ++row) {
    random::Stream stream(options.seed, random::Purpose::kPreview, /*step=*/0,
                          static_cast<uint32_t>(row));
    const tasks::TextExample example = task.Sample(options.length, /*augmented=*/true, stream);
    const std::string prompt = task.Format(example.Prompt());
    const std::string answer = task.Format(example.Answer());
    const auto cells = [&]() -> std::vector<std::string> { return {prompt, answer}; };
    const auto json = [&]() -> nlohmann::ordered_json {
      return {{"input", example.Prompt()},
              {"target", example.Answer()},
              {"prompt", prompt},
              {"answer", answer}};
    };
    Print(program, cells, json, table);
  }
  if (program.output_is_table()) program.Write(table);
  return kSuccess;
}

// Returns examples of a part, shortest first, spread evenly over the lengths.
std::vector<const tasks::examples::Example*> Spread(const tasks::examples::Part& part,
                                                    int64_t count) {
  std::vector<const tasks::examples::Example*> chosen;
  const auto lengths = static_cast<int64_t>(part.size());
  int64_t place = 0;
  for (const auto& [length, group] : part) {
    const int64_t share = (place + 1) * count / lengths - place * count / lengths;
    ++place;
    for (int64_t i = 0; i < std::min(share, static_cast<int64_t>(group.examples.size())); ++i) {
      chosen.push_back(&group.examples[static_cast<size_t>(i)]);
    }
  }
  return chosen;
}

// Prints examples of the files that a specification names, as written and as a network reads them.
// An empty token stands for each value to predict; a language model also predicts an end token.
absl::StatusOr<int> SampleFiles(Program& program, const SampleOptions& options) {
  for (const char* option : {"--length", "--scale", "--validation", "--seed", "--set"}) {
    if (!options.command->Has(option)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        option,
        " is for a task by its name; the examples of a specification's file are shown as "
        "they are"));
  }
  ASSIGN_OR_RETURN(const auto resolved, ResolveFile(options.task));
  Table table({{.header = "task"},
               {.header = "part"},
               {.header = "length", .align = Table::Align::kRight},
               {.header = "input", .shrinks_to = 10},
               {.header = "target", .shrinks_to = 10},
               {.header = "the network reads", .shrinks_to = 10},
               {.header = "and answers", .shrinks_to = 10}});
  Records records{.columns = {"task", "part", "length", "input", "target", "reads", "answers"}};
  bool any = false;
  for (size_t t = 0; t < resolved.examples.sets.size(); ++t) {
    if (resolved.examples.sets[t] == nullptr) continue;
    any = true;
    const tasks::examples::ExampleSet& set = *resolved.examples.sets[t];
    const std::string& label = resolved.grid.specification.tasks(static_cast<int>(t)).label();
    std::optional<tasks::examples::FileText> text;
    if (resolved.grid.specification.tasks(static_cast<int>(t)).name() ==
        tasks::examples::ExamplesText().name) {
      text.emplace(resolved.examples.sets[t]);
    }
    const bool in_place = set.form == tasks::examples::Form::kNumbers && set.same_length;
    for (const bool test : {false, true}) {
      for (const auto* example : Spread(test ? set.test : set.training, options.count)) {
        std::vector<std::string> reads, answers;
        if (text.has_value()) {
          const tasks::TextExample tokens = text->TextOf(*example);
          for (const int32_t token : tokens.Prompt()) reads.push_back(absl::StrCat(token));
          for (const int32_t token : tokens.Answer()) answers.push_back(absl::StrCat(token));
        }
        for (uint32_t i = 0; !text.has_value() && i < example->inputs + example->targets; ++i) {
          const size_t place = example->first + i;
          const std::string value = set.form == tasks::examples::Form::kNumbers
                                        ? absl::StrFormat("%.4g", set.numbers[place])
                                        : absl::StrCat(set.symbols[place]);
          if (i < example->inputs) {
            reads.push_back(value);
          } else {
            const bool counts = set.Counts(*example, i - example->inputs);
            answers.push_back(counts ? value : absl::StrCat("(", value, ")"));
            if (!in_place) reads.push_back("_");
          }
        }
        const std::string part = test ? "test" : "train";
        const std::string input = set.ShowInput(*example), target = set.ShowTarget(*example);
        records.rows.push_back({label, part, int64_t{example->length}, input, target,
                                absl::StrJoin(reads, " "), absl::StrJoin(answers, " ")});
        table.AddRow({label, part, absl::StrCat(example->length), platform::PrintableLine(input),
                      platform::PrintableLine(target), absl::StrJoin(reads, " "),
                      absl::StrJoin(answers, " ")});
      }
    }
  }
  if (!any) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.task,
                     " names no file of examples; name a task, as in `lengthwise "
                     "sample ",
                     resolved.grid.specification.tasks(0).name(), "`"));
  }
  return program.output_is_table() ? program.Write(table) : program.Write(records);
}

absl::StatusOr<int> Sample(Program& program, const SampleOptions& options) {
  if (specification::FormatOfFile(options.task).ok() || !ReadySpecification(options.task).empty()) {
    return SampleFiles(program, options);
  }
  if (tasks::examples::IsExamples(options.task)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", options.task,
                     "\" is a file: name the specification that names it, as in "
                     "`lengthwise sample my.yaml`"));
  }
  catalogue::Parameters parameters;
  for (const std::string& setting : options.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set needs name=value, got \"", setting, "\""));
    }
    parameters.Set(setting.substr(0, equals), ParseValue(setting.substr(equals + 1)));
  }
  ASSIGN_OR_RETURN(auto task, tasks::CreateTask(options.task, parameters),
                   absl::InvalidArgumentError(_.message()));
  if (options.scale.has_value() && task->kind() != tasks::TaskKind::kRegression) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scale is for tasks on real numbers, as cumulative_sum; ", options.task, " has none"));
  }
  if (options.validation && task->kind() != tasks::TaskKind::kPuzzle) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--validation is for tasks with puzzles, as latin_square; ", options.task, " has none"));
  }
  if (task->kind() == tasks::TaskKind::kPuzzle) {
    return SamplePuzzles(program, options, static_cast<const tasks::PuzzleTask&>(*task));
  }
  if (task->kind() == tasks::TaskKind::kRegression) {
    return SampleNumbers(program, options, static_cast<const tasks::RegressionTask&>(*task));
  }
  if (task->kind() == tasks::TaskKind::kText) {
    return SampleText(program, options, static_cast<const tasks::TextTask&>(*task));
  }
  const auto* transduction = static_cast<const tasks::TransductionTask*>(task.get());
  const size_t inputs = transduction->InputLength(options.length);
  const size_t targets = transduction->OutputLength(options.length);
  std::vector<int32_t> input(inputs);
  std::vector<int32_t> target(targets);
  std::vector<uint8_t> mask(targets);
  Table table({{.header = "input", .shrinks_to = 10},
               {.header = "target", .shrinks_to = 10},
               {.header = "counted", .shrinks_to = 8}});
  bool all_count = true;
  if (program.output == "csv") program.out() << "input,target,mask\n";
  for (int64_t row = 0; row < options.count; ++row) {
    random::Stream stream(options.seed, random::Purpose::kPreview, /*step=*/0,
                          static_cast<uint32_t>(row));
    transduction->Sample(options.length, stream, absl::MakeSpan(input), absl::MakeSpan(target));
    transduction->Mask(target, absl::MakeSpan(mask));
    for (const uint8_t counts : mask) all_count = all_count && counts == 1;
    const auto cells = [&]() -> std::vector<std::string> {
      return {absl::StrJoin(input, " "), absl::StrJoin(target, " "),
              absl::StrJoin(std::vector<int>(mask.begin(), mask.end()), " ")};
    };
    const auto json = [&]() -> nlohmann::ordered_json {
      return {{"input", input}, {"target", target}, {"mask", mask}};
    };
    Print(program, cells, json, table);
  }
  if (!program.output_is_table()) return kSuccess;
  // A column in which every value is 1 is left out.
  return program.Write(all_count ? table.Without(2) : table);
}

}  // namespace

void AddSample(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "sample", "Prints examples of a task", kOfflineGroup,
      "lengthwise sample bucket_sort --length 8 --count 3\n"
      "lengthwise sample bucket_sort --length 20 --count 1000 --seed 7 --output json\n"
      "lengthwise sample my.yaml    # of the file of examples that it names",
      Sample);
  command.AddOption("task", options->task,
                    "A task's name, as `lengthwise tasks` lists them; or a specification whose "
                    "task is a file of examples");
  command
      .AddOption("--length N", options->length, "Input length; for text, the digits of an operand")
      .Range(1, 1'000'000)
      .ShowDefault();
  command.AddOption("--scale C", options->scale,
                    "Real numbers only: scale of an evaluation, a multiple of training's; default: "
                    "training's samples");
  command.AddOption("--count K", options->count, "Number of examples")
      .Range(0, 10'000'000)
      .ShowDefault();
  command.AddFlag("--validation", options->validation,
                  "Puzzles only: prints those of the validation, the same for every seed");
  command
      .AddOption("--seed S", options->seed, "Seed of the examples; equal seeds give equal examples")
      .NonNegative()
      .ShowDefault();
  command.AddOption("--set NAME=VALUE", options->settings,
                    "Parameter of the task; may be repeated");
  program.AddOutputOption(command);
  options->command = command;
}

}  // namespace lengthwise::client
