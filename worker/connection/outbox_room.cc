// What of the outbox is in memory and what in the spool.
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "worker/connection/outbox.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// Of a block in the spool: so much that few are there, and so little that one more in memory does
// not matter.
constexpr int64_t kBlockBytes = 64 << 10;

}  // namespace

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
