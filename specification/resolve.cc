#include "specification/resolve.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "specification/catalogues.h"
#include "specification/checks.h"
#include "specification/components.h"
#include "specification/defaults.h"
#include "specification/examples.h"
#include "specification/overrides.h"

namespace lengthwise::specification {
namespace {

constexpr char kPaper[] = "paper";
constexpr char kReferenceCode[] = "reference_code";
constexpr char kKeepWeights[] = "weights";
constexpr char kKeepAll[] = "all";
constexpr char kKeepNothing[] = "nothing";

template <typename T>
std::vector<const catalogue::Entry*> Entries(absl::Span<const T* const> entries) {
  return {entries.begin(), entries.end()};
}

// Sorts lengths, so that the order in which they are written does not change the trial.
void SortLengths(v1::Evaluation& evaluation) {
  for (auto* lengths : {evaluation.mutable_lengths(), evaluation.mutable_interval_lengths(),
                        evaluation.mutable_attention_lengths()}) {
    std::sort(lengths->begin(), lengths->end());
  }
  if (evaluation.has_validation()) {
    auto& lengths = *evaluation.mutable_validation()->mutable_lengths();
    std::sort(lengths.begin(), lengths.end());
  }
}

}  // namespace

absl::StatusOr<Grid> ResolveWith(const Catalogues& catalogues, Parsed parsed,
                                 const Limits& limits) {
  if (!parsed.readable) return ToStatus(parsed.problems, limits.max_problem_bytes);
  Findings findings(parsed);
  Grid grid;
  v1::ExperimentSpecification& specification = grid.specification;
  specification.Swap(&parsed.specification);

  v1::ExperimentSpecification protocol;
  std::optional<ReferenceCode> readings;
  if (!specification.protocol().empty()) {
    std::vector<catalogue::Problem> problems;
    const std::optional<size_t> index = catalogue::Find(
        Entries(catalogues.protocols), specification.protocol(), "protocol", "protocol", problems);
    if (index) {
      protocol = catalogues.protocols[*index]->defaults;
      readings = catalogues.protocols[*index]->reference_code;
    }
    if (!index) findings.IgnoreMissing();
    findings.AddAll(problems);
  }
  if (specification.compatibility() != kReferenceCode) {
    readings.reset();
  } else if (readings) {
    FillCodeOfSeveralLengths(readings->several_lengths, protocol, specification);
  } else {
    findings.AddMissing("compatibility",
                        specification.protocol().empty()
                            ? "no code to follow; set `protocol` to a paper with released code"
                            : absl::StrCat("the authors of protocol \"", specification.protocol(),
                                           "\" have released no code; leave it out"));
  }
  FillDefaults(protocol, specification);
  if (specification.compatibility().empty()) specification.set_compatibility(kPaper);
  if (readings) {
    FillCompatibility(readings->components, specification);
  } else {
    CheckOneOf("compatibility", "value", specification.compatibility(), {kPaper, kReferenceCode},
               findings);
  }
  if (specification.keep().empty()) specification.set_keep(kKeepWeights);
  CheckOneOf("keep", "value", specification.keep(), {kKeepWeights, kKeepAll, kKeepNothing},
             findings);
  CheckFields(specification, findings);
  // Read before FillDependent, which sets seen_up_to and converts epochs to steps.
  const bool says_what_is_seen = specification.evaluation().has_seen_up_to();
  const bool counts_epochs = specification.training().has_epochs();
  FillDependent(specification);
  SortLengths(*specification.mutable_evaluation());

  const auto tasks = ResolveComponents(Entries(catalogues.tasks), "task", "tasks",
                                       *specification.mutable_tasks(), findings);
  // Present if the evaluated lengths are none of training: conditions of puzzles, or scales.
  std::optional<int32_t> seen = SeenUpTo(catalogues, tasks);
  if (v1::Evaluation& evaluation = *specification.mutable_evaluation();
      evaluation.has_projection()) {
    FillProjection(seen.has_value() ? 1 : specification.training().lengths().max(),
                   *evaluation.mutable_projection());
  }
  if (!says_what_is_seen) {
    if (!seen.has_value()) seen = SeenInFiles(specification);
    if (seen.has_value()) specification.mutable_evaluation()->set_seen_up_to(*seen);
  }
  CheckStop(specification, findings);
  const auto networks = ResolveComponents(Entries(catalogues.networks), "network", "networks",
                                          *specification.mutable_networks(), findings);
  const auto encodings = ResolveComponents(Entries(catalogues.encodings), "encoding", "encodings",
                                           *specification.mutable_encodings(), findings);
  if (readings) {
    AddCodeOverrides(catalogues.networks, readings->networks_with_encodings, specification);
  }
  const OverriddenNetworks overridden =
      ResolveOverrides(catalogues.networks, specification, findings);
  v1::Training& training = *specification.mutable_training();
  const bool is_text = AreAll(tasks::TaskKind::kText, catalogues, tasks);
  if (is_text) {
    FillPacking(*training.mutable_packing());
    CheckPacking(training, findings);
    if (counts_epochs) {
      findings.Add("training.epochs",
                   "the number of text examples in a step varies: set training.steps instead");
    }
  } else {
    constexpr char kOfText[] = "applies to text tasks only; remove it";
    if (training.has_packing()) findings.Add("training.packing", kOfText);
    if (training.has_without_replacement()) {
      findings.Add("training.without_replacement", kOfText);
    }
  }
  ResolveComponent(catalogues.optimizers, "optimizer", "training.optimizer",
                   *training.mutable_optimizer(), findings);
  if (const auto schedule =
          ResolveComponent(Entries(catalogues.schedules), "schedule", "training.schedule",
                           *training.mutable_schedule(), findings)) {
    CheckSchedule(*catalogues.schedules[schedule->index], *schedule, training, findings);
  }
  const size_t before = findings.problems().size();
  CheckGridSize(specification, limits.max_trials, limits.max_grid_bytes, findings);
  // The cost of CheckCombinations grows with the grid, so it never sees a grid that is too large.
  if (findings.problems().size() == before) {
    CheckCombinations(catalogues, specification, tasks, networks, encodings, overridden, findings);
  }
  if (!findings.empty()) return ToStatus(findings.problems(), limits.max_problem_bytes);
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

}  // namespace lengthwise::specification
