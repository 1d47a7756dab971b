#include "worker/training/blueprint.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/networks/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "platform/status_macros.h"
#include "specification/training_data.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/file_text.h"
#include "tasks/task.h"

namespace lengthwise::worker::training {
namespace {

using Problems = std::vector<catalogue::Problem>;

catalogue::Parameters GivenParameters(const v1::Component& component, absl::string_view path,
                                      Problems& problems) {
  catalogue::Parameters given;
  for (const auto& [name, value] : component.parameters()) {
    switch (value.kind_case()) {
      case google::protobuf::Value::kBoolValue:
        given.Set(name, value.bool_value());
        break;
      case google::protobuf::Value::kNumberValue:
        given.Set(name, value.number_value());
        break;
      case google::protobuf::Value::kStringValue:
        given.Set(name, value.string_value());
        break;
      default:
        problems.push_back({absl::StrCat(path, ".", name), "must be a number, text or a boolean"});
    }
  }
  return given;
}

template <typename Entry>
struct Chosen {
  const Entry* entry = nullptr;
  Blueprint::Choice choice;
};

// Looks up the component and resolves its parameters. The entry is null if no component has this
// name.
template <typename Entry>
Chosen<Entry> Choose(absl::Span<const Entry* const> entries, const v1::Component& component,
                     absl::string_view kind, Problems& problems) {
  const std::vector<const catalogue::Entry*> names(entries.begin(), entries.end());
  const std::optional<size_t> index =
      catalogue::Find(names, component.name(), kind, kind, problems);
  if (!index.has_value()) return {};
  const catalogue::Parameters given = GivenParameters(component, kind, problems);
  return {entries[*index],
          {component.name(), catalogue::Resolve(*entries[*index], given, kind, problems)}};
}

void Require(bool fulfilled, absl::string_view field, absl::string_view what, Problems& problems) {
  if (!fulfilled) problems.push_back({std::string(field), std::string(what)});
}

template <typename Lengths>
bool AllPositive(const Lengths& lengths) {
  return std::all_of(lengths.begin(), lengths.end(), [](int32_t length) { return length >= 1; });
}

void CheckTraining(const v1::Training& training, Problems& problems) {
  Require(training.steps() >= 1, "training.steps", "must be at least 1", problems);
  Require(training.batch_size() >= 1, "training.batch_size", "must be at least 1", problems);
  Require(1 <= training.lengths().min() && training.lengths().min() <= training.lengths().max(),
          "training.lengths", "must have 1 <= min <= max", problems);
  Require(training.clip_norm() >= 0 && std::isfinite(training.clip_norm()), "training.clip_norm",
          "must be a number of at least 0", problems);
  Require(training.report_every_steps() >= 1, "training.report_every_steps", "must be at least 1",
          problems);
  Require(training.checkpoint_every_steps() >= 0, "training.checkpoint_every_steps",
          "must be at least 0", problems);
  Require(training.checkpoint_every_seconds() >= 0 &&
              std::isfinite(training.checkpoint_every_seconds()),
          "training.checkpoint_every_seconds", "must be a number of at least 0", problems);
  Require(training.precision() == "float32" || training.precision() == "float64" ||
              training.precision() == "bfloat16" || training.precision() == "tf32",
          "training.precision", "must be \"float32\", \"float64\", \"bfloat16\" or \"tf32\"",
          problems);
  Require(training.stop_after_seconds() >= 0 && std::isfinite(training.stop_after_seconds()),
          "training.stop_after_seconds", "must be a number of at least 0", problems);
  Require(training.stop_at_accuracy() >= 0 && training.stop_at_accuracy() <= 1,
          "training.stop_at_accuracy", "must be from 0 to 1", problems);
  const int64_t lengths = int64_t{training.lengths().max()} - training.lengths().min() + 1;
  Require(training.examples() == 0 || training.examples() >= lengths, "training.examples",
          "must be 0 or at least one for each of training.lengths", problems);
}

models::ScheduleContext ScheduleContextOf(const Blueprint& blueprint) {
  return {.steps = blueprint.training.steps(),
          .steps_per_epoch = blueprint.batches.steps_per_epoch()};
}

void CheckEvaluation(const v1::Evaluation& evaluation, Problems& problems) {
  Require(AllPositive(evaluation.lengths()), "evaluation.lengths", "must be at least 1", problems);
  Require(AllPositive(evaluation.interval_lengths()), "evaluation.interval_lengths",
          "must be at least 1", problems);
  Require(AllPositive(evaluation.attention_lengths()), "evaluation.attention_lengths",
          "must be at least 1", problems);
  Require(AllPositive(evaluation.validation().lengths()), "evaluation.validation.lengths",
          "must be at least 1", problems);
  Require(evaluation.sequences() >= 1, "evaluation.sequences", "must be at least 1", problems);
  Require(evaluation.every_steps() >= 0, "evaluation.every_steps", "must be at least 0", problems);
  Require(evaluation.every_steps() == 0 || evaluation.interval_sequences() >= 1,
          "evaluation.interval_sequences", "must be at least 1", problems);
  Require(evaluation.attention_sequences() >= 0, "evaluation.attention_sequences",
          "must be at least 0", problems);
  Require(std::all_of(evaluation.embedding_noise().begin(), evaluation.embedding_noise().end(),
                      [](double deviation) { return deviation > 0 && std::isfinite(deviation); }),
          "evaluation.embedding_noise", "must be numbers above 0", problems);
  const v1::ProjectionSettings& projection = evaluation.projection();
  if (projection.lengths().empty()) return;
  Require(AllPositive(projection.lengths()), "evaluation.projection.lengths", "must be at least 1",
          problems);
  Require(projection.fitted_length() >= 1, "evaluation.projection.fitted_length",
          "must be at least 1", problems);
  Require(projection.sequences() >= 1, "evaluation.projection.sequences", "must be at least 1",
          problems);
}

template <typename Sizes>
void CheckSizes(absl::string_view field, const Sizes& sizes, const tasks::TextTask& task,
                Problems& problems) {
  for (const int32_t size : sizes) {
    const absl::Status status = task.Check(size);
    Require(status.ok(), field, status.message(), problems);
  }
}

void CheckText(const data::TextExamples& text, const v1::Training& training,
               const v1::Evaluation& evaluation, Problems& problems) {
  const int64_t tokens = training.packing().tokens();
  const v1::LengthRange& lengths = training.lengths();
  const absl::Status trained = text.task().CheckTraining(lengths.min(), lengths.max());
  Require(trained.ok(), "training.lengths", trained.message(), problems);
  CheckSizes("evaluation.lengths", evaluation.lengths(), text.task(), problems);
  CheckSizes("evaluation.interval_lengths", evaluation.interval_lengths(), text.task(), problems);
  CheckSizes("evaluation.attention_lengths", evaluation.attention_lengths(), text.task(), problems);
  if (!problems.empty()) return;
  Require(tokens >= text.task().LongestTrainingExample(lengths.min(), lengths.max()),
          "training.packing.tokens", "must be at least the length of the longest example",
          problems);
  Require(evaluation.projection().lengths().empty(), "evaluation.projection",
          "must be empty for text", problems);
  Require(evaluation.embedding_noise().empty(), "evaluation.embedding_noise",
          "must be empty for text", problems);
  Require(evaluation.training_examples() == 0, "evaluation.training_examples", "must be 0 for text",
          problems);
}

void CheckFileExamples(const data::FileExamples& examples, const v1::Training& training,
                       const v1::Evaluation& evaluation, Problems& problems) {
  const std::vector<int64_t> weights = examples.Weights(training.lengths());
  Require(std::any_of(weights.begin(), weights.end(), [](int64_t weight) { return weight > 0; }),
          "training.lengths", "must have training examples in the task's file", problems);
  Require(training.examples() == 0, "training.examples", "must be 0 for a file's examples",
          problems);
  const auto check = [&](absl::string_view field, const auto& lengths) {
    for (const int32_t n : lengths) {
      Require(examples.EvaluationSequences(n, 1) > 0, field,
              absl::StrCat("must have test examples in the task's file; ", n, " has none"),
              problems);
    }
  };
  check("evaluation.lengths", evaluation.lengths());
  check("evaluation.interval_lengths", evaluation.interval_lengths());
  check("evaluation.attention_lengths", evaluation.attention_lengths());
  check("evaluation.projection.lengths", evaluation.projection().lengths());
  if (!evaluation.projection().lengths().empty()) {
    check("evaluation.projection.fitted_length",
          std::vector<int32_t>{evaluation.projection().fitted_length()});
  }
}

// What a user's module does not do (specification/combinations.cc).
void CheckPythonNetwork(const Blueprint& blueprint, Problems& problems) {
  Require(
      blueprint.training.precision() == "float32" || blueprint.training.precision() == "float64",
      "training.precision", "must be \"float32\" or \"float64\" for the network \"python\"",
      problems);
  const v1::Evaluation& evaluation = blueprint.evaluation;
  Require(evaluation.projection().lengths().empty() && evaluation.embedding_noise().empty(),
          "evaluation", "must have no projection or noise for the network \"python\"", problems);
}

int64_t LongestSequence(const Blueprint& blueprint) {
  int64_t longest = blueprint.source().LongestTraining(blueprint.training);
  const auto take = [&](int64_t n) {
    longest = std::max(longest, blueprint.source().SequenceTokens(n));
  };
  for (const int32_t n : blueprint.evaluation.lengths()) take(n);
  for (const int32_t n : blueprint.evaluation.interval_lengths()) take(n);
  for (const int32_t n : blueprint.evaluation.attention_lengths()) take(n);
  for (const v1::TokenSequence& input : blueprint.evaluation.attention_inputs()) {
    // Inputs that the task does not accept never become sequences; they are reported later.
    if (const auto given = blueprint.source().Given(input); given.ok()) {
      take(given->length);
    }
  }
  if (!blueprint.evaluation.projection().lengths().empty()) {
    take(blueprint.evaluation.projection().fitted_length());
    for (const int32_t n : blueprint.evaluation.projection().lengths()) take(n);
  }
  return longest;
}

// -1 if the task has no ids.
int64_t LargestId(const Blueprint& blueprint, const tasks::examples::ExampleSet* set) {
  if (set != nullptr && !set->positions.empty()) {
    return *std::max_element(set->positions.begin(), set->positions.end());
  }
  if (blueprint.text == nullptr || !blueprint.text->task().has_ids()) return -1;
  int64_t largest = blueprint.text->task().LargestId(blueprint.training.lengths().max());
  const v1::Evaluation& evaluation = blueprint.evaluation;
  for (const auto* sizes :
       {&evaluation.lengths(), &evaluation.interval_lengths(), &evaluation.attention_lengths()}) {
    for (const int32_t size : *sizes) {
      largest = std::max(largest, blueprint.text->task().LargestId(size));
    }
  }
  return largest;
}

absl::Status Refuse(const Problems& problems) {
  std::string message = "this worker cannot run the trial:";
  for (const catalogue::Problem& problem : problems) {
    absl::StrAppend(&message, " ", problem.field, ": ", problem.description, ";");
  }
  message.pop_back();
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<Blueprint> MakeBlueprint(const v1::TrialSpecification& specification,
                                        const data::FetchFile& fetch) {
  Problems problems;
  Blueprint blueprint;
  blueprint.training = specification.training();
  blueprint.evaluation = specification.evaluation();
  CheckTraining(blueprint.training, problems);
  CheckEvaluation(blueprint.evaluation, problems);
  Require(blueprint.evaluation.training_examples() >= 0 &&
              blueprint.evaluation.training_examples() <= blueprint.training.examples(),
          "evaluation.training_examples", "must be from 0 to training.examples", problems);

  const auto task = Choose(tasks::EveryTaskEntry(), specification.task(), "task", problems);
  const auto network =
      Choose(models::EveryNetworkEntry(), specification.network(), "network", problems);
  const auto encoding =
      Choose(models::EveryEncodingEntry(), specification.encoding(), "encoding", problems);
  const auto optimizer = Choose(models::OptimizerEntries(), specification.training().optimizer(),
                                "optimizer", problems);
  const auto schedule =
      Choose(models::ScheduleEntries(), specification.training().schedule(), "schedule", problems);
  if (network.entry != nullptr && network.entry->check != nullptr) {
    network.entry->check(network.choice.parameters, "network", problems);
  }
  if (task.entry != nullptr && network.entry != nullptr) {
    Require(network.entry->Learns(task.entry->kind), "network",
            absl::StrCat("\"", network.entry->name, "\" cannot learn \"", task.entry->name, "\""),
            problems);
  }
  if (!problems.empty()) return Refuse(problems);

  blueprint.batches = data::BatchSchedule(blueprint.training);
  std::unique_ptr<tasks::Task> created;
  if (!tasks::examples::IsExamples(task.entry->name)) {
    created = task.entry->create(task.choice.parameters);
  }
  std::shared_ptr<const tasks::examples::ExampleSet> set;
  if (created == nullptr) {
    Require(fetch != nullptr, "task", "is a file of examples, which this worker cannot fetch",
            problems);
    if (!problems.empty()) return Refuse(problems);
    ASSIGN_OR_RETURN(set, data::LoadExamples(task.choice.parameters, task.entry->kind, fetch));
    if (task.entry->kind == tasks::TaskKind::kText) {
      Require(set->mask.empty(), "task", "has masks, but text answers are scored as a whole",
              problems);
      Require(set->form != tasks::examples::Form::kNumbers, "task", "has numbers", problems);
      if (!problems.empty()) return Refuse(problems);
      created = std::make_unique<tasks::examples::FileText>(set);
    }
  }
  if (created == nullptr) {
    auto examples = std::make_unique<data::FileExamples>(set, blueprint.training);
    CheckFileExamples(*examples, blueprint.training, blueprint.evaluation, problems);
    if (!problems.empty()) return Refuse(problems);
    blueprint.batches =
        data::BatchSchedule(blueprint.training, examples->Weights(blueprint.training.lengths()));
    blueprint.examples = std::move(examples);
  } else if (created->kind() == tasks::TaskKind::kText) {
    blueprint.text = std::make_unique<data::TextExamples>(
        std::unique_ptr<tasks::TextTask>(static_cast<tasks::TextTask*>(created.release())),
        blueprint.training, specification::SeesWholePrompts(network.choice.parameters));
    Require(!specification::SeesWholePrompts(network.choice.parameters) ||
                specification::CountsAnswersApart(blueprint.training.packing()),
            "training.packing", "must count only answers and not join examples", problems);
    CheckText(*blueprint.text, blueprint.training, blueprint.evaluation, problems);
    if (!problems.empty()) return Refuse(problems);
  } else {
    blueprint.examples = data::CreateExamples(std::move(created), blueprint.training.lengths());
  }
  blueprint.network = network.choice;
  if (network.entry->name == models::kPythonNetwork) {
    Require(fetch != nullptr, "network", "is a file, which this worker cannot fetch", problems);
    CheckPythonNetwork(blueprint, problems);
    if (!problems.empty()) return Refuse(problems);
    ASSIGN_OR_RETURN(blueprint.network_archive,
                     fetch(network.choice.parameters.String("file_sha256"),
                           network.choice.parameters.Int("file_bytes")));
  }
  blueprint.encoding = encoding.choice;
  blueprint.optimizer = optimizer.choice;
  blueprint.schedule = schedule.entry;
  blueprint.schedule_parameters = schedule.choice.parameters;
  if (schedule.entry->check != nullptr) {
    schedule.entry->check(blueprint.schedule_parameters, ScheduleContextOf(blueprint), "schedule",
                          problems);
  }
  blueprint.size = network.entry->encoding_context(network.choice.parameters);
  blueprint.size.longest_sequence = LongestSequence(blueprint);
  blueprint.size.largest_id = LargestId(blueprint, set.get());
  models::CheckEncoding(*encoding.entry, encoding.choice.parameters, blueprint.size, "encoding",
                        problems);
  if (!problems.empty()) return Refuse(problems);
  return blueprint;
}

data::ExampleSource& Blueprint::source() const {
  if (text != nullptr) return *text;
  return *examples;
}

bool Blueprint::HasWholeNumbers() const {
  return examples != nullptr &&
         std::all_of(evaluation.lengths().begin(), evaluation.lengths().end(),
                     [&](int32_t n) { return examples->HasWholeNumbers(n); });
}

int64_t Blueprint::InputTokensOfStep(int64_t step) const {
  return text != nullptr ? training.packing().tokens()
                         : examples->TrainingInputTokens(batches.LengthOfStep(step));
}

std::unique_ptr<models::Schedule> Blueprint::CreateSchedule(double learning_rate) const {
  models::ScheduleContext context = ScheduleContextOf(*this);
  context.learning_rate = learning_rate;
  return schedule->create(schedule_parameters, context);
}

}  // namespace lengthwise::worker::training
