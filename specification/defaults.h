// Fills in defaults: first those of the specification's protocol, then those documented in
// proto/specification.proto.
#ifndef LENGTHWISE_SPECIFICATION_DEFAULTS_H_
#define LENGTHWISE_SPECIFICATION_DEFAULTS_H_

#include <cstdint>

#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Sets each unset field that `protocol` or the documented defaults provide. A component's unset
// parameters come from the protocol's first component of the same name on the same axis.
void FillDefaults(const v1::ExperimentSpecification& protocol,
                  v1::ExperimentSpecification& specification);

// Sets the `readings`, the values that the released code uses when training.lengths covers several
// lengths. training.lengths is the user's, or else the protocol's. Call before FillDefaults, which
// sets the values of the paper's text.
void FillCodeOfSeveralLengths(const v1::ExperimentSpecification& readings,
                              const v1::ExperimentSpecification& protocol,
                              v1::ExperimentSpecification& specification);

// Sets network and encoding parameters that neither user nor protocol set, from the readings of the
// same name. A reading that sets `randomized` applies only to encodings with that value.
void FillCompatibility(const v1::ExperimentSpecification& readings,
                       v1::ExperimentSpecification& specification);

// Sets unset fields that depend on other fields, among them interval_lengths, interval_sequences
// and seen_up_to. Call after the checks: a value derived from a wrong one would be reported as a
// second mistake.
void FillDependent(v1::ExperimentSpecification& specification);

// Sets unset fields of a projection that is asked for; `fitted_length` is the default of that
// field.
void FillProjection(int32_t fitted_length, v1::ProjectionSettings& projection);

// Sets unset fields of the packing, which only trials of text have.
void FillPacking(v1::Packing& packing);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_DEFAULTS_H_
