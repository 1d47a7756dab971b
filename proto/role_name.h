// The roles of tokens, and their names in texts and files.
#ifndef LENGTHWISE_PROTO_ROLE_NAME_H_
#define LENGTHWISE_PROTO_ROLE_NAME_H_

#include <string>

#include "absl/strings/ascii.h"
#include "proto/access_service.pb.h"

namespace lengthwise {

inline constexpr v1::Role kRoles[] = {v1::VIEWER, v1::SUBMITTER, v1::WORKER, v1::ADMIN, v1::BACKUP};

// "viewer", "submitter", "worker", "admin" or "backup"; "denied" for ROLE_UNSPECIFIED.
inline std::string RoleName(v1::Role role) {
  return role == v1::ROLE_UNSPECIFIED ? "denied" : absl::AsciiStrToLower(v1::Role_Name(role));
}

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_ROLE_NAME_H_
