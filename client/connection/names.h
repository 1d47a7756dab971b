// Resolves the names that a user types to resource names.
#ifndef LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
#define LENGTHWISE_CLIENT_CONNECTION_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// Returns "quickstart-1" for "experiments/quickstart-1", and the trial's id for a trial's name.
std::string ShortName(const std::string& name);

// Returns true if `text` names a trial: "experiments/E/trials/T", "E/trials/T" or "E/T".
bool NamesTrial(const std::string& text);

// What a command does with what it finds. To read, the beginning of a name stands for the one name
// that begins so, and a specification's name for the newest of several experiments. "one-1" never
// stands for "one-10". A command that changes something refuses both: another experiment, of
// another person, could be the one that is found.
enum class NameUse { kRead, kChange };

// Accepts "experiments/quickstart-1", "quickstart-1", a specification's name ("quickstart": its
// newest experiment) and a unique prefix. NOT_FOUND suggests existing names. INVALID_ARGUMENT for
// an empty name, such as that of an unset variable.
absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text,
                                              NameUse use = NameUse::kRead);

// Accepts "experiments/E/trials/T", "E/trials/T" and "E/T". FindExperiment resolves E; T is a
// trial's id, a unique prefix of it, or the trial's index in the grid.
absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text,
                                    NameUse use = NameUse::kRead);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_NAMES_H_
