#include "worker/training/blueprint.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/networks/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "specification/training_data.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/file_text.h"
#include "tasks/task.h"

namespace lengthwise::worker::training {
namespace {

using Problems = std::vector<catalogue::Problem>;

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
  const catalogue::Parameters given = specification::ParametersOf(component);
  return {entries[*index],
          {component.name(), catalogue::Resolve(*entries[*index], given, kind, problems)}};
}

void Require(bool fulfilled, absl::string_view field, absl::string_view what, Problems& problems) {
  if (!fulfilled) problems.push_back({std::string(field), std::string(what)});
}

models::ScheduleContext ScheduleContextOf(const Blueprint& blueprint) {
  return {.steps = blueprint.training.steps(),
          .steps_per_epoch = specification::StepsPerEpoch(blueprint.training)};
}

void CheckText(const data::TextExamples& text, const v1::Training& training,
               const v1::Evaluation& evaluation, Problems& problems) {
  const int64_t tokens = training.packing().tokens();
  const v1::LengthRange& lengths = training.lengths();
  const absl::Status trained = text.task().CheckTraining(lengths.min(), lengths.max());
  Require(trained.ok(), "training.lengths", trained.message(), problems);
  for (const auto& [field, sizes] : specification::EvaluatedFields(evaluation)) {
    for (const int32_t size : sizes) {
      const absl::Status status = text.task().Check(size);
      Require(status.ok(), field, status.message(), problems);
    }
  }
  if (!problems.empty()) return;
  Require(tokens >= text.task().LongestTrainingExample(lengths.min(), lengths.max()),
          "training.packing.tokens", "must be at least the length of the longest example",
          problems);
}

int64_t LongestSequence(const Blueprint& blueprint) {
  int64_t longest = blueprint.source().LongestTraining(blueprint.training);
  const auto take = [&](int64_t n) {
    longest = std::max(longest, blueprint.source().SequenceTokens(n));
  };
  for (const auto& evaluated : specification::EvaluatedFields(blueprint.evaluation)) {
    for (const int32_t n : evaluated.lengths) take(n);
  }
  for (const v1::TokenSequence& input : blueprint.evaluation.attention_inputs()) {
    // Inputs that the task does not accept never become sequences; they are reported later.
    if (const auto given = blueprint.source().Given(input); given.ok()) {
      take(given->length);
    }
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
  for (const auto& evaluated : specification::EvaluatedFields(blueprint.evaluation)) {
    for (const int32_t size : evaluated.lengths) {
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
  const std::string& precision = blueprint.training.precision();
  Require(precision == "float32" || precision == "float64" || precision == "bfloat16" ||
              precision == "tf32",
          "training.precision", "must be \"float32\", \"float64\", \"bfloat16\" or \"tf32\"",
          problems);

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
