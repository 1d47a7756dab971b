// The limits of every field that is no component, and what must fit together.
#ifndef LENGTHWISE_SPECIFICATION_CHECKS_H_
#define LENGTHWISE_SPECIFICATION_CHECKS_H_

#include <cstdint>

#include "proto/specification.pb.h"
#include "specification/findings.h"

namespace lengthwise::specification {

// Limits that proto/specification.proto states.
inline constexpr int32_t kMostLength = 100'000;
inline constexpr int32_t kMostAttentionLength = 1'000;

// Checks name, description, priority, seeds, learning rates, training and evaluation of a
// specification with its defaults filled in.
void CheckFields(const v1::ExperimentSpecification& specification, Findings& findings);

// Finds axes without a value, and more trials than allowed: counted, not expanded.
void CheckGridSize(const v1::ExperimentSpecification& specification, int64_t max_trials,
                   Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_CHECKS_H_
