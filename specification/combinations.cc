#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/encodings/positions.h"
#include "specification/checks.h"
#include "specification/examples.h"
#include "specification/expand.h"
#include "specification/training_data.h"
#include "tasks/examples/entries.h"
#include "tasks/puzzles.h"
#include "tasks/regression.h"
#include "tasks/task.h"
#include "tasks/text_task.h"

namespace lengthwise::specification {
namespace {

// Budget for all checks of encodings at sample positions. Keeps a check below a second.
constexpr int64_t kMostOperations = int64_t{1} << 26;

// The server reads the example lengths of these files again for each task.
constexpr int kMostFilesOfExamples = 64;

// Adds the input and output lengths that the task produces for the specification's lengths.
void TakeSequences(const tasks::TransductionTask& task,
                   const v1::ExperimentSpecification& specification, SequenceRange& range) {
  const auto take = [&](int32_t n) {
    if (n < 1) return;  // reported elsewhere
    range.Take(task.InputLength(n) + task.OutputLength(n));
  };
  const v1::LengthRange& lengths = specification.training().lengths();
  take(lengths.min());
  take(lengths.max());
  // Some tasks shorten every second length, so both the longest and the one before it count.
  if (lengths.min() < lengths.max()) take(lengths.max() - 1);
  for (const auto& [field, evaluated] : EvaluatedFields(specification.evaluation())) {
    absl::c_for_each(evaluated, take);
  }
  for (const v1::TokenSequence& input : specification.evaluation().attention_inputs()) {
    take(input.tokens_size());
  }
}

// Every input that attention is recorded for must be a valid input of every task: its tokens are
// from 0 to `size` - 1, and `check_count` reports a wrong number of them, with the field of the
// tokens.
void CheckInputs(const v1::Evaluation& evaluation, const std::string& task, int32_t size,
                 absl::FunctionRef<void(const std::string& field, int tokens)> check_count,
                 Findings& findings) {
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const v1::TokenSequence& input = evaluation.attention_inputs(i);
    const std::string path = absl::StrCat("evaluation.attention_inputs[", i, "]");
    if (!input.numbers().empty() || !input.text().empty()) {
      findings.Add(path + (input.text().empty() ? ".numbers" : ".text"), "\"", task,
                   "\" reads tokens: give tokens instead");
      continue;
    }
    const std::string field = path + ".tokens";
    check_count(field, input.tokens_size());
    for (const int32_t token : input.tokens()) {
      if (token >= 0 && token < size) continue;
      findings.Add(field, "got ", token, ", \"", task, "\" has input tokens from 0 to ", size - 1);
      break;
    }
  }
}

void CheckPuzzles(const v1::ExperimentSpecification& specification, const std::string& task,
                  const tasks::PuzzleTask& puzzles, Findings& findings) {
  const v1::Training& training = specification.training();
  const int64_t cells = puzzles.cells();
  if (training.lengths().min() != cells || training.lengths().max() != cells) {
    findings.Add("training.lengths", "got ", training.lengths().min(), "..",
                 training.lengths().max(), ", \"", task, "\" has puzzles of ", cells,
                 " tokens: set ", cells, "..", cells);
  }
  if (training.examples() != puzzles.training_puzzles()) {
    findings.Add("training.examples", "got ", training.examples(), ", \"", task, "\" trains on ",
                 puzzles.training_puzzles(), " puzzles (training_puzzles): set the same number");
  }
  const v1::Evaluation& evaluation = specification.evaluation();
  // For puzzles, the evaluated lengths count conditions.
  const auto conditions = static_cast<int32_t>(puzzles.conditions().size());
  for (const auto& [field, lengths] : EvaluatedFields(evaluation)) {
    const auto beyond = absl::c_find_if(lengths, [&](int32_t n) { return n > conditions; });
    if (beyond == lengths.end()) continue;
    findings.Add(field, "got ", *beyond, ", \"", task, "\" has conditions 1 to ", conditions);
  }
  const auto check_count = [&](const std::string& field, int tokens) {
    if (tokens == cells) return;
    findings.Add(field, "got ", tokens, " tokens, \"", task, "\" has puzzles of ", cells,
                 ", row by row");
  };
  CheckInputs(evaluation, task, puzzles.token_values(), check_count, findings);
}

// For regressions, "evaluation.lengths" are scales and "training.lengths" counts numbers.
void CheckRegression(const v1::ExperimentSpecification& specification, const std::string& task,
                     const tasks::RegressionTask& regression, Findings& findings) {
  const v1::Training& training = specification.training();
  const v1::Evaluation& evaluation = specification.evaluation();
  const auto check = [&](const std::string& field, int64_t n, int64_t scale) {
    const absl::Status status = regression.Check({.n = n, .scale = static_cast<double>(scale)});
    if (!status.ok()) {
      findings.Add(field, "\"", task, "\": ", absl::string_view(status.message()));
    }
    return status.ok();
  };
  for (const int32_t n : {training.lengths().min(), training.lengths().max()}) {
    if (n < 1) return;  // reported elsewhere
    if (!check("training.lengths", n, 1)) return;
  }
  for (const auto& [field, scales] : EvaluatedFields(evaluation)) {
    for (const int32_t scale : scales) {
      if (scale >= 1 && !check(field, training.lengths().max(), scale)) break;
    }
  }
  if (evaluation.has_projection() && training.lengths().min() != training.lengths().max()) {
    findings.Add("evaluation.projection", "\"", task, "\" evaluates vectors of all lengths ",
                 training.lengths().min(), "..", training.lengths().max(),
                 ", whose activations have no common shape: leave it out, or train on "
                 "one length");
  }
  const int64_t rows = regression.Rows(training.lengths().max());
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const v1::TokenSequence& input = evaluation.attention_inputs(i);
    // For regressions, tokens are read as whole numbers.
    const bool has_numbers = !input.numbers().empty();
    const std::string field =
        absl::StrCat("evaluation.attention_inputs[", i, "].", has_numbers ? "numbers" : "tokens");
    const int given = has_numbers ? input.numbers_size() : input.tokens_size();
    if (regression.vocabulary() > 0) {
      findings.Add(field, "\"", task,
                   "\" reads words and numbers, so inputs cannot be given; set "
                   "evaluation.attention_lengths to record maps of samples");
    } else if (given != rows) {
      findings.Add(field, "got ", given, " numbers, \"", task, "\" has inputs of ", rows,
                   " numbers, including the scratchpad's 0");
    }
  }
}

