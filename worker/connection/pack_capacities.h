// Remembers, by shape, how many trials fit this worker's device memory at once.
#ifndef LENGTHWISE_WORKER_CONNECTION_PACK_CAPACITIES_H_
#define LENGTHWISE_WORKER_CONNECTION_PACK_CAPACITIES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// A server forgets capacities when it restarts; the worker keeps them as long as it runs.
// Thread-safe.
class PackCapacities {
 public:
  // Records that a pack of `trials` trials of this shape (Lease.shape) did not fit. The capacity
  // becomes half as many, the size that the server tries next. A single trial that does not fit
  // sets no capacity.
  void DidNotFit(absl::string_view shape, int64_t trials);
  // Records that at most `trials` trials of this shape would fit, judging by a pack's use of
  // memory. Capacities only fall: a pack shows its need when it has reached its longest sequences.
  void Measured(absl::string_view shape, int64_t trials);

  // Adds all capacities: a server that has restarted or been replaced knows none.
  void AddTo(v1::SynchronizeRequest& request) const;

 private:
  void Limit(absl::string_view shape, int64_t trials);

  mutable platform::Mutex mutex_;
  std::map<std::string, int32_t, std::less<>> capacities_ ABSL_GUARDED_BY(mutex_);  // by shape
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_PACK_CAPACITIES_H_
