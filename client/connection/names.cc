#include "client/connection/names.h"

#include <utility>

#include "platform/status_macros.h"

namespace lengthwise::client {

using FindRequest = Connection::FindRequest;

absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text,
                                              FindRequest::Use use) {
  ASSIGN_OR_RETURN(auto found, connection.Find(text, use, FindRequest::EXPERIMENT));
  return std::move(*found.mutable_experiment());
}

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text) {
  ASSIGN_OR_RETURN(auto found, connection.Find(text, FindRequest::READ, FindRequest::TRIAL));
  return std::move(*found.mutable_trial());
}

}  // namespace lengthwise::client
