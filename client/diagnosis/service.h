// Checks a server by its answers: reachability, the caller's identity, versions, clocks, workers
// and disk space.
#ifndef LENGTHWISE_CLIENT_DIAGNOSIS_SERVICE_H_
#define LENGTHWISE_CLIENT_DIAGNOSIS_SERVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/diagnosis/finding.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/fleet_service.pb.h"

namespace lengthwise::client {

// The answers that Connection returned (connection/connection.h).
struct ServiceAnswers {
  std::string address;
  absl::StatusOr<v1::Caller> caller;
  absl::StatusOr<v1::Server> server;
  // This machine's clock before and after the call for `server`.
  absl::Time asked;
  absl::Time answered;
  absl::StatusOr<v1::ListWorkersResponse> workers;
  absl::StatusOr<v1::Storage> storage;
};

// Compares the versions of server and workers with `client`, this program's version.
Findings InspectService(const ServiceAnswers& answers, const ProgramVersion& client);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_SERVICE_H_
