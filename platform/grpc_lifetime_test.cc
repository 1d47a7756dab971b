#include "platform/grpc_lifetime.h"

#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(GrpcLifetimeTest, LastChannelDoesNotShutTheLibraryDown) {
  KeepGrpcInitialized();
  KeepGrpcInitialized();
  grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()).reset();
  EXPECT_EQ(grpc_is_initialized(), 1);
}

}  // namespace
}  // namespace lengthwise::platform
