#include "specification/resolve.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "proto/rpc_details.pb.h"
#include "specification/checks.h"
#include "specification/components.h"
#include "specification/defaults.h"
#include "specification/epochs.h"
#include "specification/expand.h"
#include "specification/findings.h"
#include "specification/resolve_with.h"

namespace lengthwise::specification {
namespace {

// A status travels in HTTP/2 headers, for which gRPC allows 8 KiB in all; the problems are in it
// twice.
constexpr size_t kMostProblems = 50;
constexpr size_t kMostProblemBytes = 2'400;
constexpr size_t kMostFieldBytes = 120;
constexpr size_t kMostDescriptionBytes = 400;

std::string Shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most;  // not within a character
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return absl::StrCat(text.substr(0, cut), "...");
}

constexpr char kPaper[] = "paper";
constexpr char kReferenceCode[] = "reference_code";
constexpr char kKeepWeights[] = "weights";
constexpr char kKeepAll[] = "all";
constexpr char kKeepNothing[] = "nothing";

template <typename T>
std::vector<const catalogue::Entry*> Entries(absl::Span<const T* const> entries) {
  return {entries.begin(), entries.end()};
}

// Input and output tokens of the longest sequence that a task makes of the specification's lengths.
int64_t LongestSequence(const tasks::TransductionTask& task,
                        const v1::ExperimentSpecification& specification) {
  int64_t longest = 0;
  const auto take = [&](int32_t n) {
    if (n < 1) return;  // a problem of its own
    longest = std::max(longest, task.InputLength(n) + task.OutputLength(n));
  };
  const v1::LengthRange& lengths = specification.training().lengths();
  take(lengths.max());
  // Some tasks shorten every second length.
  if (lengths.min() < lengths.max()) take(lengths.max() - 1);
  const v1::Evaluation& evaluation = specification.evaluation();
  for (const int32_t n : evaluation.lengths()) take(n);
  for (const int32_t n : evaluation.interval_lengths()) take(n);
  for (const int32_t n : evaluation.attention_lengths()) take(n);
  if (evaluation.has_projection()) {
    take(evaluation.projection().fitted_length());
    for (const int32_t n : evaluation.projection().lengths()) take(n);
  }
  for (const v1::TokenSequence& input : evaluation.attention_inputs()) take(input.tokens_size());
  return longest;
}

// The inputs whose attention is wanted must be inputs of every task.
void CheckInputs(const v1::Evaluation& evaluation, const std::string& task,
                 const tasks::TransductionTask& definition, Findings& findings) {
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    const v1::TokenSequence& input = evaluation.attention_inputs(i);
    const std::string field = absl::StrCat("evaluation.attention_inputs[", i, "].tokens");
    if (definition.InputLength(input.tokens_size()) != input.tokens_size()) {
      findings.Add(field, absl::StrCat("\"", task, "\" has no inputs of ", input.tokens_size(),
                                       " tokens; the nearest shorter has ",
                                       definition.InputLength(input.tokens_size())));
    }
    for (const int32_t token : input.tokens()) {
      if (token >= 0 && token < definition.input_size()) continue;
      findings.Add(field,
                   absl::StrCat("got ", token, ", \"", task, "\" has input tokens from 0 to ",
                                definition.input_size() - 1));
      break;
    }
  }
}

void CheckSchedule(const models::ScheduleEntry& entry, const Choice& choice,
                   const v1::Training& training, Findings& findings) {
  // A number of steps that is missing or wrong is a problem of its own.
  if (entry.check == nullptr || training.steps() < 1) return;
  std::vector<catalogue::Problem> problems;
  entry.check(choice.parameters,
              {.steps = training.steps(), .steps_per_epoch = StepsPerEpoch(training)},
              "training.schedule", problems);
  findings.AddAll(problems);
}

