// What a specification has where its author says nothing: the protocol's values, then those that
// proto/specification.proto states.
#ifndef LENGTHWISE_SPECIFICATION_DEFAULTS_H_
#define LENGTHWISE_SPECIFICATION_DEFAULTS_H_

#include "proto/specification.pb.h"
#include "specification/protocols.h"

namespace lengthwise::specification {

// A protocol's values as a message. Aborts where the protocol's text has a mistake (a test reads
// them all).
v1::ExperimentSpecification ProtocolSpecification(const ProtocolEntry& protocol);
// The same of its text of the reference code's readings.
v1::ExperimentSpecification ReferenceCodeReadings(const ProtocolEntry& protocol);

// Sets every unset field that `protocol` or the stated defaults have; a component's unset
// parameters get the values of the protocol's first component of that name in the same place.
void FillDefaults(const v1::ExperimentSpecification& protocol,
                  v1::ExperimentSpecification& specification);

// Sets the parameters of networks and encodings that the user and the protocol left unset to those
// of the readings of the same name; a reading with `randomized` is for encodings that are, or are
// not.
void FillCompatibility(const v1::ExperimentSpecification& readings,
                       v1::ExperimentSpecification& specification);

// Sets what depends on other fields, where it is not set: interval_lengths, interval_sequences,
// seen_up_to and what a projection lacks. Called after the checks, so that a mistake is not derived
// again.
void FillDependent(v1::ExperimentSpecification& specification);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_DEFAULTS_H_
