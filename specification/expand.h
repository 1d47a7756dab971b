// The grid's points, in order.
#ifndef LENGTHWISE_SPECIFICATION_EXPAND_H_
#define LENGTHWISE_SPECIFICATION_EXPAND_H_

#include <memory>
#include <string>
#include <vector>

#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::specification {

// Expands a specification that is resolved and free of problems.
std::vector<GridTrial> Expand(const v1::ExperimentSpecification& specification);

// The pack of a trial, whose seeds and learning rate are dropped.
std::shared_ptr<const GridPack> MakePack(v1::TrialSpecification trial);

// Lower-case hexadecimal SHA-256 of the trial without its seeds and learning rate, the same on
// every machine.
std::string PackKey(v1::TrialSpecification trial);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXPAND_H_
