// Reads security-critical files, which only their owner and root can change or replace.
//
// A file's own mode is not enough: a user who can write to its directory, or to a parent of that,
// can replace the file.
#ifndef LENGTHWISE_PLATFORM_PRIVATE_FILES_H_
#define LENGTHWISE_PLATFORM_PRIVATE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lengthwise::platform {

// OK if only the process's effective user and root can put a file into `directory` or replace the
// directory itself:
//   - one of them owns it, and no other user can write to it;
//   - the same holds for all its parents, or they are sticky, as /tmp is;
//   - symbolic links on the way are followed and checked in the same way.
// A group that has the user's name and no other member counts as the user.
//
// FAILED_PRECONDITION names the first directory that others can change, and the command that fixes
// it; otherwise the errors of platform/files.h.
absl::Status CheckPrivateDirectory(const std::string& directory);

// Returns the contents of `directory`/`name`: a regular file in a private directory, owned by the
// process's effective user and closed to all others (mode 0600 or less). Opens the file once,
// relative to the checked directory, so that the checked file is the one that is read.
//
// FAILED_PRECONDITION as above, also for a symbolic link; otherwise the errors of platform/files.h.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& directory, const std::string& name);
// The same for a file that others may read, and that root may own (mode 0644 or less). Follows the
// links in `path`.
absl::StatusOr<std::string> ReadTrustedFile(const std::string& path);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PRIVATE_FILES_H_
