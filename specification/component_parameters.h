// The parameters of a component as catalogues take them.
#ifndef LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_
#define LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_

#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Of a component that was resolved before. Numbers are doubles, which catalogue::Resolve takes for
// integers where a parameter is one; what is no number, text or flag is passed over.
catalogue::Parameters ParametersOf(const v1::Component& component);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMPONENT_PARAMETERS_H_
