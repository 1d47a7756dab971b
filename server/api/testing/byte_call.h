// Calls any method with serialized messages, for services whose protos are not installed with gRPC:
// health checking and reflection. For tests.
#ifndef LENGTHWISE_SERVER_API_TESTING_BYTE_CALL_H_
#define LENGTHWISE_SERVER_API_TESTING_BYTE_CALL_H_

#include <chrono>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"

namespace lengthwise::server {

// Sends one serialized message to a method ("/grpc.health.v1.Health/Check") and returns the first
// response. The test fails if the call fails.
inline std::string CallWithBytes(const std::string& address, const std::string& method,
                                 const std::string& request, const std::string& token = "") {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto wait = [&] {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  EXPECT_TRUE(wait());
  const grpc::Slice slice(request);
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  EXPECT_TRUE(wait());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  EXPECT_TRUE(wait());
  call->WritesDone(nullptr);
  EXPECT_TRUE(wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(wait());
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  EXPECT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_TESTING_BYTE_CALL_H_
