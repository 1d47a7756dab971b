// Validates training and evaluation of text tasks.
#ifndef LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_
#define LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_

#include <cstdint>
#include <string>

#include "proto/specification.pb.h"
#include "specification/findings.h"
#include "tasks/text_task.h"

namespace lengthwise::specification {

// Fills in unset fields of `packing`. Only trials of text have a packing.
void FillPacking(v1::Packing& packing);

// Checks a filled training.packing against the rest of the training.
void CheckPacking(const v1::Training& training, Findings& findings);

// Rejects evaluation fields that text tasks do not support.
void CheckTextEvaluation(const v1::Evaluation& evaluation, Findings& findings);

// Checks sizes and the rest of the specification against a task. `path` is the task's field.
// Returns the tokens of the longest sequence, or 0 if there are problems.
int64_t CheckText(const v1::ExperimentSpecification& specification, const std::string& path,
                  const tasks::TextTask& task, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_
