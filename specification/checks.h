// Validates the fields of a specification that are not components (tasks, networks, encodings,
// optimizer, schedule), and the size of its grid.
#ifndef LENGTHWISE_SPECIFICATION_CHECKS_H_
#define LENGTHWISE_SPECIFICATION_CHECKS_H_

#include <cstdint>

#include "proto/specification.pb.h"
#include "specification/findings.h"

namespace lengthwise::specification {

// Limits documented in proto/specification.proto.
inline constexpr int32_t kMostLength = 100'000;
inline constexpr int32_t kMostAttentionLength = 1'000;

// Checks name, description, priority, seeds, learning rates, training and evaluation. Expects a
// specification with defaults filled in.
void CheckFields(const v1::ExperimentSpecification& specification, Findings& findings);

// Reports empty axes, and a grid of more than `max_trials` trials. Multiplies the axes' sizes; does
// not expand the grid.
void CheckGridSize(const v1::ExperimentSpecification& specification, int64_t max_trials,
                   Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_CHECKS_H_
