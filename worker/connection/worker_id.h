// The name that a worker registers with.
#ifndef LENGTHWISE_WORKER_CONNECTION_WORKER_ID_H_
#define LENGTHWISE_WORKER_CONNECTION_WORKER_ID_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker {

// INVALID_ARGUMENT unless the id is what WorkerDescription accepts: [a-z0-9-]+, at most 60
// characters.
absl::Status ValidateWorkerId(absl::string_view id);

// Host, device and process: "n07-cuda0-4711". Always valid: what an id cannot hold becomes "-", and
// a long host name is cut.
std::string MakeWorkerId(absl::string_view host, absl::string_view device, pid_t process);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_WORKER_ID_H_
