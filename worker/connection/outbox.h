// A bounded, ordered queue of the events and checkpoints of one lease that the server has not
// acknowledged.
//
// Each trial has a queue of events with consecutive sequence numbers. A checkpoint is an event
// whose artifact must be stored first. A small artifact travels in the batch of its event; the
// trial's next batch waits for the answer. A larger one is uploaded; the event and those behind it
// wait for the upload. A sent event stays in the queue until it is acknowledged, because a broken
// stream requires sending every unacknowledged event again.
//
// When memory is full, items move to the spool, if there is one, and return to memory when they are
// next to be sent. Spooling does not change the order of a trial's items.
#ifndef LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
#define LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_

#include <atomic>
#include <cstddef>
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
#include "worker/connection/spool.h"

namespace lengthwise::worker {

// Log lines per attempt; one further line says that the rest is dropped. The server's limit is
// twice this (server/coordination/event_checks.h).
inline constexpr int64_t kMaxLogLines = 1000;
// Bytes per line. Longer lines are truncated and end with a note.
inline constexpr size_t kMaxLogLineBytes = 8 << 10;

// Returns platform::PrintableText of `text`, truncated to `max_bytes` plus a note of how many bytes
// were cut.
std::string PlainText(absl::string_view text, size_t max_bytes);

// Limits what one attempt may write to its trial's log.
class LogBudget {
 public:
  // Truncates the line if necessary. Returns false if the caller must drop it.
  bool Take(v1::LogLine& line);

 private:
  int64_t lines_ = 0;
};

// Thread-safe for several producers (one at a time per trial) and one sender; any thread may close.
// A trial is identified by its index in the lease.
class Outbox {
 public:
  struct Options {
    // Limit of events and artifacts in memory, in bytes. A single larger item is accepted when
    // memory is empty.
    int64_t max_bytes = int64_t{256} << 20;
    // Overflow on the disk; must outlive the box. With a spool, events may use another quarter of
    // max_bytes when artifacts fill memory. Null: producers block when memory is full.
    Spool* spool = nullptr;
    // Limits of a batch. A batch always holds at least one event. An artifact that does not fit is
    // uploaded.
    int64_t max_batch_bytes = 1 << 20;
    int32_t max_batch_events = 256;
    // A larger event does not fit a message; a log line that says so replaces it.
    int64_t max_event_bytes = 7 << 20;
  };

  // An artifact to store before the checkpoint's event can be sent.
  struct Upload {
    int64_t trial = 0;
    int64_t sequence = 0;  // of the checkpoint's event
    int64_t step = 0;
    std::shared_ptr<const std::string> bytes;
  };
  // Nothing, a batch of events and artifacts, or an upload.
  using Work = std::variant<std::monostate, v1::StreamEventsRequest, Upload>;

  Outbox(const v1::Lease& lease, const Options& options);

  // For producers. Both assign the trial, attempt, sequence and time. They block while memory and
  // spool are full. They drop items of a trial that is closed or has an outcome, and Put also drops
  // log lines beyond the attempt's budget (LogBudget).
  void Put(int64_t trial, v1::Event event);
  void PutCheckpoint(int64_t trial, int64_t step, std::string bytes);

  // For the sender. Next waits for work until `deadline` or Interrupt, and serves the trials in
  // turn. It returns the same upload again until UploadStored or UploadRefused. Unless
  // `with_artifacts`, every artifact is an upload; after SetPatience, too, because an upload
  // reports progress.
  Work Next(TimePoint deadline, bool with_artifacts);
  void Interrupt();
  void UploadStored(const Upload& upload, const v1::Checkpoint& checkpoint);
  // The server permanently refuses this artifact. A temporary failure with the reason replaces the
  // checkpoint and all items behind it, because a trial without a stored model has not succeeded.
  void UploadRefused(const Upload& upload, absl::string_view reason);
  // Drops acknowledged events and handles refusals. STALE_LEASE closes the trial. SEQUENCE_GAP
  // sends again from the acknowledged number, or closes the box if those events were dropped
  // already. INVALID replaces all waiting items by a temporary failure with the server's detail; if
  // the server refuses that too, the trial is closed. NOT_STORED makes uploads of the artifacts
  // that came with the events; without one, it is as INVALID.
  void Acknowledge(const v1::StreamEventsResponse& response);
  // Marks every unacknowledged event as unsent. Until the next acknowledgement, each batch is of
  // one trial: one whose events the server cannot store must not hold up the others. Artifacts that
  // were sent are sent again only once the server says NOT_STORED.
  void Resend();
  // Returns true if a sent event is not acknowledged yet.
  bool awaits_acknowledgement() const;

