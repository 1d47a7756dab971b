// Validates a specification with its defaults filled in: its fields, the size of its grid, how its
// components combine, and the training of text. Components themselves: components.h.
#ifndef LENGTHWISE_SPECIFICATION_CHECKS_H_
#define LENGTHWISE_SPECIFICATION_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/flag_checks.h"
#include "proto/specification.pb.h"
#include "specification/catalogues.h"
#include "specification/components.h"
#include "specification/findings.h"
#include "specification/overrides.h"
#include "tasks/task.h"
#include "tasks/text_task.h"

namespace lengthwise::specification {

// Limits documented in proto/specification.proto.
inline constexpr size_t kMostName = 40;
inline constexpr int32_t kMostLength = 100'000;
inline constexpr int32_t kMostAttentionLength = 1'000;

// Parses `retention`, a time above 0. "forever" is absl::InfiniteDuration(). nullopt for other
// text.
inline std::optional<absl::Duration> ParseRetention(absl::string_view text) {
  if (text == "forever") return absl::InfiniteDuration();
  const std::optional<absl::Duration> time = platform::ParseDays(text);
  return time > absl::ZeroDuration() ? time : std::nullopt;
}

// Reports an "unknown WHAT" unless the value is one of those accepted.
void CheckOneOf(absl::string_view field, absl::string_view what, const std::string& value,
                const std::vector<std::string>& accepted, Findings& findings);

// Checks name, description, priority, seeds, learning rates, training and evaluation. Expects a
// specification with defaults filled in.
void CheckFields(const v1::ExperimentSpecification& specification, Findings& findings);

// Checks that evaluations during training can reach training.stop_at_accuracy. Needs
// evaluation.seen_up_to.
void CheckStop(const v1::ExperimentSpecification& specification, Findings& findings);

// Warns of a resolved specification with several learning rates or seeds whose evaluation will have
// no scores to choose by. Empty for others.
std::string ChoiceWarning(const v1::ExperimentSpecification& specification);

// Reports empty axes, and a grid of more than `max_trials` trials or whose packs have more than
// `max_bytes` bytes. Multiplies the axes' sizes; does not expand the grid.
void CheckGridSize(const v1::ExperimentSpecification& specification, int64_t max_trials,
                   int64_t max_bytes, Findings& findings);

// Combinations of components (combinations.cc).

// The result of ResolveComponents for one axis.
using Choices = std::vector<std::optional<Choice>>;

// The smallest TaskEntry::seen_up_to of the tasks; absent unless every task has one.
std::optional<int32_t> SeenUpTo(const Catalogues& catalogues, const Choices& tasks);

// Returns true if there is at least one task and all are of this kind.
bool AreAll(tasks::TaskKind kind, const Catalogues& catalogues, const Choices& tasks);

// Checks every task with every network and encoding, and lengths and inputs with every task. Its
// cost grows with the product of the axes: call it only after CheckGridSize found no problem.
void CheckCombinations(const Catalogues& catalogues,
                       const v1::ExperimentSpecification& specification, const Choices& tasks,
                       const Choices& networks, const Choices& encodings,
                       const OverriddenNetworks& overridden, Findings& findings);

// Checks the schedule against the rest of the training.
void CheckSchedule(const models::ScheduleEntry& entry, const Choice& choice,
                   const v1::Training& training, Findings& findings);

// Tasks of text (text_checks.cc).

// Checks a filled training.packing against the rest of the training.
void CheckPacking(const v1::Training& training, Findings& findings);

// Rejects evaluation fields that text tasks do not support.
void CheckTextEvaluation(const v1::Evaluation& evaluation, Findings& findings);

// Checks sizes and the rest of the specification against a task. `path` is the task's field.
// Returns the tokens of the longest sequence, or 0 if there are problems.
int64_t CheckText(const v1::ExperimentSpecification& specification, const std::string& path,
                  const tasks::TextTask& task, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_CHECKS_H_
