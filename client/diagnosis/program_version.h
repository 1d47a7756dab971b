// Which build a program is, and whether two are one.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_PROGRAM_VERSION_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_PROGRAM_VERSION_H_

#include <string>

namespace lengthwise::client {

struct ProgramVersion {
  std::string version;
  // Empty where unknown.
  std::string revision = {};
};

// "0.1.0 (3b42ce7)".
inline std::string VersionText(const ProgramVersion& program) {
  return program.version + (program.revision.empty() ? "" : " (" + program.revision + ")");
}

// As far as is known.
inline bool SameBuild(const ProgramVersion& a, const ProgramVersion& b) {
  return a.version == b.version &&
         (a.revision.empty() || b.revision.empty() || a.revision == b.revision);
}

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_PROGRAM_VERSION_H_
