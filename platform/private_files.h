// Files on which access rights rest: nobody but their owner and root can change or replace them.
//
// A file's own mode is not enough. Who may write to its directory, or to one above that, puts
// another file in its place.
#ifndef LENGTHWISE_PLATFORM_PRIVATE_FILES_H_
#define LENGTHWISE_PLATFORM_PRIVATE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lengthwise::platform {

// OK if only the process's effective user and root can put a file into `directory` or replace the
// directory itself:
//   - it belongs to one of them, and nobody else may write to it;
//   - so do all directories that lead to it, or they are sticky, as /tmp is;
//   - symbolic links on the way are followed and checked alike.
// A group that has the user's name and no other member counts as the user.
//
// FAILED_PRECONDITION names the first directory that others can change, and the command that mends
// it; otherwise the errors of platform/files.h.
absl::Status CheckPrivateDirectory(const std::string& directory);

// The contents of `directory`/`name`, a regular file that belongs to the process's effective user
// and is closed to everyone else (mode 0600 or less), in a private directory. What is checked is
// what is read: the file is opened once, relative to the directory that was checked.
//
// FAILED_PRECONDITION as above, also for a symbolic link; otherwise the errors of platform/files.h.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& directory, const std::string& name);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PRIVATE_FILES_H_
