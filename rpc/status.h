// Errors at the API's edge: absl::Status inside, grpc::Status on the wire.
//
// Payloads of an absl::Status are sent in the trailing metadata "grpc-status-details-bin", as
// details of a serialized google.rpc.Status, where clients of any language expect them (Google's
// error model, https://aip.dev/193). An UNAVAILABLE of the server always has details. One that gRPC
// reports because it cannot reach the server never has any. So a client can tell the server's
// message ("the disk is full") from gRPC's.
#ifndef LENGTHWISE_RPC_STATUS_H_
#define LENGTHWISE_RPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace lengthwise::rpc {

// For servers. Converts code, message and every payload; a payload's type URL becomes the detail's.
// Without payloads, only UNAVAILABLE has details: code and message. Logs failures of the server
// itself.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The inverse. Details that cannot be parsed are dropped.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Code and message alone, for messages to users: payloads are not text. An error has a message,
// even if the server sent none. UNAVAILABLE for an answer that no Lengthwise server gives, such as
// a proxy's page.
absl::Status ToStatus(const grpc::Status& status);

// INVALID_ARGUMENT "field: description" with one google.rpc.BadRequest field violation.
absl::Status InvalidField(absl::string_view field, absl::string_view description);

// The violations of the status's BadRequest, one "field: description" per line; empty without one.
std::string FieldViolations(const absl::Status& status);

// RESOURCE_EXHAUSTED with a google.rpc.RetryInfo: the call may be repeated after `delay`.
absl::Status ExhaustedFor(absl::Duration delay, absl::string_view message);

// The delay of the status's RetryInfo. Zero if it has none.
absl::Duration RetryDelay(const absl::Status& status);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_STATUS_H_
