// What must fit together: tasks, networks, encodings and the fields that they are used with.
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

// What ResolveComponents made of an axis.
using Choices = std::vector<std::optional<Choice>>;

// The smallest TaskEntry::seen_up_to where all tasks have one.
std::optional<int32_t> SeenUpTo(const Catalogues& catalogues, const Choices& tasks);

// Whether there are tasks, all of this kind.
bool AreAll(tasks::TaskKind kind, const Catalogues& catalogues, const Choices& tasks);

// Finds what does not fit across the axes: every task with every network and encoding, and the
// lengths and inputs with every task. For a grid of sensible size.
void CheckCombinations(const Catalogues& catalogues,
                       const v1::ExperimentSpecification& specification, const Choices& tasks,
                       const Choices& networks, const Choices& encodings,
                       const OverriddenNetworks& overridden, Findings& findings);

// The schedule with the rest of the training.
void CheckSchedule(const models::ScheduleEntry& entry, const Choice& choice,
                   const v1::Training& training, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMBINATIONS_H_
