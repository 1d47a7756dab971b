// The first line of `PROGRAM --version`, which `lengthwise doctor` reads.
#ifndef LENGTHWISE_PLATFORM_VERSION_TEXT_H_
#define LENGTHWISE_PLATFORM_VERSION_TEXT_H_

#include <string>

#include "platform/version.h"

namespace lengthwise::platform {

// "lengthwise_worker 0.1.0 (3b42ce7)"; the revision where it is known.
inline std::string VersionText(const std::string& program) {
  const std::string revision = kSourceRevision;
  return program + " " + kVersion + (revision.empty() ? "" : " (" + revision + ")");
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_VERSION_TEXT_H_
