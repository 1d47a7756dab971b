// What a look at an installation found.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_

#include <string>
#include <vector>

namespace lengthwise::client {

enum class Verdict {
  kOk,
  // It could not be looked at, and nothing follows from that.
  kSkipped,
  // It works, but not as it should, or not for everything.
  kWarning,
  kFailure,
};

struct Finding {
  Verdict verdict = Verdict::kOk;
  // What was looked at, a word or two.
  std::string subject;
  // What was found, in one line.
  std::string found;
  // What to do about it, in one line; empty where there is nothing to do.
  std::string advice = {};
};

using Findings = std::vector<Finding>;

// Which build a program is.
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

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_FINDING_H_
