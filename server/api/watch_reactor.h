// One client's WatchExperiment: history first, then live, without a gap.
//
// The reactor is two cursors (the next position of the log, and how much of the running trials'
// progress was given) and five facts that others tell it: "something was committed", "there is
// progress", "a write is done", "the client is gone", "it is stopped". It keeps no queue: a slow
// client's reactor simply reads its next page later, and of the progress what is newest then.
//
//              fact                        StartWrite
//   kIdle ------------------> kScheduled -------------> kWriting
//     ^                        |   ^  |                    |
//     |   nothing to send      |   |  |    OnWriteDone     |
//     +------------------------+   +--|--------------------+
//                                     |  Finish
//                                     +---------> kFinished --OnDone--> destroyed
//
// kScheduled means that Step is queued or running on the pool; there is at most one, so what only
// Step touches needs no lock, and Step alone calls StartWrite (never with a write outstanding) and
// Finish (likewise). A fact that arrives in kScheduled is remembered (`again_`), in kWriting it is
// picked up after OnWriteDone. The others only record their fact and schedule, so nobody (not the
// command loop's thread, either) waits for a slow client or serializes its messages.
//
// Lifetime: gRPC owns the reactor until OnDone; a queued Step holds a reference, too. OnDone ends
// the subscription, and with it the last call from the event log.
#ifndef LENGTHWISE_SERVER_API_WATCH_REACTOR_H_
#define LENGTHWISE_SERVER_API_WATCH_REACTOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "proto/experiment_service.pb.h"
#include "server/api/open_streams.h"
#include "server/api/work_pool.h"
#include "server/coordination/event_log.h"

namespace lengthwise::server {

class WatchReactor final : public grpc::ServerWriteReactor<v1::WatchExperimentResponse>,
                           public StoppableStream,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  // The reactor for a validated request. All three outlive the stream.
  static WatchReactor* Start(const v1::WatchExperimentRequest& request, EventLog& log,
                             WorkPool& pool, OpenStreams& streams);

  // The stream ends with the reason, to which UNAVAILABLE adds the position to watch again from.
  void Stop(const absl::Status& reason) override;
  // Since the first commit, or the watch's start, after which the client was not given everything.
  absl::Duration Lag(absl::Time now) override;

  // From gRPC.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Phase { kIdle, kScheduled, kWriting, kFinished };

  WatchReactor(const v1::WatchExperimentRequest& request, EventLog& log, WorkPool& pool,
               OpenStreams& streams)
      : request_(request),
        watches_trial_(request.name().find("/trials/") != std::string::npos),
        log_(log),
        pool_(pool),
        streams_(streams),
        cursor_(request.start_position()) {}

  // From the subscription.
  void OnWake();
  void OnProgress(const v1::TrialProgress& progress);

  void Schedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SubmitStep();
  // On the pool: reads at most one page and sends at most one response.
  void Step();
  // Adds what is new of the running trials' progress to `response_`; true when there is more of it.
  bool ReadProgress();
  // Reads the next page into `response_`. Sets `more` when there is another page to read at once.
  absl::Status ReadPage(bool& more);
  void FinishWith(const absl::Status& status);

  const v1::WatchExperimentRequest request_;
  const bool watches_trial_;
  EventLog& log_;
  WorkPool& pool_;
  OpenStreams& streams_;
  std::shared_ptr<WatchReactor> self_;  // gRPC's ownership; released by OnDone
  std::unique_ptr<Subscription> subscription_;

  // Touched by Step alone.
  int64_t cursor_;
  int64_t progress_cursor_ = 0;
  bool caught_up_ = false;
  // The response ends with the newest event.
  bool at_end_ = false;
  // All trials have ended and all events are read: the stream ends when they are written.
  bool complete_ = false;
  v1::WatchExperimentResponse response_;  // lives until OnWriteDone

  platform::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kIdle;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  // The first wake since the newest read began, and since the client was last given everything; the
  // infinite future for none.
  absl::Time woken_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time behind_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // why; OK while it is not
  // There is progress that was not read.
  bool progressed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_WATCH_REACTOR_H_
