#include "platform/grpc_lifetime.h"

#include "grpc/grpc.h"

namespace lengthwise::platform {

void KeepGrpcInitialized() {
  static const bool initialized = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(initialized);
}

}  // namespace lengthwise::platform
