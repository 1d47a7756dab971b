// What a lease's trials have produced and the server has not acknowledged: bounded, in order, sent
// again when need be.
//
// Each trial has a queue of events with consecutive sequence numbers. A checkpoint stands in it as
// an event whose artifact must be uploaded first: it and the events behind it wait for that. What
// was sent stays until it is acknowledged, so that after a broken stream everything unacknowledged
// is sent again.
#ifndef LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
#define LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/connection/deadline.h"

namespace lengthwise::worker {

// Thread-safe: producers put, one sender takes, anyone closes. Trials are named by their index in
// the lease.
class Outbox {
 public:
  struct Options {
    // Bytes of events and artifacts that may wait; a single item may be larger when nothing else
    // waits.
    int64_t max_bytes = int64_t{256} << 20;
    // A batch ends before either limit would be passed (one event always fits).
    int64_t max_batch_bytes = 1 << 20;
    int32_t max_batch_events = 256;
    // A larger event would not fit into a message; a log line that says so takes its place.
    int64_t max_event_bytes = 7 << 20;
  };

  // An artifact to store before the checkpoint's event can be sent.
  struct Upload {
    int64_t trial = 0;
    int64_t sequence = 0;  // of the checkpoint's event
    int64_t step = 0;
    std::shared_ptr<const std::string> bytes;
  };
  // Nothing, a batch of one trial, or an upload.
  using Work = std::variant<std::monostate, v1::StreamEventsRequest, Upload>;

  Outbox(const v1::Lease& lease, const Options& options);

  // Producers. Both set trial, attempt, sequence and time; wait while the box is full; and drop
  // what comes for a trial that is closed or has had its outcome.
  void Put(int64_t trial, v1::Event event);
  void PutCheckpoint(int64_t trial, int64_t step, std::string bytes);

  // The sender. Next waits for work until `deadline` or Interrupt. An upload is handed out until
  // its result is told; the trials take turns.
  Work Next(TimePoint deadline);
  void Interrupt();
  void UploadStored(const Upload& upload, const v1::Checkpoint& checkpoint);
  // The server will never take this artifact: a temporary failure with the reason takes the
  // checkpoint's place, and what came behind it is dropped. A trial whose model is not stored has
  // not succeeded.
  void UploadRefused(const Upload& upload, absl::string_view reason);
  // Drops what is acknowledged, and carries out refusals: STALE_LEASE closes the trial;
  // SEQUENCE_GAP sends again from the acknowledged number (where that is not here any more, the
  // whole box is closed); INVALID replaces what waits by a temporary failure with the server's
  // detail, and when that is refused too, closes the trial.
  void Acknowledge(const v1::StreamEventsResponse& response);
  // Everything unacknowledged is to be sent again.
  void Resend();
  // Whether something was sent and not acknowledged.
  bool awaits_acknowledgement() const;

  // Drops what waits of a trial, or of all, for good; wakes everyone who waits.
  void CloseTrial(int64_t trial);
  void Close();
  // From `time` on nobody waits any more: who still does, or begins to, finds the box closed.
  void SetPatience(TimePoint time);

  // Waits until nothing is left to send or acknowledge; false when the box was closed instead.
  bool Flush();
  // Sleeps until `time`, or less when the box is closed.
  void Sleep(TimePoint time);

  // Lock-free.
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // The trial takes no more events.
  bool stopped(int64_t trial) const { return stopped_[trial].load(std::memory_order_acquire); }

  // Whether the trial's outcome was acknowledged, or it was closed.
  bool finished(int64_t trial) const;
  int64_t unsent_events() const;
  int64_t unsent_bytes() const;

 private:
  struct Item {
    v1::Event event;
    // A checkpoint's, until it is stored.
    std::shared_ptr<const std::string> artifact;
    int64_t bytes = 0;
  };
  struct Trial {
    std::string name;
    int32_t attempt = 0;
    int64_t last_sequence = 0;  // put
    int64_t acknowledged = 0;   // the first of `items` has the number after it
    size_t sent = 0;            // of `items`, from the front
    std::deque<Item> items;
    bool has_outcome = false;  // put
    bool closed = false;
    bool refused = false;  // what waits is the failure that took a refused batch's place
    bool finished = false;
  };

  void PutItem(int64_t trial, Item item) ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(Trial& trial, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a change, or closes the box when patience is over.
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropItems(Trial& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseTrialLocked(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAcknowledged(Trial& trial, int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReplaceByFailure(int64_t index, const std::string& detail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The item of an upload, or null when it is not waited for any more.
  Item* FindUpload(const Upload& upload) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::StreamEventsRequest TakeBatch(Trial& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::string lease_id_;
  const int64_t fencing_token_;

  std::atomic<bool> closed_ = false;
  std::vector<std::atomic<bool>> stopped_;

  mutable platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::vector<Trial> trials_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> index_by_name_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;  // the trial that is served next
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint patience_ ABSL_GUARDED_BY(mutex_) = kNever;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
