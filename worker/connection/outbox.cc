#include "worker/connection/outbox.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// Size of a block in the spool: so large that few are there, and so small that one more in memory
// does not matter.
constexpr int64_t kBlockBytes = 64 << 10;

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
    const std::optional<size_t> place = FindUpload(upload);
    if (!place.has_value()) continue;
    ReplaceByFailure(upload.trial, *place,
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

std::optional<size_t> Outbox::FindUpload(const Upload& upload) const {
  const Trial& trial = trials_[upload.trial];
  // Counted, because what stands before it may be a block: a gap can call for all events again, and
  // memory for their room, while the upload is on its way.
  int64_t sequence = trial.acknowledged + 1;
  for (size_t i = 0; i < trial.items.size() && sequence <= upload.sequence; ++i) {
    if (sequence == upload.sequence && trial.items[i].is_checkpoint) return i;
    sequence += trial.items[i].events;
  }
  return std::nullopt;
}

void Outbox::UploadStored(const Upload& upload, const v1::Checkpoint& checkpoint) {
  MutexLock lock(mutex_);
  const std::optional<size_t> place = FindUpload(upload);
  if (!place.has_value()) return;
  LENGTHWISE_FAILPOINT("outbox.upload.stored");
  Item& item = trials_[upload.trial].items[*place];
  *item.event.mutable_checkpoint() = checkpoint;
  FreeArtifact(item);
  NoteProgressLocked();
  changed_.NotifyAll();
}

void Outbox::UploadRefused(const Upload& upload, absl::string_view reason) {
  MutexLock lock(mutex_);
  const std::optional<size_t> place = FindUpload(upload);
  if (!place.has_value()) return;
  // What stands before it was measured and stays. What stands behind it has not been sent, as it
  // waited for the upload.
  ReplaceByFailure(upload.trial, *place,
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

TimePoint Outbox::patience() const {
  MutexLock lock(mutex_);
  return patience_;
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

// Memory and the spool. What holds at every point where the lock is free:
//
// 1. The items of a trial are in the order of their sequence numbers, which are consecutive; the
//    first item has `acknowledged` + 1, and a block counts as its `events`.
// 2. The first `sent` items are single events in memory. Blocks and checkpoints that are not stored
//    yet stand behind them: a block is unpacked before any of its events is sent, a checkpoint
//    becomes an event before it is.
// 3. A block is a run of neighbours: it never spans a checkpoint, whose event stays in memory while
//    its artifact is in the spool.
// 4. Each record of the spool belongs to one item, and Free releases it with the item.
// 5. bytes_, event_bytes_, spooled_bytes_ and events_ are sums over all items; only Count changes
//    them.
// 6. A trial of which nothing is on its way can always go on: UnpackBlock may pass max_bytes by one
//    block, so that memory full of what waits behind a block is no deadlock.

void Outbox::SetTime(v1::Event& event) {
  // TimeUtil::GetCurrentTime knows whole seconds alone.
  *event.mutable_time() =
      google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(absl::Now()));
}

void Outbox::PutItem(int64_t trial, Item item) {
  SetTime(item.event);
  item.bytes =
      BytesOf(item.event) + (item.artifact ? static_cast<int64_t>(item.artifact->size()) : 0);
  int64_t freed = 0;
  while (!TryPut(trial, item, freed)) {
    if (!SpoolArtifact(item)) WaitForRoom(trial, freed);
  }
}

int64_t Outbox::BytesOf(const v1::Event& event) {
  return static_cast<int64_t>(event.ByteSizeLong() + sizeof(Item));
}

bool Outbox::TryPut(int64_t trial, Item& item, int64_t& freed) {
  MutexLock lock(mutex_);
  freed = freed_;
  if (stopped(trial) || trials_[trial].has_outcome) {
    if (item.spooled) options_.spool->Release(*item.spooled);
    return true;
  }
  while (!HasRoom(item)) {
    // Room for an artifact is not made: it can go to the disk itself.
    if (options_.spool == nullptr || item.artifact || !SpoolBlock()) return false;
  }
  Append(trials_[trial], std::move(item));
  LENGTHWISE_FAILPOINT("outbox.put.after");
  changed_.NotifyAll();
  return true;
}

bool Outbox::HasRoom(const Item& item) const {
  if (bytes_ == 0 || bytes_ + item.bytes <= options_.max_bytes) return true;
  return options_.spool != nullptr && !item.artifact &&
         event_bytes_ + item.bytes <= options_.max_bytes / 4;
}

bool Outbox::SpoolBlock() {
  // Of the last rows of events that are here and not sent, one of each trial, the longest.
  Trial* longest = nullptr;
  size_t longest_first = 0;
  size_t longest_end = 0;
  int64_t longest_bytes = 0;
  for (Trial& trial : trials_) {
    const auto is_event = [&](size_t i) {
      return !trial.items[i].is_checkpoint && !trial.items[i].spooled;
    };
    size_t end = trial.items.size();
    while (end > trial.sent && !is_event(end - 1)) --end;
    size_t first = end;
    int64_t bytes = 0;
    while (first > trial.sent && is_event(first - 1) && bytes < kBlockBytes) {
      bytes += trial.items[--first].bytes;
    }
    if (bytes > longest_bytes) {
      longest = &trial;
      longest_first = first;
      longest_end = end;
      longest_bytes = bytes;
    }
  }
  if (longest == nullptr) return false;
  v1::StreamEventsRequest events;
  for (size_t i = longest_first; i < longest_end; ++i) {
    *events.add_events() = longest->items[i].event;
  }
  Item block;
  block.spooled = options_.spool->Write(events.SerializeAsString());
  if (!block.spooled) return false;
  block.events = events.events_size();
  block.bytes = static_cast<int64_t>(sizeof(Item));
  for (size_t i = longest_first; i < longest_end; ++i) Count(longest->items[i], -1);
  Count(block, 1);
  const auto first = longest->items.begin() + static_cast<ptrdiff_t>(longest_first);
  *first = std::move(block);
  longest->items.erase(first + 1, first + static_cast<ptrdiff_t>(longest_end - longest_first));
  return true;
}

bool Outbox::UnpackBlock(int64_t index) {
  Trial& trial = trials_[index];
  Item& block = trial.items[trial.sent];
  // A trial of which nothing is on its way may always go on: memory may be full of what waits
  // behind its block.
  if (trial.sent > 0 && bytes_ + block.spooled->size > options_.max_bytes) return false;
  const absl::StatusOr<std::string> bytes = options_.spool->Read(*block.spooled);
  v1::StreamEventsRequest events;
  if (!bytes.ok() || !events.ParseFromString(*bytes) || events.events_size() != block.events) {
    ReplaceByFailure(
        index, trial.sent,
        absl::StrCat("the worker lost events that waited to be sent: ",
                     bytes.ok() ? "the spool is damaged" : std::string(bytes.status().message())));
    return true;
  }
  std::vector<Item> items(static_cast<size_t>(events.events_size()));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].event = std::move(*events.mutable_events(static_cast<int>(i)));
    items[i].is_outcome = items[i].event.has_outcome();
    items[i].bytes = BytesOf(items[i].event);
    Count(items[i], 1);
  }
  Free(block);
  const auto place = trial.items.erase(trial.items.begin() + static_cast<ptrdiff_t>(trial.sent));
  trial.items.insert(place, std::make_move_iterator(items.begin()),
                     std::make_move_iterator(items.end()));
  return true;
}

bool Outbox::SpoolArtifact(Item& item) {
  if (options_.spool == nullptr || !item.artifact) return false;
  item.spooled = options_.spool->Write(*item.artifact);
  if (!item.spooled) return false;
  item.artifact.reset();
  item.bytes = BytesOf(item.event);
  return true;
}

void Outbox::WaitForRoom(int64_t trial, int64_t freed) {
  MutexLock lock(mutex_);
  while (!stopped(trial) && freed_ == freed) Wait();
}

void Outbox::Append(Trial& trial, Item item) {
  // Until now the server had nothing to take, so it has not stalled.
  if (events_ == 0) NoteProgressLocked();
  trial.has_outcome = item.is_outcome;
  Count(item, 1);
  trial.items.push_back(std::move(item));
}

void Outbox::Count(const Item& item, int sign) {
  bytes_ += sign * item.bytes;
  if (!item.is_checkpoint) event_bytes_ += sign * item.bytes;
  if (item.spooled) spooled_bytes_ += sign * item.spooled->size;
  events_ += sign * item.events;
}

void Outbox::Free(Item& item) {
  Count(item, -1);
  if (item.spooled) options_.spool->Release(*item.spooled);
  ++freed_;
}

void Outbox::FreeArtifact(Item& item) {
  Free(item);
  item.spooled.reset();
  item.artifact.reset();
  item.is_checkpoint = false;
  item.bytes = BytesOf(item.event);
  Count(item, 1);
}

}  // namespace lengthwise::worker
