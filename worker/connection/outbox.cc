#include "worker/connection/outbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/log.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

void SetLogLine(v1::Event& event, std::string text) {
  event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  event.mutable_log_line()->set_text(std::move(text));
}

}  // namespace

Outbox::Outbox(const v1::Lease& lease, const Options& options)
    : options_(options),
      lease_id_(lease.lease_id()),
      fencing_token_(lease.fencing_token()),
      stopped_(lease.trials_size()),
      trials_(lease.trials_size()) {
  for (int i = 0; i < lease.trials_size(); ++i) {
    trials_[i].name = lease.trials(i).trial();
    trials_[i].attempt = lease.trials(i).attempt();
    index_by_name_[trials_[i].name] = i;
  }
}

void Outbox::Put(int64_t trial, v1::Event event) {
  if (event.has_log_line()) {
    MutexLock lock(mutex_);
    if (!trials_[trial].log.Take(*event.mutable_log_line())) return;
  }
  if (event.has_outcome()) {
    v1::Outcome& outcome = *event.mutable_outcome();
    outcome.set_reason(PlainText(outcome.reason(), kMaxLogLineBytes));
  }
  if (const auto bytes = static_cast<int64_t>(event.ByteSizeLong());
      bytes > options_.max_event_bytes && !event.has_outcome()) {
    SetLogLine(event, absl::StrCat("an event of ", bytes, " bytes was left out: the largest has ",
                                   options_.max_event_bytes));
  }
  Item item;
  item.is_outcome = event.has_outcome();
  item.event = std::move(event);
  PutItem(trial, std::move(item));
}

void Outbox::PutCheckpoint(int64_t trial, int64_t step, std::string bytes) {
  Item item;
  item.event.set_step(step);
  item.artifact = std::make_shared<const std::string>(std::move(bytes));
  item.is_checkpoint = true;
  PutItem(trial, std::move(item));
}

void Outbox::Wait() {
  if (patience_ == kNever) {
    changed_.Wait(mutex_);
  } else if (!changed_.WaitUntil(mutex_, patience_) &&
             std::chrono::steady_clock::now() >= patience_) {
    CloseLocked();
  }
}

Outbox::Work Outbox::Next(TimePoint deadline) {
  while (true) {
    Work work;
    std::optional<Spool::Record> spooled;
    {
      MutexLock lock(mutex_);
      while (!closed() && !interrupted_ && !TakeWork(work, spooled)) {
        if (deadline == kNever) {
          changed_.Wait(mutex_);
        } else if (!changed_.WaitUntil(mutex_, deadline) &&
                   std::chrono::steady_clock::now() >= deadline) {
          break;
        }
      }
      // Work that was taken is not given up for an interruption: it stays remembered.
      if (std::holds_alternative<std::monostate>(work)) interrupted_ = false;
    }
    if (!spooled) return work;
    // Without the lock: it may be large.
    absl::StatusOr<std::string> bytes = options_.spool->Read(*spooled);
    auto& upload = std::get<Upload>(work);
    if (bytes.ok()) {
      upload.bytes = std::make_shared<const std::string>(*std::move(bytes));
      return work;
    }
    MutexLock lock(mutex_);
    // It may have been dropped meanwhile.
    if (FindUpload(upload) == nullptr) continue;
    ReplaceByFailure(upload.trial, trials_[upload.trial].sent,
                     absl::StrCat("the worker lost a checkpoint that waited to be sent: ",
                                  std::string(bytes.status().message())));
  }
}

bool Outbox::TakeWork(Work& work, std::optional<Spool::Record>& spooled) {
  for (size_t i = 0; i < trials_.size(); ++i) {
    const size_t index = (turn_ + i) % trials_.size();
    Trial& trial = trials_[index];
    if (trial.sent == trial.items.size()) continue;
    if (trial.items[trial.sent].is_block()) {
      if (!UnpackBlock(static_cast<int64_t>(index)) || trial.items.empty()) continue;
    }
    turn_ = index + 1;
    const Item& item = trial.items[trial.sent];
    if (item.is_checkpoint) {
      work = Upload{.trial = static_cast<int64_t>(index),
                    .sequence = trial.acknowledged + static_cast<int64_t>(trial.sent) + 1,
                    .step = item.event.step(),
                    .bytes = item.artifact};
      spooled = item.spooled;
    } else {
      work = TakeBatch(trial);
    }
    return true;
  }
  return false;
}

