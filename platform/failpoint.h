// Named places at which a test makes a program die, fail or pause.
//
// Installed programs contain none: the macros are empty unless a file is compiled with
// LENGTHWISE_WITH_FAILPOINTS, as //tests/faults does for its variants of the programs. List every
// file with failpoints in the `failpoint_sources` of its folder.
//
// The environment at program start selects the actions:
//
//   LENGTHWISE_FAILPOINTS="storage.commit.before=crash@3;file.rename.before=error"
//     crash       the process kills itself with SIGKILL
//     error       the function returns UNAVAILABLE (only at places that can return a status)
//     full        the function returns RESOURCE_EXHAUSTED, as on a full disk
//     delay(N)    N milliseconds pass
//     @K          act only the K-th time that the place is reached, from 1; default: every time
//   LENGTHWISE_FAILPOINTS_REACHED=FILE
//     each name is appended to the file, on its own line, when it is first reached, and
//     "NAME acts" when its action runs
//
// A name tells its place and whether it comes before or after the operation: "outbox.put.after".
#ifndef LENGTHWISE_PLATFORM_FAILPOINT_H_
#define LENGTHWISE_PLATFORM_FAILPOINT_H_

#ifdef LENGTHWISE_WITH_FAILPOINTS

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Thread-safe. In //platform:failpoint_actions. A malformed environment ends the process with a
// message.
absl::Status ReachFailpoint(absl::string_view name);

}  // namespace lengthwise::platform

#define LENGTHWISE_FAILPOINT(name) ::lengthwise::platform::ReachFailpoint(name).IgnoreError()
// In functions that return an absl::Status or StatusOr.
#define LENGTHWISE_FAILPOINT_OR_RETURN(name)                                      \
  do {                                                                            \
    absl::Status failpoint_status = ::lengthwise::platform::ReachFailpoint(name); \
    if (!failpoint_status.ok()) return failpoint_status;                          \
  } while (false)

#else

#define LENGTHWISE_FAILPOINT(name) static_cast<void>(0)
#define LENGTHWISE_FAILPOINT_OR_RETURN(name) static_cast<void>(0)

#endif

#endif  // LENGTHWISE_PLATFORM_FAILPOINT_H_