// Checks each task against the rest of the specification. Returns the range of its sequence
// lengths.
SequenceRange CheckTasks(const Catalogues& catalogues,
                         const v1::ExperimentSpecification& specification, const Choices& tasks,
                         Findings& findings) {
  SequenceRange range;
  const Choice* first = nullptr;
  int files_of_examples = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (!tasks[t]) continue;
    const tasks::TaskEntry& entry = *catalogues.tasks[tasks[t]->index];
    if (first == nullptr) first = &*tasks[t];
    if (entry.kind != catalogues.tasks[first->index]->kind) {
      findings.Add(absl::StrCat("tasks[", t, "]"), "\"", entry.name, "\" and \"",
                   catalogues.tasks[first->index]->name,
                   "\" are different kinds of task; write a specification for each");
      continue;
    }
    if (specification.evaluation().has_validation() &&
        (entry.kind == tasks::TaskKind::kPuzzle || tasks::examples::IsExamples(entry.name))) {
      findings.Add("evaluation.validation", "\"", entry.name,
                   "\" has no other sequences than those of the "
                   "evaluation; leave it out, or set evaluation.select");
    }
    if (tasks::examples::IsExamples(entry.name)) {
      if (++files_of_examples > kMostFilesOfExamples) {
        findings.Add("tasks", "more than ", kMostFilesOfExamples,
                     " tasks with files of examples; split them over several specifications");
        break;
      }
      range.Take(CheckExamples(specification, absl::StrCat("tasks[", t, "]"), entry,
                               tasks[t]->parameters, findings));
      continue;
    }
    const std::unique_ptr<tasks::Task> created = entry.create(tasks[t]->parameters);
    switch (entry.kind) {
      case tasks::TaskKind::kTransduction: {
        const auto& task = static_cast<const tasks::TransductionTask&>(*created);
        TakeSequences(task, specification, range);
        const auto check_count = [&](const std::string& field, int tokens) {
          if (task.InputLength(tokens) == tokens) return;
          findings.Add(field, "\"", entry.name, "\" has no inputs of ", tokens,
                       " tokens; a length that it has is ", task.InputLength(tokens));
        };
        CheckInputs(specification.evaluation(), entry.name, task.input_size(), check_count,
                    findings);
        break;
      }
      case tasks::TaskKind::kPuzzle: {
        const auto& task = static_cast<const tasks::PuzzleTask&>(*created);
        range.Take(task.cells());
        CheckPuzzles(specification, entry.name, task, findings);
        break;
      }
      case tasks::TaskKind::kRegression: {
        const auto& task = static_cast<const tasks::RegressionTask&>(*created);
        const v1::LengthRange& lengths = specification.training().lengths();
        for (const int32_t n : {lengths.min(), lengths.max()}) {
          range.Take(task.Rows(std::max(1, n)));
        }
        CheckRegression(specification, entry.name, task, findings);
        if (task.vocabulary() > 0 &&
            absl::c_any_of(specification.networks(), [](const v1::Component& network) {
              return network.name() == models::kPythonNetwork;
            })) {
          findings.Add(absl::StrCat("tasks[", t, "]"), "\"", entry.name,
                       "\" reads words and numbers, which the network "
                       "\"python\" does not");
        }
        break;
      }
      case tasks::TaskKind::kText: {
        const auto& task = static_cast<const tasks::TextTask&>(*created);
        range.longest =
            std::max(range.longest,
                     CheckText(specification, absl::StrCat("tasks[", t, "]"), task, findings));
        if (task.has_ids()) {
          range.TakeId(task.LargestId(specification.training().lengths().max()));
          for (const auto& [field, sizes] : EvaluatedFields(specification.evaluation())) {
            for (const int32_t size : sizes) range.TakeId(task.LargestId(size));
          }
          continue;
        }
        break;
      }
    }
    range.TakeId(-1);
  }
  range.open_ended = AreAll(tasks::TaskKind::kText, catalogues, tasks);
  return range;
}

