// Looks at what a server answers: whether it is there, who it takes the caller for, whether
// versions and clocks agree, whether anybody trains, and whether its disk has room.
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

// Answers as Connection gives them (connection/connection.h).
struct ServiceAnswers {
  std::string address;
  absl::StatusOr<v1::Caller> caller;
  absl::StatusOr<v1::Server> server;
  // By this machine's clock, before and after `server`.
  absl::Time asked;
  absl::Time answered;
  absl::StatusOr<v1::ListWorkersResponse> workers;
  absl::StatusOr<v1::Storage> storage;
};

// Others are compared with `client`, this program.
Findings InspectService(const ServiceAnswers& answers, const ProgramVersion& client);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DIAGNOSIS_SERVICE_H_