v1::StreamEventsRequest Outbox::TakeBatch(Trial& trial) {
  v1::StreamEventsRequest batch;
  batch.set_lease_id(lease_id_);
  batch.set_fencing_token(fencing_token_);
  int64_t bytes = 0;
  while (trial.sent < trial.items.size() && batch.events_size() < options_.max_batch_events) {
    const Item& item = trial.items[trial.sent];
    if (item.is_checkpoint || item.is_block()) break;
    bytes += item.bytes;
    if (batch.events_size() > 0 && bytes > options_.max_batch_bytes) break;
    v1::Event& event = *batch.add_events();
    event = item.event;
    event.set_trial(trial.name);
    event.set_attempt(trial.attempt);
    event.set_sequence(trial.acknowledged + static_cast<int64_t>(trial.sent) + 1);
    ++trial.sent;
  }
  return batch;
}

void Outbox::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  changed_.NotifyAll();
}

Outbox::Item* Outbox::FindUpload(const Upload& upload) {
  Trial& trial = trials_[upload.trial];
  const int64_t offset = upload.sequence - trial.acknowledged - 1;
  if (offset < 0 || offset >= static_cast<int64_t>(trial.items.size())) return nullptr;
  Item& item = trial.items[offset];
  return item.is_checkpoint ? &item : nullptr;
}

void Outbox::UploadStored(const Upload& upload, const v1::Checkpoint& checkpoint) {
  MutexLock lock(mutex_);
  Item* item = FindUpload(upload);
  if (item == nullptr) return;
  LENGTHWISE_FAILPOINT("outbox.upload.stored");
  *item->event.mutable_checkpoint() = checkpoint;
  FreeArtifact(*item);
  NoteProgressLocked();
  changed_.NotifyAll();
}

void Outbox::UploadRefused(const Upload& upload, absl::string_view reason) {
  MutexLock lock(mutex_);
  if (FindUpload(upload) == nullptr) return;
  // What stands before it was measured and stays. What stands behind it has not been sent, as it
  // waited for the upload.
  const auto place = static_cast<size_t>(upload.sequence - trials_[upload.trial].acknowledged - 1);
  ReplaceByFailure(upload.trial, place,
                   absl::StrCat("the server does not store the checkpoint of step ", upload.step,
                                " (", upload.bytes->size(), " bytes): ", std::string(reason)));
}

void Outbox::DropAcknowledged(Trial& trial, int64_t sequence) {
  while (!trial.items.empty() && trial.acknowledged < sequence) {
    Item& item = trial.items.front();
    if (item.is_outcome) trial.finished = true;
    Free(item);
    ++trial.acknowledged;
    trial.items.pop_front();
    if (trial.sent > 0) --trial.sent;
  }
}

void Outbox::Acknowledge(const v1::StreamEventsResponse& response) {
  MutexLock lock(mutex_);
  if (response.lease_id() != lease_id_) return;
  const auto found = index_by_name_.find(response.trial());
  if (found == index_by_name_.end()) return;
  const int64_t index = found->second;
  Trial& trial = trials_[index];
  if (trial.closed) return;
  // Never beyond what was sent: a server cannot have stored it.
  const int64_t last_sent = trial.acknowledged + static_cast<int64_t>(trial.sent);
  LENGTHWISE_FAILPOINT("outbox.acknowledge.before");
  NoteProgressLocked();
  DropAcknowledged(trial, std::min(response.acknowledged_sequence(), last_sent));
  switch (response.refusal()) {
    case v1::StreamEventsResponse::STALE_LEASE:
      CloseTrialLocked(index);
      break;
    case v1::StreamEventsResponse::SEQUENCE_GAP:
      if (response.acknowledged_sequence() < trial.acknowledged) {
        platform::LogError(absl::StrCat("the server lost events of ", trial.name,
                                        " that it had acknowledged (it has ",
                                        response.acknowledged_sequence(), " of ",
                                        trial.acknowledged, "); the lease is given up"));
        CloseLocked();
      } else {
        trial.sent = 0;
      }
      break;
    case v1::StreamEventsResponse::INVALID:
      ReplaceByFailure(index, 0,
                       absl::StrCat("the server refused the worker's events: ", response.detail()));
      break;
    default:
      break;
  }
  changed_.NotifyAll();
}

