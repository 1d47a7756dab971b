// Who wants to hear of an experiment.
#ifndef LENGTHWISE_SERVER_COORDINATION_SUBSCRIPTIONS_H_
#define LENGTHWISE_SERVER_COORDINATION_SUBSCRIPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"

namespace lengthwise::server {

// What Subscribe returns; the subscription ends when it is destroyed.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

// Thread-safe. Must outlive the subscriptions that it made.
class Subscriptions {
 public:
  // `experiment` is an id. The callbacks run under the subscription's lock: they must not destroy
  // it, nor take a lock under which another thread destroys it.
  std::unique_ptr<Subscription> Subscribe(absl::string_view experiment, std::function<void()> wake,
                                          std::function<void(const v1::TrialProgress&)> progress);

  // That have not ended.
  int64_t size();

  void Wake(absl::string_view experiment);
  void Progress(absl::string_view experiment, const v1::TrialProgress& progress);

 private:
  struct Subscriber {
    platform::Mutex mutex;
    bool active ABSL_GUARDED_BY(mutex) = true;
    std::function<void()> wake;
    std::function<void(const v1::TrialProgress&)> progress;
  };
  class Handle;

  std::vector<std::shared_ptr<Subscriber>> SubscribersOf(absl::string_view experiment);

  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, std::vector<std::shared_ptr<Subscriber>>> subscribers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUBSCRIPTIONS_H_
