// Makes and validates the id under which a worker registers.
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

// Returns an id from host, device and process, such as "n07-cuda0-4711". It is always valid:
// characters that an id cannot hold become "-", and a long host name is truncated.
std::string MakeWorkerId(absl::string_view host, absl::string_view device, pid_t process);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_WORKER_ID_H_
