#include "platform/grpc_lifetime.h"

#include <cstdlib>

#include "grpc/grpc.h"

namespace lengthwise::platform {

void KeepGrpcInitialized() {
  static const bool initialized = [] {
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100", /*overwrite=*/0);
    grpc_init();
    return true;
  }();
  static_cast<void>(initialized);
}

}  // namespace lengthwise::platform
