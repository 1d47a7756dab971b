// Sends a lease's outbox to the server: events and small artifacts in batches over a stream, other
// artifacts by upload.
#ifndef LENGTHWISE_WORKER_CONNECTION_EVENT_SENDER_H_
#define LENGTHWISE_WORKER_CONNECTION_EVENT_SENDER_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/time/time.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/artifact_transfer.h"
#include "worker/connection/backoff.h"
#include "worker/connection/outbox.h"
#include "worker/connection/reachability.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {

// Two threads: one writer takes work from the outbox, opens the stream and uploads; one reader per
// stream passes acknowledgements to the outbox. After a stream breaks, the writer backs off, opens
// a new one and sends every unacknowledged event again.
class EventSender {
 public:
  struct Options {
    // Waits between retries of all calls.
    Backoff::Options backoff;
    // A stream with unacknowledged events counts as broken after this long without an
    // acknowledgement.
    absl::Duration acknowledgement_timeout = absl::Seconds(60);
  };

  // `stub`, `objects`, `lease` and `outbox` outlive the sender.
  EventSender(v1::WorkerService::StubInterface& stub, ObjectTransfers& objects,
              const v1::Lease& lease, Outbox& outbox, const Options& options);
  // Calls Stop.
  ~EventSender();
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;

  // Cancels calls in flight and joins the threads. Unacknowledged items stay in the outbox.
  void Stop();

 private:
  class Stream;

  void Run();
  // Sends until the stream breaks or the sender stops.
  void SendUntilBroken();
  // Tries the upload once; after a failure waits for the back-off.
  void Upload(const Outbox::Upload& upload);
  bool stopping() const { return stopping_.load() || outbox_.closed(); }

  v1::WorkerService::StubInterface& stub_;
  ObjectTransfers& objects_;
  const v1::Lease& lease_;
  Outbox& outbox_;
  const Options options_;

  CallGroup calls_;
  std::atomic<bool> stopping_ = false;
  // Used by the writer only.
  Backoff backoff_;
  Backoff upload_backoff_;
  Reachability reachability_;
  std::thread writer_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_EVENT_SENDER_H_
