// Converts a component's parameters to the catalogues' representation.
#ifndef LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_
#define LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_

#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Expects a component that was resolved before. Numbers become doubles; catalogue::Resolve accepts
// them for integer parameters. Values other than numbers, text and booleans are skipped.
catalogue::Parameters ParametersOf(const v1::Component& component);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_