// What must fit together across the axes.
void CheckTogether(const Catalogues& catalogues, const v1::ExperimentSpecification& specification,
                   const std::vector<std::optional<Choice>>& tasks,
                   const std::vector<std::optional<Choice>>& networks,
                   const std::vector<std::optional<Choice>>& encodings, Findings& findings) {
  int64_t longest = 0;
  for (const std::optional<Choice>& task : tasks) {
    if (!task) continue;
    const tasks::TaskEntry& entry = *catalogues.tasks[task->index];
    const std::unique_ptr<tasks::Task> created = entry.create(task->parameters);
    const auto* transduction = dynamic_cast<const tasks::TransductionTask*>(created.get());
    if (transduction == nullptr) continue;
    longest = std::max(longest, LongestSequence(*transduction, specification));
    CheckInputs(specification.evaluation(), entry.name, *transduction, findings);
  }
  for (size_t i = 0; i < networks.size(); ++i) {
    if (!networks[i]) continue;
    const models::NetworkEntry& network = *catalogues.networks[networks[i]->index];
    const std::string path = absl::StrCat("networks[", i, "]");
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (!tasks[t]) continue;
      const tasks::TaskEntry& task = *catalogues.tasks[tasks[t]->index];
      if (std::count(network.task_kinds.begin(), network.task_kinds.end(), task.kind) == 0) {
        findings.Add(path, absl::StrCat("\"", network.name, "\" cannot learn \"", task.name,
                                        "\" (tasks[", t, "])"));
      }
    }
    std::vector<catalogue::Problem> problems;
    if (network.check != nullptr) network.check(networks[i]->parameters, path, problems);
    const bool network_is_sound = problems.empty();
    findings.AddAll(problems);
    if (!network_is_sound || network.encoding_context == nullptr) continue;
    models::EncodingContext context = network.encoding_context(networks[i]->parameters);
    context.longest_sequence = longest;
    for (size_t e = 0; e < encodings.size(); ++e) {
      if (!encodings[e]) continue;
      const models::EncodingEntry& encoding = *catalogues.encodings[encodings[e]->index];
      if (encoding.check == nullptr) continue;
      problems.clear();
      encoding.check(encodings[e]->parameters, context, absl::StrCat("encodings[", e, "]"),
                     problems);
      findings.AddAll(problems);
    }
  }
}

// Lengths in ascending order, so that the order in which they were written makes no other trial.
void SortLengths(v1::Evaluation& evaluation) {
  for (auto* lengths : {evaluation.mutable_lengths(), evaluation.mutable_interval_lengths(),
                        evaluation.mutable_attention_lengths()}) {
    std::sort(lengths->begin(), lengths->end());
  }
}

}  // namespace

