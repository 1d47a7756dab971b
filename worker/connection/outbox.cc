#include "worker/connection/outbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"

namespace lengthwise::worker {
namespace {

using ::google::protobuf::util::TimeUtil;
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
  if (const auto bytes = static_cast<int64_t>(event.ByteSizeLong());
      bytes > options_.max_event_bytes && !event.has_outcome()) {
    SetLogLine(event, absl::StrCat("an event of ", bytes, " bytes was left out: the largest has ",
                                   options_.max_event_bytes));
  }
  PutItem(trial, Item{.event = std::move(event)});
}

void Outbox::PutCheckpoint(int64_t trial, int64_t step, std::string bytes) {
  Item item;
  item.event.set_step(step);
  item.artifact = std::make_shared<const std::string>(std::move(bytes));
  PutItem(trial, std::move(item));
}

void Outbox::PutItem(int64_t trial, Item item) {
  const auto event_bytes = static_cast<int64_t>(item.event.ByteSizeLong() + sizeof(Item));
  item.bytes = event_bytes + (item.artifact ? static_cast<int64_t>(item.artifact->size()) : 0);
  *item.event.mutable_time() = TimeUtil::GetCurrentTime();
  MutexLock lock(mutex_);
  while (!stopped(trial) && bytes_ > 0 && bytes_ + item.bytes > options_.max_bytes) Wait();
  if (stopped(trial) || trials_[trial].has_outcome) return;
  Append(trials_[trial], std::move(item));
  LENGTHWISE_FAILPOINT("outbox.put.after");
  changed_.NotifyAll();
}

void Outbox::Append(Trial& trial, Item item) {
  item.event.set_trial(trial.name);
  item.event.set_attempt(trial.attempt);
  item.event.set_sequence(++trial.last_sequence);
  trial.has_outcome = item.event.has_outcome();
  bytes_ += item.bytes;
  trial.items.push_back(std::move(item));
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
  MutexLock lock(mutex_);
  while (!closed() && !interrupted_) {
    for (size_t i = 0; i < trials_.size(); ++i) {
      const size_t index = (turn_ + i) % trials_.size();
      Trial& trial = trials_[index];
      if (trial.sent == trial.items.size()) continue;
      turn_ = index + 1;
      const Item& item = trial.items[trial.sent];
      if (!item.artifact) return TakeBatch(trial);
      return Upload{.trial = static_cast<int64_t>(index),
                    .sequence = item.event.sequence(),
                    .step = item.event.step(),
                    .bytes = item.artifact};
    }
    if (deadline == kNever) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline) &&
               std::chrono::steady_clock::now() >= deadline) {
      break;
    }
  }
  interrupted_ = false;
  return std::monostate();
}

v1::StreamEventsRequest Outbox::TakeBatch(Trial& trial) {
  v1::StreamEventsRequest batch;
  batch.set_lease_id(lease_id_);
  batch.set_fencing_token(fencing_token_);
  int64_t bytes = 0;
  while (trial.sent < trial.items.size() && batch.events_size() < options_.max_batch_events) {
    const Item& item = trial.items[trial.sent];
    if (item.artifact) break;
    bytes += item.bytes;
    if (batch.events_size() > 0 && bytes > options_.max_batch_bytes) break;
    *batch.add_events() = item.event;
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
  return item.artifact ? &item : nullptr;
}

void Outbox::UploadStored(const Upload& upload, const v1::Checkpoint& checkpoint) {
  MutexLock lock(mutex_);
  Item* item = FindUpload(upload);
  if (item == nullptr) return;
  LENGTHWISE_FAILPOINT("outbox.upload.stored");
  *item->event.mutable_checkpoint() = checkpoint;
  bytes_ -= static_cast<int64_t>(item->artifact->size());
  item->bytes -= static_cast<int64_t>(item->artifact->size());
  item->artifact.reset();
  changed_.NotifyAll();
}

void Outbox::UploadRefused(const Upload& upload, absl::string_view reason) {
  MutexLock lock(mutex_);
  Item* item = FindUpload(upload);
  if (item == nullptr) return;
  Trial& trial = trials_[upload.trial];
  // What stands before it was measured and may be on its way already: it stays. What stands behind
  // it has not been sent, as it waited for the upload.
  while (trial.items.back().event.sequence() > upload.sequence) {
    bytes_ -= trial.items.back().bytes;
    trial.items.pop_back();
  }
  trial.last_sequence = upload.sequence;
  trial.has_outcome = true;
  stopped_[upload.trial].store(true, std::memory_order_release);
  v1::Outcome& outcome = *item->event.mutable_outcome();
  outcome.set_kind(v1::Outcome::FAILED_TEMPORARILY);
  outcome.set_reason(absl::StrCat("the server does not store the checkpoint of step ", upload.step,
                                  " (", upload.bytes->size(), " bytes): ", std::string(reason)));
  bytes_ -= static_cast<int64_t>(item->artifact->size());
  item->bytes -= static_cast<int64_t>(item->artifact->size());
  item->artifact.reset();
  changed_.NotifyAll();
}

void Outbox::DropAcknowledged(Trial& trial, int64_t sequence) {
  while (!trial.items.empty() && trial.items.front().event.sequence() <= sequence) {
    const Item& item = trial.items.front();
    if (item.event.has_outcome()) trial.finished = true;
    bytes_ -= item.bytes;
    trial.acknowledged = item.event.sequence();
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
      ReplaceByFailure(index, response.detail());
      break;
    default:
      break;
  }
  changed_.NotifyAll();
}

void Outbox::ReplaceByFailure(int64_t index, const std::string& detail) {
  Trial& trial = trials_[index];
  platform::LogError(absl::StrCat("the server refuses events of ", trial.name, ": ", detail));
  if (trial.refused) {
    CloseTrialLocked(index);
    return;
  }
  DropItems(trial);
  trial.refused = true;
  trial.last_sequence = trial.acknowledged;
  stopped_[index].store(true, std::memory_order_release);
  Item item;
  *item.event.mutable_time() = TimeUtil::GetCurrentTime();
  item.event.mutable_outcome()->set_kind(v1::Outcome::FAILED_TEMPORARILY);
  item.event.mutable_outcome()->set_reason(
      absl::StrCat("the server refused the worker's events: ", detail));
  item.bytes = static_cast<int64_t>(sizeof(Item));
  Append(trial, std::move(item));
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

void Outbox::DropItems(Trial& trial) {
  for (const Item& item : trial.items) bytes_ -= item.bytes;
  trial.items.clear();
  trial.sent = 0;
}

void Outbox::CloseTrialLocked(int64_t index) {
  DropItems(trials_[index]);
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

void Outbox::SetPatience(TimePoint time) {
  MutexLock lock(mutex_);
  patience_ = time;
  changed_.NotifyAll();
}

bool Outbox::Flush() {
  MutexLock lock(mutex_);
  while (!closed() && bytes_ > 0) Wait();
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
  int64_t events = 0;
  for (const Trial& trial : trials_) events += static_cast<int64_t>(trial.items.size());
  return events;
}

int64_t Outbox::unsent_bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace lengthwise::worker
