// The display name of a task, a network or an encoding.
#ifndef LENGTHWISE_PROTO_COMPONENT_LABEL_H_
#define LENGTHWISE_PROTO_COMPONENT_LABEL_H_

#include <string>

#include "proto/specification.pb.h"

namespace lengthwise {

inline const std::string& LabelOf(const v1::Component& component) {
  return component.label().empty() ? component.name() : component.label();
}

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_COMPONENT_LABEL_H_
