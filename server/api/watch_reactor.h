// WatchReactor: one client's WatchExperiment. It sends history first and then live events, without
// a gap.
//
// The reactor holds two cursors (the next position of the log, and the progress of running trials)
// and four facts that others report: "something was committed", "there is progress", "a write is
// done", "the stream is stopped", also by a client that leaves. It has no queue: the reactor of a
// slow client reads its next page later, and then only the newest progress.
//
//              fact                        StartWrite
//   kIdle ------------------> kScheduled -------------> kWriting
//     ^                        |   ^  |                    |
//     |   nothing to send      |   |  |    OnWriteDone     |
//     +------------------------+   +--|--------------------+
//                                     |  Finish
//                                     +---------> kFinished --OnDone--> destroyed
//
// kScheduled means that Step is queued or running on the pool. There is at most one Step, so its
// own members need no lock. Only Step calls StartWrite and Finish, never with a write outstanding.
// Step looks at its end for facts that arrived in kScheduled; one that arrives in kWriting is
// handled after OnWriteDone. The other functions only record their fact and schedule a Step, so no
// thread, including the command loop's, waits for a slow client or serializes its messages.
//
// Lifetime: gRPC owns the reactor until OnDone; a queued Step also holds a reference. OnDone ends
// the subscription, and with it the calls from the event log.
#ifndef LENGTHWISE_SERVER_API_WATCH_REACTOR_H_
#define LENGTHWISE_SERVER_API_WATCH_REACTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "platform/work_pool.h"
#include "proto/experiment_service.pb.h"
#include "server/api/open_streams.h"
#include "server/coordination/event_log.h"

namespace lengthwise::server {

class WatchReactor final
    : public OwnedStream<WatchReactor, grpc::ServerWriteReactor<v1::WatchExperimentResponse>> {
 public:
  // Starts the reactor of a validated request, which reads in `lane` of the pool. All references
  // must outlive the stream.
  static WatchReactor* Start(const v1::WatchExperimentRequest& request, Gate::Admission admission,
                             EventLog& log, platform::WorkPool& pool, OpenStreams& streams,
                             std::string lane);

  // Ends the stream with the reason. UNAVAILABLE also gets the position to resume from.
  void Stop(const absl::Status& reason) override;
  // Time since the first commit, or the start of the watch, after which the client has not been
  // sent everything.
  absl::Duration Lag(absl::Time now) override;

  // Called by gRPC.
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  enum class Phase { kIdle, kScheduled, kWriting, kFinished };

  WatchReactor(const v1::WatchExperimentRequest& request, Gate::Admission admission, EventLog& log,
               platform::WorkPool& pool, OpenStreams& streams, std::string lane)
      : OwnedStream(std::move(admission), streams),
        request_(request),
        watches_trial_(request.name().find("/trials/") != std::string::npos),
        log_(log),
        pool_(pool),
        lane_(std::move(lane)),
        cursor_(request.start_position()) {}

  // Called by the subscription.
  void OnWake();
  void OnProgress(const v1::TrialProgress& progress);

  void Schedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the pool: reads at most one page and sends at most one response.
  void Step();
  // Adds new progress of running trials to `response_`. Returns true if there is more.
  bool ReadProgress();
  // Reads the next page into `response_`. Sets `more` if another page can be read at once.
  absl::Status ReadPage(bool& more);
  void FinishWith(const absl::Status& status);

  const v1::WatchExperimentRequest request_;
  const bool watches_trial_;
  EventLog& log_;
  platform::WorkPool& pool_;
  const std::string lane_;
  EventLog::Subscription subscription_;

  // Used by Step only.
  int64_t cursor_;
  int64_t progress_cursor_ = 0;
  bool caught_up_ = false;
  // The response ends with the newest event.
  bool at_end_ = false;
  bool is_behind_ = false;  // the last page did not
  // All trials have ended and all events are read. The stream ends when they are written.
  bool complete_ = false;
  v1::WatchExperimentResponse response_;  // must live until OnWriteDone
  AnswerBudget::Share share_;             // of response_, if that is large or may be

  platform::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kIdle;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  // Time of the first wake-up since the newest read began, and since the client was last sent
  // everything. InfiniteFuture if there was none.
  absl::Time woken_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time behind_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // the reason; OK while running
  // There is progress that has not been read.
  bool progressed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_WATCH_REACTOR_H_
