// What a specification has where its author says nothing: the protocol's values, then those that
// proto/specification.proto states.
#ifndef LENGTHWISE_SPECIFICATION_DEFAULTS_H_
#define LENGTHWISE_SPECIFICATION_DEFAULTS_H_

#include <optional>
#include <vector>

#include "proto/specification.pb.h"
#include "specification/protocols.h"

namespace lengthwise::specification {

// A protocol's values as a message. Aborts where the protocol's text has a mistake (a test reads
// them all).
v1::ExperimentSpecification ProtocolSpecification(const ProtocolEntry& protocol);

// The same of the parts of its ReferenceCode.
struct CodeReadings {
  v1::ExperimentSpecification components;
  std::vector<v1::ExperimentSpecification> networks_with_encodings;
  v1::ExperimentSpecification several_lengths;
};
// Absent where there is no released code.
std::optional<CodeReadings> ReferenceCodeReadings(const ProtocolEntry& protocol);

// Sets every unset field that `protocol` or the stated defaults have; a component's unset
// parameters get the values of the protocol's first component of that name in the same place.
void FillDefaults(const v1::ExperimentSpecification& protocol,
                  v1::ExperimentSpecification& specification);

// Sets what the released code has where training.lengths, the user's or else the protocol's, has
// several lengths. Before FillDefaults, since the protocol has the text's values.
void FillCodeOfSeveralLengths(const CodeReadings& readings,
                              const v1::ExperimentSpecification& protocol,
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
