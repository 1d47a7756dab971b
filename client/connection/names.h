// Experiments and trials by what a user calls them.
#ifndef LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
#define LENGTHWISE_CLIENT_CONNECTION_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// Returns "quickstart-1" for "experiments/quickstart-1", and the trial's id for a trial's name.
inline std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// Connection::Find for a text that must mean an experiment, or a trial.
absl::StatusOr<v1::Experiment> FindExperiment(
    Connection& connection, const std::string& text,
    Connection::FindRequest::Use use = Connection::FindRequest::READ);
absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
