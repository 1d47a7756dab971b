// Looks at what is on this machine: settings, tokens, certificates, programs.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/diagnosis/finding.h"
#include "rpc/settings.h"

namespace lengthwise::client {

// The configuration file, and the settings in effect with their sources. Where `settings` is an
// error it is the only finding.
Findings InspectSettings(const absl::StatusOr<rpc::Settings>& settings,
                         const rpc::Environment& environment);

// The token's file and the certificates that the settings name.
Findings InspectCredentials(const rpc::Settings& settings, absl::Time now);

// A program that `lengthwise run` starts: `path` as FindProgram of embedded/private_service.h
// found it. It is asked for its version, which one that lacks a library (LibTorch, of a worker)
// cannot tell. The first line of `--version` is compared with `client`, this program; others tell
// what it found, after "warning: " what is wrong and, behind the last "; ", what to do.
Finding InspectProgram(const std::string& name, const absl::StatusOr<std::string>& path,
                       const ProgramVersion& client);

// The worker's part of `lengthwise --version`: what the worker at `path` (as above) prints for
// `--version`, or one line that says why there is none.
std::string DescribeWorker(const absl::StatusOr<std::string>& path);

// The Python environment in which results are drawn, analysed and compared: `python` as FindPython
// of python/python_program.h found it.
Finding InspectPython(const absl::StatusOr<std::string>& python);

// Whether the terminal shows the boxes and blocks of tables and charts, by its locale.
Finding InspectLocale(const rpc::Environment& environment);

// The first directory of `path`, with colons between them, that has the program; empty: none has.
std::string FindInPath(const std::string& program, const std::string& path);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_INSTALLATION_H_
