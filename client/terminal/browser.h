// Shows a file in what the user looks at such files with.
#ifndef LENGTHWISE_CLIENT_TERMINAL_BROWSER_H_
#define LENGTHWISE_CLIENT_TERMINAL_BROWSER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace lengthwise::client {

// Starts $BROWSER, or xdg-open where there is a display, and does not wait for it.
// FAILED_PRECONDITION where there is neither says what to do with `path`. `environment` is getenv.
absl::Status OpenInBrowser(const std::string& path,
                           const std::function<const char*(const char*)>& environment);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_TERMINAL_BROWSER_H_
