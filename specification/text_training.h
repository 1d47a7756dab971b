// What training and evaluation say of text tasks.
#ifndef LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_
#define LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_

#include <cstdint>
#include <string>

#include "proto/specification.pb.h"
#include "specification/findings.h"
#include "tasks/text_task.h"

namespace lengthwise::specification {

// Fills what `packing` lacks. Of text alone: other trials have none.
void FillPacking(v1::Packing& packing);

// The limits of a filled training.packing with the rest of the training.
void CheckPacking(const v1::Training& training, Findings& findings);

// Refuses what evaluation does for other kinds of task alone.
void CheckTextEvaluation(const v1::Evaluation& evaluation, Findings& findings);

// The sizes and the rest of the specification with a task whose problems have the field `path`;
// returns the tokens of the longest sequence, or 0 where something is wrong.
int64_t CheckText(const v1::ExperimentSpecification& specification, const std::string& path,
                  const tasks::TextTask& task, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_TEXT_TRAINING_H_
