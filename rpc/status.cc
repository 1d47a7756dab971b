#include "rpc/status.h"

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::rpc {
namespace {

constexpr absl::string_view kTypeUrlPrefix = "type.googleapis.com/";

// How gRPC begins to describe an answer that no Lengthwise server gives: without a status, without
// a message, compressed, or with an HTTP status other than 200.
constexpr const char* kForeign[] = {"No status received", "Stream removed",
                                    "No message returned for unary request",
                                    "Compression algorithm ", "Received http2 header with status"};

std::string TypeUrl(const google::protobuf::Message& detail) {
  return absl::StrCat(kTypeUrlPrefix, detail.GetDescriptor()->full_name());
}

void SetDetail(const google::protobuf::Message& detail, absl::Status& status) {
  status.SetPayload(TypeUrl(detail), absl::Cord(detail.SerializeAsString()));
}

// Returns false if the status has no such detail.
bool GetDetail(const absl::Status& status, google::protobuf::Message& detail) {
  const absl::optional<absl::Cord> payload = status.GetPayload(TypeUrl(detail));
  return payload.has_value() && detail.ParseFromString(std::string(*payload));
}

// Logs the server's own failures for its operator. A stopping server is not logged for every call.
void LogFailure(const absl::Status& status) {
  static auto* const log = new platform::LimitedLog(absl::Seconds(10));
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (absl::StartsWith(status.message(), "the server is stopping")) return;
      [[fallthrough]];
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      log->Error(absl::StrCat("a call failed: ",
                              status.ToString(absl::StatusToStringMode::kWithNoExtraData)));
      return;
    default:
      return;
  }
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  LogFailure(status);
  // The two enumerations have the same numbers.
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::string message(status.message());
  google::rpc::Status wire;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *wire.add_details();
    detail.set_type_url(std::string(type_url));
    detail.set_value(std::string(payload));
  });
  if (wire.details().empty() && code != grpc::StatusCode::UNAVAILABLE) {
    return grpc::Status(code, message);
  }
  wire.set_code(static_cast<int>(code));
  wire.set_message(message);
  return grpc::Status(code, message, wire.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result = ToStatus(status);
  google::rpc::Status wire;
  if (wire.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : wire.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // gRPC and Abseil share the codes of google.rpc.Code.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string& message = status.error_message();
  if (message.empty()) {
    return absl::Status(code, absl::StrCat("the server ended the call with status ",
                                           status.error_code(), " and gave no reason"));
  }
  if (code == absl::StatusCode::kResourceExhausted && message == "Buffers full") {
    return absl::ResourceExhaustedError("the answer is larger than this program accepts");
  }
  const bool is_foreign =
      status.error_details().empty() && code != absl::StatusCode::kResourceExhausted &&
      absl::c_any_of(kForeign, [&](const char* text) { return absl::StartsWith(message, text); });
  if (!is_foreign) return absl::Status(code, message);
  return absl::UnavailableError(
      absl::StrCat(message, "; what answers is no Lengthwise server, but perhaps a proxy"));
}

absl::Status InvalidField(absl::string_view field, absl::string_view description) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", description));
  google::rpc::BadRequest bad_request;
  google::rpc::BadRequest::FieldViolation& violation = *bad_request.add_field_violations();
  violation.set_field(std::string(field));
  violation.set_description(std::string(description));
  SetDetail(bad_request, status);
  return status;
}

std::string FieldViolations(const absl::Status& status) {
  google::rpc::BadRequest bad_request;
  if (!GetDetail(status, bad_request)) return "";
  std::string lines;
  for (const auto& violation : bad_request.field_violations()) {
    absl::StrAppend(&lines, lines.empty() ? "" : "\n", violation.field(),
                    violation.field().empty() ? "" : ": ", violation.description());
  }
  return lines;
}

absl::Status ExhaustedFor(absl::Duration delay, absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  google::rpc::RetryInfo retry;
  // Round up: a call that comes too early is refused again.
  const int64_t ns = absl::ToInt64Nanoseconds(absl::Ceil(delay, absl::Nanoseconds(1)));
  retry.mutable_retry_delay()->set_seconds(ns / 1'000'000'000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  SetDetail(retry, status);
  return status;
}

absl::Duration RetryDelay(const absl::Status& status) {
  google::rpc::RetryInfo retry;
  if (!GetDetail(status, retry)) return absl::ZeroDuration();
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

}  // namespace lengthwise::rpc
