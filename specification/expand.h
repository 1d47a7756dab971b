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

// Digest (proto/digest.h) of what the trials of a pack share: all of a trial but its seeds, its
// learning rate and `keep`. The server leases trials of one key together, the worker trains them in
// lockstep.
std::string PackKey(v1::TrialSpecification trial);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXPAND_H_
