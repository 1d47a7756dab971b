// Resolves the names that a user types to resource names.
#ifndef LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
#define LENGTHWISE_CLIENT_CONNECTION_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// Returns "quickstart-1" for "experiments/quickstart-1", and the trial's id for a trial's name.
std::string ShortName(const std::string& name);

// Returns a safe file or directory name for a resource: its short name. Names come from a server,
// so a name that could leave the directory or is not a file name ("..", control characters, empty)
// gives FAILED_PRECONDITION.
absl::StatusOr<std::string> FileNameOf(const std::string& name);

// Returns true if `text` names a trial: "experiments/E/trials/T", "E/trials/T" or "E/T".
bool NamesTrial(const std::string& text);

// Accepts "experiments/quickstart-1", "quickstart-1", a specification's name ("quickstart": its
// newest experiment) and a unique prefix. NOT_FOUND suggests existing names.
absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text);

// Accepts "experiments/E/trials/T", "E/trials/T" and "E/T". FindExperiment resolves E; T is a
// trial's id, a unique prefix of it, or the trial's index in the grid.
absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
