// A call of any method as bytes, for services whose protos are not installed beside gRPC: health
// checking and reflection.
#ifndef LENGTHWISE_SERVER_API_BYTE_CALL_H_
#define LENGTHWISE_SERVER_API_BYTE_CALL_H_

#include <string>

namespace lengthwise::server {

// Sends one serialized message to a method ("/grpc.health.v1.Health/Check") and returns the first
// answer. A test fails where the call does.
std::string CallWithBytes(const std::string& address, const std::string& method,
                          const std::string& request);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_BYTE_CALL_H_
