// Formats the output of `PROGRAM --version`. `lengthwise doctor` parses its first line.
#ifndef LENGTHWISE_PLATFORM_VERSION_TEXT_H_
#define LENGTHWISE_PLATFORM_VERSION_TEXT_H_

#include <string>

#include "platform/version.h"

namespace lengthwise::platform {

// Returns "lengthwise_worker 0.1.0 (3b42ce7)", without the revision if it is unknown.
inline std::string VersionText(const std::string& program) {
  const std::string revision = kSourceRevision;
  return program + " " + kVersion + (revision.empty() ? "" : " (" + revision + ")");
}

// "built by GCC 12.2.0, optimized".
inline std::string BuildText() {
#ifdef __clang__
  std::string text = "built by " __VERSION__;
#else
  std::string text = "built by GCC " __VERSION__;
#endif
#ifdef NDEBUG
  text += ", optimized";
#endif
  return text;
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_VERSION_TEXT_H_
