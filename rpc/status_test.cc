#include "rpc/status.h"

#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::rpc {
namespace {

TEST(Status, OkStaysOkInBothDirections) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(Status, CodesKeepTheirMeaning) {
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ToGrpcStatus(absl::AlreadyExistsError("")).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ToGrpcStatus(absl::PermissionDeniedError("")).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ToGrpcStatus(absl::DataLossError("")).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ToGrpcStatus(absl::UnavailableError("")).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(Status, AStatusWithoutPayloadHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::NotFoundError("no experiments/a-1"));
  EXPECT_EQ(status.error_message(), "no experiments/a-1");
  EXPECT_TRUE(status.error_details().empty());
}

TEST(Status, UnavailableHasDetailsUnlikeGrpcs) {
  const absl::Status full = absl::UnavailableError("nothing was stored: the disk is full");
  const grpc::Status status = ToGrpcStatus(full);
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(status.error_details()));
  EXPECT_EQ(wire.code(), 14);  // UNAVAILABLE in google/rpc/code.proto
  EXPECT_EQ(wire.message(), "nothing was stored: the disk is full");
  EXPECT_EQ(FromGrpcStatus(status), full);
}

TEST(Status, FieldViolationsTravelAsGoogleRpcStatus) {
  const grpc::Status status = ToGrpcStatus(InvalidField("page_size", "is -1; accepted: 0 to 1000"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "page_size: is -1; accepted: 0 to 1000");

  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(status.error_details()));
  EXPECT_EQ(wire.code(), 3);  // INVALID_ARGUMENT in google/rpc/code.proto
  EXPECT_EQ(wire.message(), status.error_message());
  ASSERT_EQ(wire.details_size(), 1);
  EXPECT_EQ(wire.details(0).type_url(), "type.googleapis.com/google.rpc.BadRequest");
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(wire.details(0).UnpackTo(&bad_request));
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).field(), "page_size");
  EXPECT_EQ(bad_request.field_violations(0).description(), "is -1; accepted: 0 to 1000");
}

TEST(Status, RoundTripsOverTheWire) {
  absl::Status status = InvalidField("name", "is empty");
  status.SetPayload("type.googleapis.com/other", absl::Cord(std::string("\0\xff", 2)));
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
}

TEST(Status, ProxysHttpStatusIsNoAnswerOfAServer) {
  // gRPC makes UNIMPLEMENTED of 404 and PERMISSION_DENIED of 403, which end a worker and its trial.
  for (const auto code : {grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::PERMISSION_DENIED}) {
    const grpc::Status page(code, "Received http2 header with status: 404");
    EXPECT_EQ(ToStatus(page),
              absl::UnavailableError("Received http2 header with status: 404; what answers is no "
                                     "Lengthwise server, but perhaps a proxy"));
    const grpc::Status said(code, "no such call");
    EXPECT_EQ(ToStatus(said).code(), static_cast<absl::StatusCode>(code));
  }
}

TEST(Status, DetailsThatAreNoGoogleRpcStatusAreDropped) {
  const grpc::Status status(grpc::StatusCode::INTERNAL, "broken", "\xff\xff\xff");
  EXPECT_EQ(FromGrpcStatus(status), absl::InternalError("broken"));
}

}  // namespace
}  // namespace lengthwise::rpc
