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

// A server remembers it until it is restarted; the worker, as long as it lives. Thread-safe.
class PackCapacities {
 public:
  // A pack of so many trials of this shape (Lease.shape) did not fit: half as many are tried next,
  // which is what the server does on its own. A trial that does not fit alone has no capacity.
  void DidNotFit(absl::string_view shape, int64_t trials);

  // Adds what the server was not told yet, or not since ForgetTold.
  void AddUntold(v1::HeartbeatRequest& request) const;
  // The server has answered this request.
  void Told(const v1::HeartbeatRequest& request);
  // The server, or another in its place, knows nothing any more. True if there is anything to tell.
  bool ForgetTold();

 private:
  struct Capacity {
    int32_t trials = 0;
    int32_t told = 0;  // 0: nothing
  };

  mutable platform::Mutex mutex_;
  std::map<std::string, Capacity, std::less<>> capacities_ ABSL_GUARDED_BY(mutex_);  // by shape
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_PACK_CAPACITIES_H_
