// A log file of bounded size: "PATH", and the parts before it as "PATH.1" (the newest) to "PATH.N".
#ifndef LENGTHWISE_PLATFORM_ROTATED_FILE_H_
#define LENGTHWISE_PLATFORM_ROTATED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

struct RotatedFile {
  std::string path;
  // A file that would grow beyond this is renamed, and a new one begun.
  int64_t max_bytes = int64_t{16} << 20;
  // With the current one.
  int files = 8;
};

// Appends whole lines: all of them or, if there is an error, none. Makes the file, for its owner
// alone (mode 0600), if it is missing. Several processes may append to one file. What is not a
// regular file (a terminal, /dev/null) is written to and never renamed.
//
// Does not sync: what was written before a loss of power may be lost. Errors: platform/files.h.
absl::Status AppendLines(const RotatedFile& file, absl::string_view lines);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_ROTATED_FILE_H_
