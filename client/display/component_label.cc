#include "client/display/component_label.h"

namespace lengthwise::client {

std::string Label(const v1::Component& component) {
  return component.label().empty() ? component.name() : component.label();
}

}  // namespace lengthwise::client