// Returns true if tokens that attend to each other are numbered as one sequence.
bool HasOneRowOfPositions(const v1::Training& training) {
  return !training.has_packing() ||
         training.packing().attend_across() != RestartsPositions(training.packing());
}

// Returns true if the encoding depends on the number of tokens between two tokens rather than on
// their positions: it shares one term among all pairs at the same distance, up to a "max_distance";
// or it is the relative encoding and positions are consecutive; or it draws distances as "offsets".
bool CountsPlaces(const models::EncodingEntry& entry, const catalogue::Parameters& parameters) {
  const auto has = [&](absl::string_view name) { return parameters.values().contains(name); };
  if (!entry.uses_positions()) return has("max_distance");
  return (has("clamped_table") && models::PositionPolicy(parameters).consecutive()) ||
         (has("distances") && parameters.String("distances") == "offsets");
}

void CheckNetworkWithEncoding(const Catalogues& catalogues,
                              const v1::ExperimentSpecification& specification,
                              const models::NetworkEntry& network, const Choice& choice,
                              const Choice& encoding, const SequenceRange& range,
                              int64_t operations, const std::string& field, Findings& findings) {
  const models::EncodingEntry& entry = *catalogues.encodings[encoding.index];
  models::EncodingContext context = network.encoding_context(choice.parameters);
  context.longest_sequence = range.longest;
  context.shortest_sequence = range.shortest;
  context.largest_id = range.largest_id;
  context.largest_id_line = range.largest_id_line;
  context.open_ended |= range.open_ended;
  context.operations = operations;
  std::vector<catalogue::Problem> problems;
  models::CheckEncoding(entry, encoding.parameters, context, field, problems);
  if (!HasOneRowOfPositions(specification.training()) && CountsPlaces(entry, encoding.parameters)) {
    AddProblem(
        problems, field,
        "uses the distance between tokens, so positions must restart exactly where attention "
        "does; remove training.packing.reset_positions or use another encoding");
  }
  findings.AddAll(problems);
}

