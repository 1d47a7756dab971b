// Tells the service manager (systemd) about this process, by the protocol of sd_notify(3).
#ifndef LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_
#define LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// The service does its work; `status` is a line for `systemctl status`. Both calls do nothing where
// no service manager asked ($NOTIFY_SOCKET is not set), and return an error, which the caller may
// well ignore, where it cannot be reached.
absl::Status NotifyReady(absl::string_view status);

// The service is on its way to its end.
absl::Status NotifyStopping();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_
