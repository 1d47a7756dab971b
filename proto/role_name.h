// The name of a role in texts and files.
#ifndef LENGTHWISE_PROTO_ROLE_NAME_H_
#define LENGTHWISE_PROTO_ROLE_NAME_H_

#include <string>

#include "absl/strings/ascii.h"
#include "proto/access_service.pb.h"

namespace lengthwise {

// "viewer", "submitter", "worker" or "admin".
inline std::string RoleName(v1::Role role) { return absl::AsciiStrToLower(v1::Role_Name(role)); }

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_ROLE_NAME_H_
