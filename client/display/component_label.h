// What listings call a task, a network or an encoding of an experiment.
#ifndef LENGTHWISE_CLIENT_DISPLAY_COMPONENT_LABEL_H_
#define LENGTHWISE_CLIENT_DISPLAY_COMPONENT_LABEL_H_

#include <string>

#include "proto/specification.pb.h"

namespace lengthwise::client {

// The component's label, or its name where it has none.
std::string Label(const v1::Component& component);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_COMPONENT_LABEL_H_
