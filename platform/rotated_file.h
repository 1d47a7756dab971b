// Appends to a log file of bounded size: "PATH", with older parts in "PATH.1" (the newest) to
// "PATH.N".
#ifndef LENGTHWISE_PLATFORM_ROTATED_FILE_H_
#define LENGTHWISE_PLATFORM_ROTATED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

struct RotatedFile {
  std::string path;
  // Maximum size of a part in bytes. A file that would exceed it is rotated.
  int64_t max_bytes = int64_t{16} << 20;
  // Number of parts, including the current one.
  int files = 8;
};

// Appends whole lines: all of them or, on error, none. Creates a missing file with mode 0600.
// Several processes may append to one file. Never rotates what is not a regular file (a terminal,
// /dev/null).
//
// Does not sync: a power failure may lose the newest lines. Errors are those of files.h.
absl::Status AppendLines(const RotatedFile& file, absl::string_view lines);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_ROTATED_FILE_H_
