// Finds an rpc by the type of its request. No two rpcs have the same.
#ifndef LENGTHWISE_RPC_METHOD_H_
#define LENGTHWISE_RPC_METHOD_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace lengthwise::rpc {

// Returns the rpc with this request, whose file must define its service; null if there is none.
inline const google::protobuf::MethodDescriptor* FindMethod(
    const google::protobuf::Descriptor& request) {
  const google::protobuf::FileDescriptor& file = *request.file();
  for (int i = 0; i < file.service_count(); ++i) {
    const google::protobuf::ServiceDescriptor& service = *file.service(i);
    for (int m = 0; m < service.method_count(); ++m) {
      if (service.method(m)->input_type() == &request) return service.method(m);
    }
  }
  return nullptr;
}

// "lengthwise.v1.ExperimentService/GetTrial".
inline std::string NameOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat(method.service()->full_name(), "/", method.name());
}

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_METHOD_H_
