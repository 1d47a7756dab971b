// From what a user types to a resource's name.
#ifndef LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
#define LENGTHWISE_CLIENT_CONNECTION_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// "quickstart-1" of "experiments/quickstart-1"; the trial's id of a trial's name.
std::string ShortName(const std::string& name);

// What a file or directory of a resource may be called: its short name. Names come from a server,
// so FAILED_PRECONDITION refuses what would lead out of a directory, or is no name of a file: "..",
// control characters, nothing.
absl::StatusOr<std::string> FileNameOf(const std::string& name);

// Whether `text` names a trial: "experiments/E/trials/T", "E/trials/T" or "E/T".
bool NamesTrial(const std::string& text);

// Accepts "experiments/quickstart-1", "quickstart-1", a specification's name ("quickstart": its
// newest experiment) and a prefix that only one experiment has. NOT_FOUND says what is there
// instead.
absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text);

// Accepts "experiments/E/trials/T", "E/trials/T" and "E/T", where E is what FindExperiment accepts
// and T is a trial's id, a prefix that only one has, or its index in the grid.
absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
