// `lengthwise check SPEC`: tries the user's PyTorch modules of a specification, without a server.
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "catalogue/entry.h"
#include "client/commands/commands.h"
#include "client/commands/specification_file.h"
#include "models/networks/catalogue.h"
#include "models/python_network/process.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "specification/expand.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/example_set.h"
#include "tasks/examples/file_text.h"
#include "tasks/puzzles.h"
#include "tasks/regression.h"
#include "tasks/task.h"
#include "tasks/text_task.h"

namespace lengthwise::client {
namespace {

// What a module is made for and called with.
struct TaskShape {
  int64_t vocabulary = 0;  // 0 for numbers
  int64_t outputs = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  // True if the module continues text, so that no token may depend on later ones.
  bool is_causal = false;
};

TaskShape ShapeOfText(const tasks::TextTask& text, const v1::LengthRange& lengths) {
  return {text.vocabulary(), text.vocabulary(), 0,
          text.LongestTrainingExample(lengths.min(), lengths.max()), true};
}

// The shape of the task's longest training sequences. A file's inputs and targets are taken to be
// as long as the length.
absl::StatusOr<TaskShape> ShapeOf(const v1::Component& task, const v1::LengthRange& lengths,
                                  const std::shared_ptr<const tasks::examples::ExampleSet>& set) {
  const tasks::TaskEntry& entry = *tasks::FindTask(task.name());
  const catalogue::Parameters parameters = specification::ParametersOf(task);
  const int64_t length = lengths.max();
  if (tasks::examples::IsExamples(entry.name)) {
    if (set == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("tasks: the file of ", task.label(), " is needed to check networks"));
    }
    if (entry.kind == tasks::TaskKind::kText) {
      return ShapeOfText(tasks::examples::FileText(set), lengths);
    }
    if (set->form == tasks::examples::Form::kNumbers) {
      return TaskShape{0, 1, set->same_length ? 0 : length, length};
    }
    return TaskShape{set->input_symbols + 1, set->target_symbols, length, length};
  }
  std::vector<catalogue::Problem> problems;
  const std::unique_ptr<tasks::Task> created =
      entry.create(catalogue::Resolve(entry, parameters, "task", problems));
  switch (entry.kind) {
    case tasks::TaskKind::kPuzzle: {
      const auto& puzzle = static_cast<const tasks::PuzzleTask&>(*created);
      return TaskShape{puzzle.token_values(), puzzle.classes(), puzzle.cells() - 1, 1};
    }
    case tasks::TaskKind::kRegression: {
      const auto& regression = static_cast<const tasks::RegressionTask&>(*created);
      return TaskShape{0, 1, 0, regression.Rows(length)};
    }
    case tasks::TaskKind::kText:
      return ShapeOfText(static_cast<const tasks::TextTask&>(*created), lengths);
    case tasks::TaskKind::kTransduction:
      break;
  }
  const auto& transduction = static_cast<const tasks::TransductionTask&>(*created);
  return TaskShape{transduction.input_size() + 1, transduction.output_size(),
                   transduction.InputLength(length), transduction.OutputLength(length)};
}

// Prints what the process says of the module after `subject`; returns whether nothing is wrong.
bool CheckNetwork(Program& program, const std::string& subject, const v1::Component& network,
                  const ExampleFile& archive, const v1::ExperimentSpecification& specification,
                  const TaskShape& shape) {
  const catalogue::Parameters parameters = specification::ParametersOf(network);
  const std::string& arguments = parameters.String("arguments");
  const bool own_positions =
      absl::c_any_of(specification.encodings(), [&](const v1::Component& encoding) {
        const auto is = [&](const char* name, const char* value) {
          const auto found = encoding.parameters().find(name);
          return found != encoding.parameters().end() && found->second.string_value() == value;
        };
        return specification::Fits(network, encoding) &&
               (is("draws", "per_sequence") || is("positions", "data"));
      });
  const auto tell = [&](const std::string& line) {
    program.out() << subject << ": " << line << "\n";
  };
  try {
    models::PythonProcess process(models::DefaultInterpreter(), absl::Minutes(10));
    const nlohmann::json answer =
        process.Call({{"do", "check"},
                      {"archive", absl::StrCat("/proc/", getpid(), "/fd/", archive.made->get())},
                      {"class", parameters.String("class")},
                      {"arguments", nlohmann::json::parse(arguments.empty() ? "{}" : arguments)},
                      {"vocabulary", shape.vocabulary},
                      {"outputs", shape.outputs},
                      {"dtype", specification.training().precision()},
                      {"device", models::DefaultPythonDevice()},
                      {"heads", static_cast<int64_t>(parameters.Double("heads"))},
                      {"own_positions", own_positions},
                      {"rows", specification.training().batch_size()},
                      {"numbers", shape.vocabulary == 0},
                      {"maps", specification.evaluation().attention_lengths_size() > 0},
                      {"tokens", shape.input_tokens},
                      {"outputs_read", shape.output_tokens},
                      {"causal", shape.is_causal}});
    for (const auto& line : answer.at("lines")) tell(line.get<std::string>());
    for (const auto& line : answer.at("wrong"))
      tell(absl::StrCat("wrong: ", line.get<std::string>()));
    return answer.at("wrong").empty();
  } catch (const models::NetworkError& error) {
    tell(absl::StrCat("wrong: ", error.what()));
    return false;
  }
}

}  // namespace

void AddCheck(Command root, Program& program) {
  auto path = std::make_shared<std::string>();
  const Command command = program.AddCommand(
      root, "check", "Tries your own networks on random input before you train them", kOfflineGroup,
      "lengthwise check my.yaml", [&program, path]() -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(const ResolvedFile read, ResolveFile(*path));
        const v1::ExperimentSpecification& specification = read.grid.specification;
        bool is_checked = false, is_sound = true;
        for (const v1::Component& network : specification.networks()) {
          if (network.name() != models::kPythonNetwork) continue;
          const std::string sha256 = specification::ParametersOf(network).String("file_sha256");
          const auto file = absl::c_find_if(read.examples.files, [&](const ExampleFile& one) {
            return one.made != nullptr && one.sha256 == sha256;
          });
          if (file == read.examples.files.end()) continue;
          for (int i = 0; i < specification.tasks_size(); ++i) {
            const v1::Component& task = specification.tasks(i);
            ASSIGN_OR_RETURN(const TaskShape shape,
                             ShapeOf(task, specification.training().lengths(),
                                     read.examples.sets[static_cast<size_t>(i)]));
            const std::string subject = specification.tasks_size() == 1
                                            ? network.label()
                                            : absl::StrCat(network.label(), ", ", task.label());
            is_checked = true;
            is_sound =
                CheckNetwork(program, subject, network, *file, specification, shape) && is_sound;
          }
        }
        if (!is_checked) {
          return absl::InvalidArgumentError(
              absl::StrCat(*path, " has no network `python` to check"));
        }
        return is_sound ? kSuccess : kFailure;
      });
  command.AddOption("spec", *path, "A specification, as for `lengthwise validate`");
}

}  // namespace lengthwise::client