// Reports what a user's module does not do.
void CheckPythonNetwork(const v1::ExperimentSpecification& specification, const std::string& path,
                        Findings& findings) {
  const v1::Evaluation& evaluation = specification.evaluation();
  const auto refuse = [&](bool is_set, absl::string_view field, absl::string_view what) {
    if (!is_set) return;
    findings.Add(field, what, " \"", models::kPythonNetwork, "\" (", path,
                 "): leave it out, or give this network a specification of its own");
  };
  const std::string& precision = specification.training().precision();
  refuse(precision == "bfloat16" || precision == "tf32", "training.precision",
         absl::StrCat(precision, " is not for the network"));
  refuse(evaluation.has_projection(), "evaluation.projection",
         "there are no activations of the network");
  refuse(!evaluation.embedding_noise().empty(), "evaluation.embedding_noise",
         "there are no embeddings of the network");
}

// Reports networks and encodings of which the grid has no pair (expand.h).
void CheckPairs(const v1::ExperimentSpecification& specification, Findings& findings) {
  const auto& networks = specification.networks();
  const auto& encodings = specification.encodings();
  if (networks.empty() || encodings.empty()) return;  // CheckGridSize says so
  for (int i = 0; i < networks.size(); ++i) {
    if (absl::c_any_of(encodings, [&](const auto& one) { return Fits(networks[i], one); }))
      continue;
    findings.Add(absl::StrCat("networks[", i, "]"),
                 networks[i].name() == models::kPythonNetwork
                     ? "\"python\" takes the encoding \"own\": add it to `encodings`"
                 : models::ReadsInOrder(networks[i].name())
                     ? absl::StrCat("\"", networks[i].name(),
                                    "\" takes the encoding \"none\": add it to `encodings`")
                     : "takes an encoding other than \"own\": add one to `encodings`");
  }
  for (int e = 0; e < encodings.size(); ++e) {
    if (absl::c_any_of(networks, [&](const auto& one) { return Fits(one, encodings[e]); }))
      continue;
    findings.Add(
        absl::StrCat("encodings[", e, "]"),
        encodings[e].name() == "own"
            ? "\"own\" is for the network \"python\", of which there is none"
        : absl::c_any_of(networks,
                         [](const auto& one) { return one.name() == models::kPythonNetwork; })
            ? "\"python\" takes the encoding \"own\" and, with `heads`, those that "
              "only add to the logits: remove this one"
            : absl::StrCat("\"", encodings[e].name(), "\" has no effect in \"", networks[0].name(),
                           "\", which reads tokens in their order and takes \"none\": "
                           "remove this one"));
  }
}

// Returns the names of the networks that can learn the kind of task: "a, b or c".
std::string NetworksFor(const Catalogues& catalogues, tasks::TaskKind kind) {
  std::vector<std::string> names;
  for (const models::NetworkEntry* network : catalogues.networks) {
    if (network->Learns(kind)) names.push_back(absl::StrCat("\"", network->name, "\""));
  }
  return names.empty() ? "no network" : catalogue::Alternatives(names);
}

// Names the form of a task that the network can learn, if there is one: with or without "_text".
std::string OtherForm(const Catalogues& catalogues, const models::NetworkEntry& network,
                      const std::string& task) {
  for (const tasks::TaskEntry* other : catalogues.tasks) {
    if (!network.Learns(other->kind)) continue;
    if (other->name != task + "_text" && other->name + "_text" != task) continue;
    return absl::StrCat("; for this network the task is \"", other->name, "\"");
  }
  return "";
}

}  // namespace

