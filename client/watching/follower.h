// Streams an experiment's events and reconnects after a lost connection.
#ifndef LENGTHWISE_CLIENT_WATCHING_FOLLOWER_H_
#define LENGTHWISE_CLIENT_WATCHING_FOLLOWER_H_

#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/connection/connection.h"
#include "platform/mutex.h"

namespace lengthwise::client {

// Reads on a thread of its own. After a broken stream it calls again from the last `next_position`
// with exponential backoff, and drops duplicate events. Before the first response it gives up after
// one try. The methods are for one thread.
class Follower {
 public:
  // Leaves out attention maps. `connection` must outlive the follower.
  Follower(Connection& connection, v1::WatchExperimentRequest request);
  // Ends the stream and the thread.
  ~Follower();

  struct Update {
    // Empty if none arrived in time.
    std::optional<v1::WatchExperimentResponse> response;
    // Why there is no connection; OK while connected.
    absl::Status connection;
    // Set after the last response: the final status of the stream.
    std::optional<absl::Status> end;
  };

  // Waits for the next response, at most `timeout`.
  Update Next(absl::Duration timeout);

 private:
  void Run();
  bool Push(v1::WatchExperimentResponse response);
  // Returns false when the follower is ending.
  bool Pause(absl::Duration backoff);

  Connection& connection_;
  // For the thread: what is left to ask for.
  v1::WatchExperimentRequest request_;

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::deque<v1::WatchExperimentResponse> responses_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Connection::Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_FOLLOWER_H_
