#include "client/commands/request_id.h"

#include <random>

#include "absl/strings/str_format.h"

namespace lengthwise::client {

std::string RandomRequestId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x", device(), device(), device());
}

}  // namespace lengthwise::client
