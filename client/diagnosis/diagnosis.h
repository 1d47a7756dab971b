// The checks of `lengthwise doctor`: of this machine's settings, tokens, certificates and programs
// (installation.cc), and of a server by its answers (service.cc).
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_DIAGNOSIS_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_DIAGNOSIS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "rpc/settings.h"

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

// Reports the configuration file and the settings in effect with their sources. If `settings` is an
// error, it is the only finding.
Findings InspectSettings(const absl::StatusOr<rpc::Settings>& settings,
                         const rpc::Environment& environment);

// Checks the token file and the certificates that the settings name.
Findings InspectCredentials(const rpc::Settings& settings, absl::Time now);

// Checks a program that `lengthwise run` starts; `path` is the result of FindProgram
// (connection/private_service.h). Runs it with `--version`, which fails if a library is missing,
// such as the worker's LibTorch. The first line of the output is compared with `client`, this
// program's version. The other lines are findings of the program; a line that begins with "warning:
// " is a warning, with its advice after the last "; ".
Finding InspectProgram(const std::string& name, const absl::StatusOr<std::string>& path,
                       const ProgramVersion& client);

// The worker's part of `lengthwise --version`: the output of `--version` of the worker at `path`
// (as above), or one line that says why there is none.
std::string DescribeWorker(const absl::StatusOr<std::string>& path);

// Checks the Python environment that draws, analyzes and compares results; `python` is the result
// of FindPython (commands/python_program.h).
Finding InspectPython(const absl::StatusOr<std::string>& python);

// Checks by the locale if the terminal can show the box and block characters of tables and charts.
Finding InspectLocale(const rpc::Environment& environment);

// The answers that Connection returned (connection/connection.h).
struct ServiceAnswers {
  std::string address;
  bool has_web_token = false;  // which is short-lived, and replaced by another program
  absl::StatusOr<v1::Caller> caller;
  absl::StatusOr<v1::Server> server;
  // This machine's clock before and after the call for `server`.
  absl::Time asked;
  absl::Time answered;
  absl::StatusOr<v1::ListWorkersResponse> workers;
  absl::StatusOr<v1::Storage> storage;
};

// Checks reachability, the caller's identity, clocks, workers and disk space, and compares the
// versions of server and workers with `client`, this program's version.
Findings InspectService(const ServiceAnswers& answers, const ProgramVersion& client);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_DIAGNOSIS_H_
