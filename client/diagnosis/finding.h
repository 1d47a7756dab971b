// Results of the checks of `lengthwise doctor`.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_

#include <string>
#include <vector>

namespace lengthwise::client {

enum class Verdict {
  kOk,
  // Could not be checked. This implies nothing.
  kSkipped,
  // Works, but not as it should or not for everything.
  kWarning,
  kFailure,
};

struct Finding {
  Verdict verdict = Verdict::kOk;
  // Subject of the check, a word or two.
  std::string subject;
  // Result in one line.
  std::string found;
  // Next step in one line; empty if there is nothing to do.
  std::string advice = {};
};

using Findings = std::vector<Finding>;

// Identifies the build of a program.
struct ProgramVersion {
  std::string version;
  // Empty if unknown.
  std::string revision = {};
};

// "0.1.0 (3b42ce7)".
inline std::string VersionText(const ProgramVersion& program) {
  return program.version + (program.revision.empty() ? "" : " (" + program.revision + ")");
}

// Unknown revisions count as equal.
inline bool SameBuild(const ProgramVersion& a, const ProgramVersion& b) {
  return a.version == b.version &&
         (a.revision.empty() || b.revision.empty() || a.revision == b.revision);
}

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_
