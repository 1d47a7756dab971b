#include "server/api/watch_reactor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

// Maximum number of events in a response. The response stays in memory, several times as large as
// on the wire, until the client has read it, and a thousand clients may not read. The event log
// also ends a page at kEventPageBytes.
constexpr int64_t kPageEvents = 100;
// A response that is larger counts in the budget of answers.
constexpr int64_t kCountedBytes = 2 * kEventPageBytes;
// The pages of a reader that is behind are larger while their budget has room.
constexpr int64_t kLargePageEvents = 400;
constexpr int64_t kLargePageBytes = 64 << 10;
// A response of more than this counts in the budget of answers instead.
constexpr int64_t kMostLargeBytes = 2 * kLargePageBytes;
// Maximum number of trials whose progress is in one response.
constexpr int64_t kPageProgress = 1000;

}  // namespace

WatchReactor* WatchReactor::Start(const v1::WatchExperimentRequest& request,
                                  Gate::Admission admission, EventLog& log,
                                  platform::WorkPool& pool, OpenStreams& streams,
                                  std::string lane) {
  std::shared_ptr<WatchReactor> reactor(
      new WatchReactor(request, std::move(admission), log, pool, streams, std::move(lane)));
  // Subscribe before the first read, so that anything committed after that read wakes the reactor.
  // gRPC calls OnDone only after it was given the reactor, so raw pointers in the callbacks stay
  // valid.
  WatchReactor* const raw = reactor.get();
  reactor->subscription_ = log.Subscribe(
      request.name(), [raw] { raw->OnWake(); },
      [raw](const v1::TrialProgress& progress) { raw->OnProgress(progress); });
  raw->Own();
  raw->OnWake();
  return raw;
}

void WatchReactor::OnWake() {
  platform::MutexLock lock(mutex_);
  wake_ = true;
  const absl::Time now = absl::Now();
  woken_ = std::min(woken_, now);
  behind_since_ = std::min(behind_since_, now);
  Schedule();
}

absl::Duration WatchReactor::Lag(absl::Time now) {
  platform::MutexLock lock(mutex_);
  return std::max(now - behind_since_, absl::ZeroDuration());
}

void WatchReactor::OnProgress(const v1::TrialProgress& progress) {
  if (!request_.include_progress()) return;
  // A subscription to a trial gets the progress of its whole experiment.
  if (progress.trial() != request_.name() && watches_trial_) return;
  platform::MutexLock lock(mutex_);
  progressed_ = true;
  Schedule();
}

void WatchReactor::Stop(const absl::Status& reason) {
  platform::MutexLock lock(mutex_);
  if (stopped_.ok()) stopped_ = reason;
  Schedule();
}

void WatchReactor::OnWriteDone(bool ok) {
  if (!ok) OnCancel();
  platform::MutexLock lock(mutex_);
  // No Step runs while a write is outstanding, so at_end_ belongs to that write.
  if (at_end_) behind_since_ = woken_;
  // Clear would keep the memory of a large event.
  if (share_ != nullptr) response_ = v1::WatchExperimentResponse();
  share_.reset();
  phase_ = Phase::kIdle;
  Schedule();
}

void WatchReactor::OnDone() {
  subscription_.reset();
  OwnedStream::OnDone();  // a queued Step keeps the reactor alive after this
}

void WatchReactor::Schedule() {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kScheduled;
  pool_.Submit(lane_, [self = shared_from_this()] { self->Step(); });
}

void WatchReactor::Step() {
  bool wake, progressed;
  absl::Status stopped;
  {
    platform::MutexLock lock(mutex_);
    stopped = stopped_;
    wake = std::exchange(wake_, false);
    if (wake) woken_ = absl::InfiniteFuture();
    progressed = std::exchange(progressed_, false);
  }
  if (complete_) return FinishWith(absl::OkStatus());
  if (absl::IsUnavailable(stopped)) {
    stopped =
        absl::UnavailableError(absl::StrCat(stopped.message(), " with start_position ", cursor_));
  }
  if (!stopped.ok()) return FinishWith(stopped);

  response_.Clear();
  at_end_ = false;
  bool more = false;
  if (wake) {
    if (const absl::Status status = ReadPage(more); !status.ok()) return FinishWith(status);
  }
  const bool more_progress = progressed && ReadProgress();
  response_.set_next_position(cursor_);
  const bool send =
      response_.events_size() > 0 || response_.progress_size() > 0 || response_.caught_up();
  if (complete_ && !send) return FinishWith(absl::OkStatus());
  // Usual pages are small, and the number of watches is limited.
  const int64_t counted_bytes = share_ == nullptr ? kCountedBytes : kMostLargeBytes;
  if (send && static_cast<int64_t>(response_.ByteSizeLong()) > counted_bytes) {
    absl::StatusOr<AnswerBudget::Share> share =
        streams_.answers().Take(lane_, "WatchExperiment", response_);
    if (!share.ok()) return FinishWith(share.status());
    share_ = *std::move(share);
  }

  {
    platform::MutexLock lock(mutex_);
    if (more) wake_ = true;
    if (more_progress) progressed_ = true;
    phase_ = send ? Phase::kWriting : Phase::kIdle;
    if (!send) {
      share_.reset();
      if (at_end_) behind_since_ = woken_;
      if (wake_ || progressed_ || !stopped_.ok()) Schedule();
      return;
    }
  }
  StartWrite(&response_);
}

bool WatchReactor::ReadProgress() {
  std::vector<v1::TrialProgress> newest =
      log_.ReadProgress(request_.name(), kPageProgress, progress_cursor_);
  for (v1::TrialProgress& progress : newest) *response_.add_progress() = std::move(progress);
  return static_cast<int64_t>(newest.size()) == kPageProgress;
}

absl::Status WatchReactor::ReadPage(bool& more) {
  if (is_behind_) {
    auto share = streams_.large_pages().TakeSize(lane_, /*method=*/"", kMostLargeBytes);
    if (share.ok()) share_ = *std::move(share);
  }
  const int64_t most_events = share_ == nullptr ? kPageEvents : kLargePageEvents;
  const int64_t most_bytes = share_ == nullptr ? kEventPageBytes : kLargePageBytes;
  ASSIGN_OR_RETURN(EventPage page, log_.ReadEvents(request_.name(), cursor_, most_events,
                                                   request_.log_only(), most_bytes));
  for (v1::Event& event : page.events) {
    const bool is_large = event.has_attention_map() || event.has_projection();
    if (is_large && request_.omit_attention_maps()) continue;
    *response_.add_events() = std::move(event);
  }
  cursor_ = page.next_position;
  at_end_ = page.at_end;
  is_behind_ = more = !page.at_end;
  if (page.at_end) {
    response_.set_caught_up(!std::exchange(caught_up_, true));
    complete_ = page.unfinished_trials == 0 && !request_.follow();
  }
  return absl::OkStatus();
}

void WatchReactor::FinishWith(const absl::Status& status) {
  {
    platform::MutexLock lock(mutex_);
    phase_ = Phase::kFinished;
  }
  EndCall(status);
}

}  // namespace lengthwise::server
