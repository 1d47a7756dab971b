#include "server/self_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/log.h"

namespace lengthwise::server {

SelfCheck::SelfCheck(absl::Duration interval, std::function<absl::Status()> check,
                     std::function<void(const absl::Status&)> give_up)
    : check_(std::move(check)),
      give_up_(std::move(give_up)),
      thread_(interval, [this] { return Check(); }) {}

bool SelfCheck::Check() {
  const absl::Status status = check_();
  if (status.ok()) {
    failures_ = 0;
    return true;
  }
  platform::LogWarning(
      absl::StrCat("the server cannot be reached from its own machine: ", status.message()));
  if (++failures_ < kFailures) return true;
  give_up_(status);
  return false;
}

}  // namespace lengthwise::server