absl::StatusOr<Grid> ResolveWith(const Catalogues& catalogues, Parsed parsed,
                                 const Limits& limits) {
  if (!parsed.readable) return ToStatus(parsed.problems);
  Findings findings(parsed);
  Grid grid;
  v1::ExperimentSpecification& specification = grid.specification;
  specification.Swap(&parsed.specification);

  v1::ExperimentSpecification protocol;
  std::optional<v1::ExperimentSpecification> readings;
  if (!specification.protocol().empty()) {
    std::vector<catalogue::Problem> problems;
    const std::optional<size_t> index = catalogue::Find(
        Entries(catalogues.protocols), specification.protocol(), "protocol", "protocol", problems);
    if (index) {
      protocol = ProtocolSpecification(*catalogues.protocols[*index]);
      if (!catalogues.protocols[*index]->reference_code.empty()) {
        readings = ReferenceCodeReadings(*catalogues.protocols[*index]);
      }
    }
    if (!index) findings.IgnoreMissing();
    findings.AddAll(problems);
  }
  FillDefaults(protocol, specification);
  if (specification.compatibility().empty()) specification.set_compatibility(kPaper);
  if (specification.compatibility() == kReferenceCode) {
    if (!readings) {
      findings.AddMissing("compatibility",
                          "no code to follow; set `protocol` to a paper that has released its own");
    } else {
      FillCompatibility(*readings, specification);
    }
  } else if (specification.compatibility() != kPaper) {
    findings.Add("compatibility",
                 absl::StrCat("unknown value \"", specification.compatibility(), "\"",
                              catalogue::Suggestion(specification.compatibility(),
                                                    {kPaper, kReferenceCode})));
  }
  if (specification.keep().empty()) specification.set_keep(kKeepWeights);
  if (const std::vector<std::string> kept = {kKeepWeights, kKeepAll, kKeepNothing};
      std::count(kept.begin(), kept.end(), specification.keep()) == 0) {
    findings.Add("keep", absl::StrCat("unknown value \"", specification.keep(),
                                      "\"; expected \"weights\", \"all\" or \"nothing\"",
                                      catalogue::Suggestion(specification.keep(), kept)));
  }
  CheckFields(specification, findings);
  FillDependent(specification);
  SortLengths(*specification.mutable_evaluation());

  const auto tasks = ResolveComponents(Entries(catalogues.tasks), "task", "tasks",
                                       *specification.mutable_tasks(), findings);
  const auto networks = ResolveComponents(Entries(catalogues.networks), "network", "networks",
                                          *specification.mutable_networks(), findings);
  const auto encodings = ResolveComponents(Entries(catalogues.encodings), "encoding", "encodings",
                                           *specification.mutable_encodings(), findings);
  v1::Training& training = *specification.mutable_training();
  ResolveComponent(catalogues.optimizers, "optimizer", "training.optimizer",
                   *training.mutable_optimizer(), findings);
  if (const auto schedule =
          ResolveComponent(Entries(catalogues.schedules), "schedule", "training.schedule",
                           *training.mutable_schedule(), findings)) {
    CheckSchedule(*catalogues.schedules[schedule->index], *schedule, training, findings);
  }
  const size_t before = findings.problems().size();
  CheckGridSize(specification, limits.max_trials, findings);
  // Every combination is looked at only where there are not too many.
  if (findings.problems().size() == before) {
    CheckTogether(catalogues, specification, tasks, networks, encodings, findings);
  }
  if (!findings.empty()) return ToStatus(findings.problems());
  grid.trials = Expand(specification);
  return grid;
}

absl::StatusOr<Grid> Resolve(const v1::SpecificationText& text, const Limits& limits) {
  const int64_t size = static_cast<int64_t>(text.text().size());
  if (size > limits.max_text_bytes) {
    return ToStatus(
        {{"text", absl::StrCat("got ", size, " bytes, expected at most ", limits.max_text_bytes)}});
  }
  return ResolveWith(AllCatalogues(), Parse(text.format(), text.text()), limits);
}

absl::StatusOr<Grid> Resolve(const v1::ExperimentSpecification& specification,
                             const Limits& limits) {
  Parsed parsed;
  parsed.specification = specification;
  return ResolveWith(AllCatalogues(), std::move(parsed), limits);
}

absl::StatusOr<v1::SpecificationText::Format> FormatOfFile(absl::string_view path) {
  if (absl::EndsWith(path, ".yaml") || absl::EndsWith(path, ".yml")) {
    return v1::SpecificationText::YAML;
  }
  if (absl::EndsWith(path, ".json")) return v1::SpecificationText::JSON;
  if (absl::EndsWith(path, ".textproto") || absl::EndsWith(path, ".txtpb")) {
    return v1::SpecificationText::TEXT_PROTO;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot tell the format of \"", path,
                   "\" from its name: expected .yaml, .yml, .json, .textproto or .txtpb"));
}

absl::Status ToStatus(const std::vector<catalogue::Problem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  google::rpc::BadRequest details;
  std::string message;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::string field = Shortened(problems[i].field, kMostFieldBytes);
    const std::string description = Shortened(problems[i].description, kMostDescriptionBytes);
    const std::string line = field.empty() ? description : absl::StrCat(field, ": ", description);
    if (i == kMostProblems || message.size() + line.size() > kMostProblemBytes) {
      absl::StrAppend(&message, "\nand at least ", problems.size() - i, " more");
      break;
    }
    absl::StrAppend(&message, message.empty() ? "" : "\n", line);
    google::rpc::BadRequest::FieldViolation& violation = *details.add_field_violations();
    violation.set_field(field);
    violation.set_description(description);
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(absl::string_view(kBadRequestTypeUrl.data(), kBadRequestTypeUrl.size()),
                    absl::Cord(details.SerializeAsString()));
  return status;
}

}  // namespace lengthwise::specification
