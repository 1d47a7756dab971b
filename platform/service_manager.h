// Notifies the service manager (systemd) of this process's state, by the protocol of sd_notify(3).
#ifndef LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_
#define LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Reports that the service is ready; `status` is a line for `systemctl status`. Both calls are
// no-ops without a service manager ($NOTIFY_SOCKET is not set), and return an error, which callers
// may ignore, if it cannot be reached.
absl::Status NotifyReady(absl::string_view status);

// Reports that the service is stopping.
absl::Status NotifyStopping();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SERVICE_MANAGER_H_
