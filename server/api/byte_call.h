// Calls any method with serialized messages, for services whose protos are not installed with gRPC:
// health checking and reflection. For tests.
#ifndef LENGTHWISE_SERVER_API_BYTE_CALL_H_
#define LENGTHWISE_SERVER_API_BYTE_CALL_H_

#include <string>

namespace lengthwise::server {

// Sends one serialized message to a method ("/grpc.health.v1.Health/Check") and returns the first
// response. The test fails if the call fails.
std::string CallWithBytes(const std::string& address, const std::string& method,
                          const std::string& request);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_BYTE_CALL_H_
