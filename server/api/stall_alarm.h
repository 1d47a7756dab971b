// Notices that a read or write of a stream takes too long. gRPC does not: the peer's connection may
// be alive and answer pings.
#ifndef LENGTHWISE_SERVER_API_STALL_ALARM_H_
#define LENGTHWISE_SERVER_API_STALL_ALARM_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"

namespace lengthwise::server {

// One alarm serves many operations, one at a time. All calls need the stream's lock. The alarm
// keeps no stream alive.
template <typename Stream>
class StallAlarm {
 public:
  // `check` is called without the lock, on gRPC's threads. It asks Expired.
  StallAlarm(absl::Duration patience, void (Stream::*check)())
      : patience_(patience), check_(check) {}

  // An operation begins.
  void Begin(std::weak_ptr<Stream> stream) {
    began_ = std::chrono::steady_clock::now();
    if (!watching_) Watch(std::move(stream), patience_);
  }

  // Returns true if an operation is `outstanding` and has taken as long as the patience lasts.
  // While one that has not is outstanding, `check` will be called again.
  bool Expired(std::weak_ptr<Stream> stream, bool outstanding) {
    watching_ = false;
    if (!outstanding) return false;  // the next one starts the watch again
    const absl::Duration left =
        patience_ - absl::FromChrono(std::chrono::steady_clock::now() - began_);
    if (left <= absl::ZeroDuration()) return true;
    Watch(std::move(stream), left);
    return false;
  }

 private:
  void Watch(std::weak_ptr<Stream> stream, absl::Duration time) {
    watching_ = true;
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(absl::ToInt64Milliseconds(time) + 1, GPR_TIMESPAN)),
        [weak = std::move(stream), check = check_](bool is_time) {
          const std::shared_ptr<Stream> locked = weak.lock();
          if (is_time && locked != nullptr) (locked.get()->*check)();
        });
  }

  const absl::Duration patience_;
  void (Stream::*const check_)();
  std::unique_ptr<grpc::Alarm> alarm_;
  std::chrono::steady_clock::time_point began_;
  bool watching_ = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_STALL_ALARM_H_