  // Discard the items of a trial, or of all trials, permanently, and wake all waiting threads.
  void CloseTrial(int64_t trial);
  void Close();
  // Limits waiting: a waiting thread closes the box at `end`, or after `stall` without progress,
  // counted from now. Progress is an acknowledgement, a stored artifact, the first item of an empty
  // box, or NoteProgress.
  void SetPatience(TimePoint end, absl::Duration stall = absl::InfiniteDuration());
  // Reports that the server accepted part of an upload.
  void NoteProgress();
  // When waiting ends without further progress. kNever without SetPatience.
  TimePoint patience() const;

  // Waits until every item is acknowledged. Returns false if the box was closed instead.
  bool Flush();
  // Sleeps until `time` or until the box is closed.
  void Sleep(TimePoint time);

  // Lock-free.
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // Returns true if the trial accepts no more events.
  bool stopped(int64_t trial) const { return stopped_[trial].load(std::memory_order_acquire); }

  // Returns true if the trial's outcome was acknowledged or the trial was closed.
  bool finished(int64_t trial) const;
  int64_t unsent_events() const;
  // In memory and in the spool.
  int64_t unsent_bytes() const;

 private:
  // An event, a checkpoint, or a block of events in the spool.
  struct Item {
    // Without trial, attempt and sequence, which follow from its position. Empty for a block.
    v1::Event event;
    // A checkpoint's bytes until they are stored; null while they are in the spool.
    std::shared_ptr<const std::string> artifact;
    std::optional<Spool::Record> spooled;
    bool is_checkpoint = false;  // not stored yet
    bool was_sent = false;       // a checkpoint in a batch, with its artifact
    bool is_upload = false;      // its artifact does not travel in a batch, however small it is
    bool is_outcome = false;
    int32_t events = 1;
    int64_t bytes = 0;  // in memory
    bool is_block() const { return spooled && !is_checkpoint; }
  };
  struct Trial {
    std::string name;
    int32_t attempt = 0;
    int64_t acknowledged = 0;  // the first of `items` has the next number
    // Number of sent items, from the front of `items`. None of them is a block.
    size_t sent = 0;
    bool awaits_answer = false;  // has no further batch before all `sent` are acknowledged
    std::deque<Item> items;
    LogBudget log;
    bool has_outcome = false;  // put
    bool closed = false;
    bool refused = false;  // a failure replaced its items
    bool finished = false;
  };

  // Approximate size of an event in memory, in bytes.
  static int64_t BytesOf(const v1::Event& event);

  void PutItem(int64_t trial, Item item) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends the item if memory has room, or drops it if the trial accepts no more items. Otherwise
  // returns false and sets `freed` to freed_, for WaitForRoom.
  bool TryPut(int64_t trial, Item& item, int64_t& freed) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom(const Item& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves a block of events to the spool. Returns false if there are no events to move or the spool
  // has no room.
  bool SpoolBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the block at the trial's `sent` back into memory. Returns false while memory is full.
  bool UnpackBlock(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the artifact of an item that is not in the box yet to the spool. Returns false if there
  // is no spool, no artifact or no room.
  bool SpoolArtifact(Item& item) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForRoom(int64_t trial, int64_t freed) ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(Trial& trial, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Count adds (sign 1) or subtracts (-1) an item's size. Free also releases its record in the
  // spool.
  void Count(const Item& item, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a change, or until `until`; closes the box when patience ends.
  void Wait(TimePoint until = kNever) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the items of a trial from index `first`.
  void DropItems(Trial& trial, size_t first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseTrialLocked(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Replaces the items from index `first` by a temporary failure with this reason.
  void ReplaceByFailure(int64_t index, size_t first, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Index of an upload among its trial's items; nullopt if it was dropped or stored.
  std::optional<size_t> FindUpload(const Upload& upload) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True for an event, and for a checkpoint whose artifact travels with it.
  bool IsOfBatch(const Item& item, bool with_artifacts) const;
  // Returns false if there is no work. If `spooled` is set, the caller must read the upload's bytes
  // from there.
  bool TakeWork(bool with_artifacts, Work& work, std::optional<Spool::Record>& spooled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Events of the trials from `turn_` on, up to one that has something else to send first.
  v1::StreamEventsRequest TakeBatch(bool with_artifacts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AcknowledgeTrial(const v1::StreamEventsResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks all events as unsent, and those of checkpoints as uploads. Returns true if there are any.
  static bool MakeUploads(Trial& trial);

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
  int64_t event_bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // the events' part
  int64_t spooled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // on the disk
  int64_t events_ ABSL_GUARDED_BY(mutex_) = 0;         // including checkpoints
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;          // how often room was freed
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;            // the trial to serve next
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool after_break_ ABSL_GUARDED_BY(mutex_) = false;  // Resend came after the last answer
  // When waiting ends: at the earlier of patience_end_ and stall_ after the last progress.
  TimePoint patience_ ABSL_GUARDED_BY(mutex_) = kNever;
  TimePoint patience_end_ ABSL_GUARDED_BY(mutex_) = kNever;
  absl::Duration stall_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_OUTBOX_H_
