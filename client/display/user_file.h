// Writes files that a user named, such as a picture or a report.
#ifndef LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_
#define LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::client {

// Checks as far as possible in advance that WriteForUser can write to `path`, for commands that
// take long before they write. FAILED_PRECONDITION says why not and what to do.
absl::Status CheckWritable(const std::string& path);

// Writes a file with the user's default permissions and follows symbolic links. An existing regular
// file is replaced only when the new one is complete. FAILED_PRECONDITION says why it cannot be
// written.
absl::Status WriteForUser(const std::string& path, absl::string_view text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_USER_FILE_H_