void Outbox::ReplaceByFailure(int64_t index, size_t first, const std::string& reason) {
  Trial& trial = trials_[index];
  platform::LogError(absl::StrCat(trial.name, ": ", reason));
  if (trial.refused) {
    CloseTrialLocked(index);
    return;
  }
  DropItems(trial, first);
  trial.refused = true;
  stopped_[index].store(true, std::memory_order_release);
  Item item;
  SetTime(item.event);
  item.event.mutable_outcome()->set_kind(v1::Outcome::FAILED_TEMPORARILY);
  item.event.mutable_outcome()->set_reason(PlainText(reason, kMaxLogLineBytes));
  item.is_outcome = true;
  item.bytes = static_cast<int64_t>(sizeof(Item));
  Append(trial, std::move(item));
  changed_.NotifyAll();
}

void Outbox::Resend() {
  MutexLock lock(mutex_);
  for (Trial& trial : trials_) trial.sent = 0;
}

bool Outbox::awaits_acknowledgement() const {
  MutexLock lock(mutex_);
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const Trial& trial) { return trial.sent > 0; });
}

void Outbox::DropItems(Trial& trial, size_t first) {
  while (trial.items.size() > first) {
    Free(trial.items.back());
    trial.items.pop_back();
  }
  trial.sent = std::min(trial.sent, first);
}

void Outbox::CloseTrialLocked(int64_t index) {
  DropItems(trials_[index], 0);
  trials_[index].closed = true;
  stopped_[index].store(true, std::memory_order_release);
  changed_.NotifyAll();
}

void Outbox::CloseLocked() {
  closed_.store(true, std::memory_order_release);
  for (size_t i = 0; i < trials_.size(); ++i) CloseTrialLocked(static_cast<int64_t>(i));
  changed_.NotifyAll();
}

void Outbox::CloseTrial(int64_t trial) {
  MutexLock lock(mutex_);
  CloseTrialLocked(trial);
}

void Outbox::Close() {
  MutexLock lock(mutex_);
  CloseLocked();
}

void Outbox::SetPatience(TimePoint end, absl::Duration stall) {
  MutexLock lock(mutex_);
  patience_end_ = end;
  stall_ = stall;
  NoteProgressLocked();
  changed_.NotifyAll();
}

void Outbox::NoteProgress() {
  MutexLock lock(mutex_);
  NoteProgressLocked();
}

void Outbox::NoteProgressLocked() {
  // Whoever waits until the time before looks again.
  patience_ = std::min(patience_end_, After(stall_));
}

bool Outbox::Flush() {
  MutexLock lock(mutex_);
  while (!closed() && events_ > 0) Wait();
  return !closed();
}

void Outbox::Sleep(TimePoint time) {
  MutexLock lock(mutex_);
  while (!closed() && std::chrono::steady_clock::now() < time) {
    if (std::min(time, patience_) == kNever) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, std::min(time, patience_)) &&
               std::chrono::steady_clock::now() >= patience_) {
      CloseLocked();
    }
  }
}

bool Outbox::finished(int64_t trial) const {
  MutexLock lock(mutex_);
  return trials_[trial].finished || trials_[trial].closed;
}

int64_t Outbox::unsent_events() const {
  MutexLock lock(mutex_);
  return events_;
}

int64_t Outbox::unsent_bytes() const {
  MutexLock lock(mutex_);
  return bytes_ + spooled_bytes_;
}

}  // namespace lengthwise::worker
