// SelfCheck: regularly checks that the server can be reached, and gives up when it cannot.
#ifndef LENGTHWISE_SERVER_SELF_CHECK_H_
#define LENGTHWISE_SERVER_SELF_CHECK_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/periodic_thread.h"

namespace lengthwise::server {

// Runs a thread that checks every `interval`, until destroyed.
class SelfCheck {
 public:
  // Consecutive failures before it gives up. A single one may be a paused machine.
  static constexpr int kFailures = 3;

  // `check` must return within a bounded time. `give_up` is called once, with the last failure.
  SelfCheck(absl::Duration interval, std::function<absl::Status()> check,
            std::function<void(const absl::Status&)> give_up);

 private:
  // Returns false after giving up.
  bool Check();

  const std::function<absl::Status()> check_;
  const std::function<void(const absl::Status&)> give_up_;
  int failures_ = 0;  // in a row
  platform::PeriodicThread thread_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SELF_CHECK_H_
