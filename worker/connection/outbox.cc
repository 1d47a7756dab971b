#include "worker/connection/outbox.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "proto/timestamps.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// Size of a block in the spool. Larger blocks mean fewer of them; this one is small enough to
// exceed the memory limit by one.
constexpr int64_t kBlockBytes = 64 << 10;

void SetLogLine(v1::Event& event, std::string text) {
  event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  event.mutable_log_line()->set_text(std::move(text));
}

}  // namespace

std::string PlainText(absl::string_view text, size_t max_bytes) {
  std::string plain = platform::PrintableText(text);
  if (plain.size() <= max_bytes) return plain;
  const absl::string_view shown = platform::Utf8Prefix(plain, max_bytes);
  return absl::StrCat(shown, "... (", plain.size() - shown.size(), " bytes more)");
}

bool LogBudget::Take(v1::LogLine& line) {
  if (++lines_ > kMaxLogLines + 1) return false;
  if (lines_ == kMaxLogLines + 1) {
    line.set_severity(v1::LogLine::WARNING);
    line.set_text(absl::StrCat("this attempt has written ", kMaxLogLines,
                               " lines; further lines are dropped"));
    return true;
  }
  line.set_text(PlainText(line.text(), kMaxLogLineBytes));
  return true;
}

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
    SetLogLine(event,
               absl::StrCat("an event of ", bytes, " bytes was dropped; the limit in bytes is ",
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
  if (const auto size = static_cast<int64_t>(bytes.size()); size <= options_.max_batch_bytes) {
    item.event.mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
    item.event.mutable_checkpoint()->set_size_bytes(size);
  }
  item.artifact = std::make_shared<const std::string>(std::move(bytes));
  item.is_checkpoint = true;
  PutItem(trial, std::move(item));
}

void Outbox::Wait(TimePoint until) {
  const bool woken = changed_.WaitUntil(mutex_, std::min(until, patience_));
  // Progress during the wait moves patience_.
  if (!woken && std::chrono::steady_clock::now() >= patience_) CloseLocked();
}

Outbox::Work Outbox::Next(TimePoint deadline, bool with_artifacts) {
  while (true) {
    Work work;
    std::optional<Spool::Record> spooled;
    {
      MutexLock lock(mutex_);
      while (!closed() && !interrupted_ &&
             !TakeWork(with_artifacts && patience_ == kNever, work, spooled)) {
        if (!changed_.WaitUntil(mutex_, deadline)) break;
      }
      // Returning work must not lose an interruption: the flag stays set for the next call.
      if (std::holds_alternative<std::monostate>(work)) interrupted_ = false;
    }
    if (!spooled) return work;
    // Read without the lock, because the artifact may be large.
    absl::StatusOr<std::string> bytes = options_.spool->Read(*spooled);
    auto& upload = std::get<Upload>(work);
    if (bytes.ok()) {
      upload.bytes = std::make_shared<const std::string>(*std::move(bytes));
      return work;
    }
    MutexLock lock(mutex_);
    // The upload may have been dropped in the meantime.
    const std::optional<size_t> place = FindUpload(upload);
    if (!place.has_value()) continue;
    ReplaceByFailure(upload.trial, *place,
                     absl::StrCat("the worker lost a checkpoint that waited to be sent: ",
                                  std::string(bytes.status().message())));
  }
}

bool Outbox::IsOfBatch(const Item& item, bool with_artifacts) const {
  if (!item.is_checkpoint) return !item.is_block();
  if (item.is_upload) return false;
  return item.was_sent ||
         (with_artifacts && item.artifact && item.bytes <= options_.max_batch_bytes);
}

bool Outbox::TakeWork(bool with_artifacts, Work& work, std::optional<Spool::Record>& spooled) {
  for (size_t i = 0; i < trials_.size(); ++i) {
    const size_t index = (turn_ + i) % trials_.size();
    Trial& trial = trials_[index];
    if (trial.awaits_answer || trial.sent == trial.items.size()) continue;
    if (trial.items[trial.sent].is_block()) {
      if (!UnpackBlock(static_cast<int64_t>(index)) || trial.items.empty()) continue;
    }
    turn_ = index;
    Item& item = trial.items[trial.sent];
    if (!IsOfBatch(item, with_artifacts)) {
      ++turn_;
      item.is_upload = true;  // until it is stored: it may fail, and `with_artifacts` may change
      work = Upload{.trial = static_cast<int64_t>(index),
                    .sequence = trial.acknowledged + static_cast<int64_t>(trial.sent) + 1,
                    .step = item.event.step(),
                    .bytes = item.artifact};
      spooled = item.spooled;
    } else {
      v1::StreamEventsRequest batch = TakeBatch(with_artifacts);
      // The server stores artifacts beside the stream, where later batches would overtake this one.
      if (!batch.artifacts().empty()) {
        for (const v1::Event& event : batch.events()) {
          trials_[index_by_name_.at(event.trial())].awaits_answer = true;
        }
      }
      work = std::move(batch);
    }
    return true;
  }
  return false;
}

v1::StreamEventsRequest Outbox::TakeBatch(bool with_artifacts) {
  v1::StreamEventsRequest batch;
  batch.set_lease_id(lease_id_);
  batch.set_fencing_token(fencing_token_);
  *batch.mutable_time() = ToTimestamp(absl::Now());
  int64_t bytes = 0;
  const size_t most_trials = after_break_ ? 1 : trials_.size();
  for (size_t i = 0; i < most_trials; ++i, ++turn_) {
    Trial& trial = trials_[turn_ % trials_.size()];
    if (trial.awaits_answer) continue;
    const size_t first = trial.sent;
    while (trial.sent < trial.items.size()) {
      Item& item = trial.items[trial.sent];
      const bool is_event = IsOfBatch(item, with_artifacts);
      if (is_event) bytes += item.bytes;
      const bool is_full = batch.events_size() == options_.max_batch_events ||
                           (batch.events_size() > 0 && bytes > options_.max_batch_bytes);
      if (!is_event && trial.sent > first) break;
      if (!is_event || is_full) {
        if (trial.sent > first) ++turn_;
        return batch;
      }
      v1::Event& event = *batch.add_events();
      event = item.event;
      event.set_trial(trial.name);
      event.set_attempt(trial.attempt);
      event.set_sequence(trial.acknowledged + static_cast<int64_t>(trial.sent) + 1);
      if (item.is_checkpoint) {
        // After a broken stream, the server mostly has it.
        if (!std::exchange(item.was_sent, true)) {
          (*batch.mutable_artifacts())[event.checkpoint().sha256()] = *item.artifact;
        }
        trial.awaits_answer = true;
      }
      ++trial.sent;
    }
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
  // Indexes cannot be computed, because an earlier item may be a block: during the upload, a
  // sequence gap can make sent events unsent again, and full memory can then spool them.
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
  // From now on it counts as a plain event.
  Free(item);
  item.spooled.reset();
  item.artifact.reset();
  item.is_checkpoint = false;
  item.bytes = BytesOf(item.event);
  Count(item, 1);
  NoteProgressLocked();
  changed_.NotifyAll();
}

void Outbox::UploadRefused(const Upload& upload, absl::string_view reason) {
  MutexLock lock(mutex_);
  const std::optional<size_t> place = FindUpload(upload);
  if (!place.has_value()) return;
  // Earlier items stay: they are valid results. Later items have not been sent, because they waited
  // for the upload.
  ReplaceByFailure(upload.trial, *place,
                   absl::StrCat("the server does not store the checkpoint of step ", upload.step,
                                " (", upload.bytes->size(), " bytes): ", std::string(reason)));
}

void Outbox::Acknowledge(const v1::StreamEventsResponse& response) {
  MutexLock lock(mutex_);
  if (response.lease_id() != lease_id_) return;
  AcknowledgeTrial(response);
  for (const v1::StreamEventsResponse& other : response.others()) AcknowledgeTrial(other);
  after_break_ = false;
  changed_.NotifyAll();
}

void Outbox::AcknowledgeTrial(const v1::StreamEventsResponse& response) {
  const auto found = index_by_name_.find(response.trial());
  if (found == index_by_name_.end()) return;
  const int64_t index = found->second;
  Trial& trial = trials_[index];
  if (trial.closed) return;
  LENGTHWISE_FAILPOINT("outbox.acknowledge.before");
  NoteProgressLocked();
  // Only sent ones, because the server cannot have stored others: a wrong number must not drop
  // them.
  while (trial.sent > 0 && trial.acknowledged < response.acknowledged_sequence()) {
    Item& item = trial.items.front();
    if (item.is_outcome) trial.finished = true;
    Free(item);
    ++trial.acknowledged;
    trial.items.pop_front();
    --trial.sent;
  }
  switch (response.refusal()) {
    case v1::StreamEventsResponse::STALE_LEASE:
      CloseTrialLocked(index);
      break;
    case v1::StreamEventsResponse::SEQUENCE_GAP:
      if (response.acknowledged_sequence() < trial.acknowledged) {
        platform::LogError("the server lost events of ", trial.name,
                           " that it had acknowledged (it has ", response.acknowledged_sequence(),
                           " of ", trial.acknowledged, "); the lease is given up");
        CloseLocked();
      } else {
        trial.sent = 0;
      }
      break;
    case v1::StreamEventsResponse::NOT_STORED:
      if (MakeUploads(trial)) break;
      [[fallthrough]];
    case v1::StreamEventsResponse::INVALID:
      ReplaceByFailure(index, 0,
                       absl::StrCat("the server refused the worker's events: ", response.detail()));
      break;
    default:
      break;
  }
  trial.awaits_answer = trial.awaits_answer && trial.sent > 0;
}

bool Outbox::MakeUploads(Trial& trial) {
  bool has_any = false;
  for (; trial.sent > 0; --trial.sent) {
    Item& item = trial.items[trial.sent - 1];
    item.is_upload = item.is_checkpoint;
    has_any = has_any || item.is_checkpoint;
  }
  return has_any;
}

void Outbox::ReplaceByFailure(int64_t index, size_t first, const std::string& reason) {
  Trial& trial = trials_[index];
  platform::LogError(trial.name, ": ", reason);
  if (trial.refused) {
    CloseTrialLocked(index);
    return;
  }
  // Of what cannot be sent: a trial that fails twice at one step has failed for good.
  const int64_t step = first < trial.items.size() ? trial.items[first].event.step() : 0;
  DropItems(trial, first);
  trial.refused = true;
  stopped_[index].store(true, std::memory_order_release);
  Item item;
  *item.event.mutable_time() = ToTimestamp(absl::Now());
  item.event.set_step(step);
  item.event.mutable_outcome()->set_kind(v1::Outcome::FAILED_TEMPORARILY);
  item.event.mutable_outcome()->set_reason(PlainText(reason, kMaxLogLineBytes));
  item.is_outcome = true;
  item.bytes = static_cast<int64_t>(sizeof(Item));
  Append(trial, std::move(item));
  changed_.NotifyAll();
}

void Outbox::Resend() {
  MutexLock lock(mutex_);
  for (Trial& trial : trials_) {
    trial.sent = 0;
    trial.awaits_answer = false;
  }
  after_break_ = true;
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
  // No notification: a thread that waits for the earlier time checks again.
  patience_ = std::min(patience_end_, After(stall_));
}

bool Outbox::Flush() {
  MutexLock lock(mutex_);
  while (!closed() && events_ > 0) Wait();
  return !closed();
}

void Outbox::Sleep(TimePoint time) {
  MutexLock lock(mutex_);
  while (!closed() && std::chrono::steady_clock::now() < time) Wait(time);
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

// Memory and spool. Invariants whenever mutex_ is free, each with its reason:
//
// 1. A trial's items have consecutive sequence numbers from `acknowledged` + 1; a block counts as
//    its `events`. So numbers need not be stored and survive spooling, and the server sees no gap.
// 2. The first `sent` items are single events in memory, some with their artifacts; blocks and
//    checkpoints to upload come later. So an acknowledgement drops whole items, and a checkpoint's
//    event never precedes its artifact. A block is unpacked before its first event is sent.
// 3. A block holds adjacent events and never spans a checkpoint, whose event stays in memory while
//    its artifact is in the spool. So unpacking in place restores the order, and FindUpload finds a
//    checkpoint without reading the disk.
// 4. Each spool record belongs to exactly one item, and Free releases both. The spool reclaims a
//    file only when all its records are released, so a leaked record would cost a whole file.
// 5. bytes_, event_bytes_, spooled_bytes_ and events_ are sums over all items, and only Count
//    changes them. An error in a sum would block producers forever or keep Flush from returning.
// 6. A trial with no event in flight can always unpack its next block, even if that exceeds
//    max_bytes by one block. Otherwise memory full of items behind that block would be a deadlock.

void Outbox::PutItem(int64_t trial, Item item) {
  *item.event.mutable_time() = ToTimestamp(absl::Now());
  item.bytes =
      BytesOf(item.event) + (item.artifact ? static_cast<int64_t>(item.artifact->size()) : 0);
  // TryPut reads freed_ under the lock in which it finds no room, so WaitForRoom cannot miss room
  // that is freed between the two calls.
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
    // No events are spooled to make room for an artifact: the artifact itself can be spooled.
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
  // Choose the largest among each trial's last run of unsent events in memory: the last events are
  // sent last.
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
  // Invariant 6: with no event in flight, the limit does not apply.
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
  // An empty box cannot stall: the time without progress starts with its first item.
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

}  // namespace lengthwise::worker