std::optional<int32_t> SeenUpTo(const Catalogues& catalogues, const Choices& tasks) {
  std::optional<int32_t> smallest;
  for (const auto& task : tasks) {
    if (!task || !catalogues.tasks[task->index]->seen_up_to) return std::nullopt;
    const int32_t own = *catalogues.tasks[task->index]->seen_up_to;
    smallest = std::min(smallest.value_or(own), own);
  }
  return smallest;
}

bool AreAll(tasks::TaskKind kind, const Catalogues& catalogues, const Choices& tasks) {
  return !tasks.empty() && std::all_of(tasks.begin(), tasks.end(), [&](const auto& task) {
    return task.has_value() && catalogues.tasks[task->index]->kind == kind;
  });
}

void CheckSchedule(const models::ScheduleEntry& entry, const Choice& choice,
                   const v1::Training& training, Findings& findings) {
  // A missing or wrong number of steps is reported elsewhere.
  if (entry.check == nullptr || training.steps() < 1) return;
  std::vector<catalogue::Problem> problems;
  entry.check(choice.parameters,
              {.steps = training.steps(), .steps_per_epoch = StepsPerEpoch(training)},
              "training.schedule", problems);
  findings.AddAll(problems);
}

void CheckCombinations(const Catalogues& catalogues,
                       const v1::ExperimentSpecification& specification, const Choices& tasks,
                       const Choices& networks, const Choices& encodings,
                       const OverriddenNetworks& overridden, Findings& findings) {
  const SequenceRange range = CheckTasks(catalogues, specification, tasks, findings);
  if (absl::c_all_of(networks, [](const auto& one) { return one.has_value(); }) &&
      absl::c_all_of(encodings, [](const auto& one) { return one.has_value(); })) {
    CheckPairs(specification, findings);
  }
  const auto pairs = static_cast<int64_t>(std::max<size_t>(1, networks.size() * encodings.size()));
  const int64_t operations = kMostOperations / pairs;
  for (size_t i = 0; i < networks.size(); ++i) {
    if (!networks[i]) continue;
    const models::NetworkEntry& network = *catalogues.networks[networks[i]->index];
    const std::string path = absl::StrCat("networks[", i, "]");
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (!tasks[t]) continue;
      const tasks::TaskEntry& task = *catalogues.tasks[tasks[t]->index];
      if (!network.Learns(task.kind)) {
        findings.Add(path, "\"", network.name, "\" cannot learn \"", task.name, "\" (tasks[", t,
                     "]), expected ", NetworksFor(catalogues, task.kind),
                     OtherForm(catalogues, network, task.name));
      }
    }
    const auto is_sound = [&](const Choice& choice, const std::string& field) {
      std::vector<catalogue::Problem> problems;
      if (network.check != nullptr) network.check(choice.parameters, field, problems);
      const v1::Training& training = specification.training();
      if (SeesWholePrompts(choice.parameters) && training.has_packing() &&
          !CountsAnswersApart(training.packing())) {
        AddProblem(problems, absl::StrCat(field, ".", PromptParameter(choice.parameters)),
                   "needs whole prompts, so a loss on answers only and separate examples: "
                   "set training.packing.answers_only: true, and remove attend_across and "
                   "reset_positions");
      }
      findings.AddAll(problems);
      return problems.empty();
    };
    if (network.name == models::kPythonNetwork) CheckPythonNetwork(specification, path, findings);
    if (!is_sound(*networks[i], path) || network.encoding_context == nullptr) continue;
    for (size_t e = 0; e < encodings.size(); ++e) {
      if (!encodings[e] || !Fits(specification.networks(static_cast<int>(i)),
                                 specification.encodings(static_cast<int>(e)))) {
        continue;
      }
      const auto own = overridden.find({i, e});
      const bool changed = own != overridden.end();
      if (changed && !is_sound(own->second.choice, own->second.path)) continue;
      const Choice& choice = changed ? own->second.choice : *networks[i];
      CheckNetworkWithEncoding(catalogues, specification, network, choice, *encodings[e], range,
                               operations, absl::StrCat("encodings[", e, "]"), findings);
    }
  }
}

}  // namespace lengthwise::specification
