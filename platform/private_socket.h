// A place for a Unix socket that only its user can open.
#ifndef LENGTHWISE_PLATFORM_PRIVATE_SOCKET_H_
#define LENGTHWISE_PLATFORM_PRIVATE_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"

namespace lengthwise::platform {

// Returns the path of a socket `name`, which does not exist, in a directory of mode 0700 that is
// created if missing: "lengthwise-UID" in the first of $TMPDIR, /tmp and $XDG_RUNTIME_DIR whose
// file system has sockets and whose path leaves room for one (107 bytes). Sockets that killed
// processes left there are deleted: `name` at once, so only one process at a time may use it, and
// others on which nobody has listened for a minute.
// $XDG_RUNTIME_DIR is last because it is deleted at logout, which a run may outlive.
//
// FAILED_PRECONDITION if there is no such place; the message has the reason for each.
absl::StatusOr<std::string> PrivateSocketPath(const std::string& name);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PRIVATE_SOCKET_H_
