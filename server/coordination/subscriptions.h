// Subscriptions: callbacks that are run when an experiment changes.
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

// A subscription. It ends when this object is destroyed.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

// Thread-safe. Must outlive its subscriptions.
class Subscriptions {
 public:
  // `experiment` is an id. The callbacks run under the subscription's lock. They must not destroy
  // the subscription, nor take a lock that another thread holds while destroying it.
  std::unique_ptr<Subscription> Subscribe(absl::string_view experiment, std::function<void()> wake,
                                          std::function<void(const v1::TrialProgress&)> progress);

  // Number of active subscriptions.
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
