// What a lease's trials have produced and the server has not acknowledged: bounded, in order, sent
// again when need be.
//
// Each trial has a queue of events with consecutive sequence numbers. A checkpoint stands in it as
// an event whose artifact must be uploaded first: it and the events behind it wait for that. What
// was sent stays until it is acknowledged, so that after a broken stream everything unacknowledged
// is sent again.
//
// What memory has no room for, goes to the spool where there is one, and comes back when its turn
// to be sent has come; the order is that of the trial whether an item is here or there.
#ifndef LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
#define LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/log_budget.h"
#include "worker/connection/spool.h"

namespace lengthwise::worker {

// Thread-safe: producers put (of one trial, one at a time), one sender takes, anyone closes. Trials
// are named by their index in the lease.
class Outbox {
 public:
  struct Options {
    // Bytes of events and artifacts that may wait in memory; a single item may be larger when
    // nothing else waits.
    int64_t max_bytes = int64_t{256} << 20;
    // Takes what memory has no room for; outlives the box. With it, events may take a quarter of
    // max_bytes more when artifacts fill it. Null: producers wait then.
    Spool* spool = nullptr;
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

  // Producers. Both set trial, attempt, sequence and time; wait while box and spool are full; and
  // drop what comes for a trial that is closed or has had its outcome. Log lines beyond the
  // attempt's budget (log_budget.h) are dropped, too.
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
  // Closes the box at `end`, or once it made no progress for `stall` (counted from now), for
  // whoever waits then. Progress is an acknowledgement, a stored artifact, the first item of an
  // empty box, or NoteProgress.
  void SetPatience(TimePoint end, absl::Duration stall = absl::InfiniteDuration());
  // The server took a part of an upload.
  void NoteProgress();
  // When waiting ends if there is no progress before; kNever without SetPatience.
  TimePoint patience() const;

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
  // In memory and in the spool.
  int64_t unsent_bytes() const;

 private:
  // An event, a checkpoint, or a block of events in the spool.
  struct Item {
    // Without trial, attempt and sequence, which its place says. Empty for a block.
    v1::Event event;
    // A checkpoint's, until it is stored; null where it is in the spool.
    std::shared_ptr<const std::string> artifact;
    std::optional<Spool::Record> spooled;
    bool is_checkpoint = false;  // that is not stored yet
    bool is_outcome = false;
    int32_t events = 1;
    int64_t bytes = 0;  // in memory
    bool is_block() const { return spooled && !is_checkpoint; }
  };
  struct Trial {
    std::string name;
    int32_t attempt = 0;
    int64_t acknowledged = 0;  // the first of `items` has the number after it
    // Of `items`, from the front; there are no blocks among them.
    size_t sent = 0;
    std::deque<Item> items;
    LogBudget log;
    bool has_outcome = false;  // put
    bool closed = false;
    bool refused = false;  // what waits is the failure that took a refused batch's place
    bool finished = false;
  };

  static void SetTime(v1::Event& event);
  // What an event takes in memory, about.
  static int64_t BytesOf(const v1::Event& event);

  void PutItem(int64_t trial, Item item) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the item if there is room in memory for it, or drops it if nobody wants it; otherwise
  // tells how often there had been room again.
  bool TryPut(int64_t trial, Item& item, int64_t& freed) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom(const Item& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves a block of events to the spool. False: there are none, or no room.
  bool SpoolBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings the block at the trial's `sent` back. False: not now, for memory is full.
  bool UnpackBlock(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves an artifact that is not here yet to the spool. False: there is no room.
  bool SpoolArtifact(Item& item) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForRoom(int64_t trial, int64_t freed) ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(Trial& trial, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts what an item takes, and gives it back.
  void Count(const Item& item, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes an event of a checkpoint.
  void FreeArtifact(Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a change, or closes the box when patience is over.
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the items of a trial from one on.
  void DropItems(Trial& trial, size_t first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseTrialLocked(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAcknowledged(Trial& trial, int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A failure for this reason takes the place of the items from `first` on.
  void ReplaceByFailure(int64_t index, size_t first, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The place of an upload among its trial's items, or nothing when it is not waited for any more.
  std::optional<size_t> FindUpload(const Upload& upload) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there was work; it may lack a spooled artifact's bytes, which `spooled` then names.
  bool TakeWork(Work& work, std::optional<Spool::Record>& spooled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;          // in memory
  int64_t event_bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // of them, of events
  int64_t spooled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // on the disk
  int64_t events_ ABSL_GUARDED_BY(mutex_) = 0;         // with checkpoints
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;          // how often there was room again
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;            // the trial that is served next
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  // When waiting ends: at the earlier of patience_end_ and stall_ after the last progress.
  TimePoint patience_ ABSL_GUARDED_BY(mutex_) = kNever;
  TimePoint patience_end_ ABSL_GUARDED_BY(mutex_) = kNever;
  absl::Duration stall_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
