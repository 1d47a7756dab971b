// Answers of S3-compatible object stores: what server and workers share.
#ifndef LENGTHWISE_PLATFORM_OBJECT_STORE_H_
#define LENGTHWISE_PLATFORM_OBJECT_STORE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "platform/http_client.h"

namespace lengthwise::platform {

// Time for a request, or without progress of a transfer: half a minute, and a second for each MiB.
absl::Duration TransferTimeout(int64_t bytes);

// Code and message of the XML of an error. Both are empty for other answers. A text that may show a
// signed URL, which is a secret, is left out.
struct ObjectStoreError {
  std::string code;
  std::string message;
};
ObjectStoreError ObjectStoreErrorOf(const HttpResponse& response);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_OBJECT_STORE_H_
