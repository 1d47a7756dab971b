// Checks this machine's installation: settings, tokens, certificates and programs.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/diagnosis/finding.h"
#include "rpc/settings.h"

namespace lengthwise::client {

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

// Returns the first directory of the colon-separated `path` that has the program; empty if none
// has.
std::string FindInPath(const std::string& program, const std::string& path);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_
