// Expands a resolved specification into its trials.
#ifndef LENGTHWISE_SPECIFICATION_EXPAND_H_
#define LENGTHWISE_SPECIFICATION_EXPAND_H_

#include <memory>
#include <string>
#include <vector>

#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::specification {

// Expects a resolved specification without problems. Order: see Grid::trials.
std::vector<GridTrial> Expand(const v1::ExperimentSpecification& specification);

// The pack that a trial belongs to. Drops the trial's seeds and learning rate.
std::shared_ptr<const GridPack> MakePack(v1::TrialSpecification trial);

// Digest (proto/digest.h) of the fields that the trials of a pack share: all except seeds, learning
// rate and `keep`. The server leases trials with equal keys together; the worker trains them in
// lockstep.
std::string PackKey(v1::TrialSpecification trial);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXPAND_H_
