#include "specification/component_parameters.h"

namespace lengthwise::specification {

catalogue::Parameters ParametersOf(const v1::Component& component) {
  catalogue::Parameters parameters;
  for (const auto& [name, value] : component.parameters()) {
    switch (value.kind_case()) {
      case google::protobuf::Value::kBoolValue:
        parameters.Set(name, value.bool_value());
        break;
      case google::protobuf::Value::kNumberValue:
        parameters.Set(name, value.number_value());
        break;
      case google::protobuf::Value::kStringValue:
        parameters.Set(name, value.string_value());
        break;
      default:
        break;
    }
  }
  return parameters;
}

}  // namespace lengthwise::specification
