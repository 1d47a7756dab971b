// Validates how components combine: each task with each network and encoding, and all of them with
// the fields of training and evaluation.
#ifndef LENGTHWISE_SPECIFICATION_COMBINATIONS_H_
#define LENGTHWISE_SPECIFICATION_COMBINATIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/specification.pb.h"
#include "specification/catalogues.h"
#include "specification/components.h"
#include "specification/findings.h"
#include "specification/overrides.h"
#include "tasks/task.h"

namespace lengthwise::specification {

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

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMBINATIONS_H_
