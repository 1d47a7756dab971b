// Files that a user asked for by name, such as a picture or a report.
#ifndef LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_
#define LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::client {

// Whether WriteForUser could write there, as far as that can be told before: for commands that work
// long for what they write. FAILED_PRECONDITION says why not, and what to do.
absl::Status CheckWritable(const std::string& path);

// Writes a file with the permissions that the user gives to new files, and through links. What was
// there stays as it was until all is written. FAILED_PRECONDITION: it cannot be written, and why.
absl::Status WriteForUser(const std::string& path, absl::string_view text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_
