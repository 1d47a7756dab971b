#include "rpc/transport.h"

#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

namespace lengthwise::rpc {
namespace {

TEST(TransportTest, LastChannelDoesNotShutTheLibraryDown) {
  KeepGrpcInitialized();
  KeepGrpcInitialized();
  grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()).reset();
  EXPECT_EQ(grpc_is_initialized(), 1);
}

}  // namespace
}  // namespace lengthwise::rpc
