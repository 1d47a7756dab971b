// CommandLoop: the thread that changes state. Commands wait in a queue and are applied in groups,
// each group in one transaction of the store (group commit):
//
//   queue -> [apply commands, end leases, serve waiting calls] -> commit -> publish -> answer
//
// A command is answered only once the transaction that holds its effects is durable. If a commit
// fails, every command of its group is answered UNAVAILABLE, and the scheduler's memory is rebuilt
// from the store, because it may be ahead of it.
#ifndef LENGTHWISE_SERVER_COORDINATION_COMMAND_LOOP_H_
#define LENGTHWISE_SERVER_COORDINATION_COMMAND_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/ledger.h"
#include "server/coordination/waiting_calls.h"

namespace lengthwise::server {

// Memory that a unary call holds while its command is queued, in bytes: the call itself, its
// request, and the command's copy of the request.
int64_t BytesOfCall(const google::protobuf::Message& request);

// A committed group of commands.
struct CommittedGroup {
  Effects effects;
  absl::Duration commit_time;
  size_t commands = 0;
  // False if the group wrote nothing.
  bool changed = false;
};

// Thread-safe.
class CommandLoop {
 public:
  using Answer = std::function<void()>;

  struct Options {
    // Maximum bytes of queued commands: of Command::bytes, and half as many of Command::call_bytes,
    // which are 13,000 heartbeats. Further commands are refused with UNAVAILABLE.
    int64_t max_queued_bytes = 256 << 20;
    // Called on the loop's thread, before the group's answers.
    std::function<void(CommittedGroup)> publish;
    // Called on the loop's thread after a commit failed and the ledger was rebuilt.
    std::function<void(const absl::Status&)> commit_failed;
    // Called on the loop's thread before each group, and every second while it fails: an error
    // while the store has no room for new data. Commands with `bytes` are refused with it, and no
    // lease is granted.
    std::function<absl::Status()> find_room = [] { return absl::OkStatus(); };
    // Called on the loop's thread after a write failed. True if that made room for deletions.
    std::function<bool(const absl::Status&)> make_room = [](const absl::Status&) { return false; };
    // Called on the loop's thread every ten minutes, with or without commands. If it returns true,
    // there is more to do, and it is called again after a second. Must be short.
    std::function<bool()> housekeep;
  };

  struct Command {
    // Runs inside a transaction. The answer it returns runs after the commit; null if the command
    // is answered later.
    std::function<Answer()> apply;
    // Called instead if the command was refused or its group's commit failed.
    std::function<void(absl::Status)> fail;
    // Memory of queued events and submissions, in bytes.
    int64_t bytes = 0;
    // Memory of other queued calls, in bytes (BytesOfCall). Counted apart, because heartbeats must
    // get through a queue full of events. A command without either is the server's own, and is
    // never refused.
    int64_t call_bytes = 0;
    // For a command that takes as long as many others. It closes its group, so that a command never
    // waits for two of these.
    bool ends_group = false;
    // It frees space: it is tried again if its group failed and that made room.
    bool frees_space = false;
    // Earlier parts of it are stored (PostParts).
    bool begun = false;
    // Set by PostCommand.
    absl::Time arrived = absl::InfinitePast();
  };

  // All must outlive it. Runs from Start on.
  CommandLoop(Options options, Ledger& ledger, WaitingCalls& waiting);
  ~CommandLoop() { Stop(); }

  void Start();
  // Applies the queued commands, refuses later ones, and returns when the thread has ended.
  void Stop();

  // Queues a command. `done` gets the result of `apply`.
  template <typename T>
  void Post(std::function<absl::StatusOr<T>()> apply, Done<T> done, int64_t bytes = 0,
            int64_t call_bytes = 0, bool frees_space = false) {
    PostCommand({.apply = [apply = std::move(apply), done]() -> Answer {
                   auto result = std::make_shared<absl::StatusOr<T>>(apply());
                   return [done, result] { done(std::move(*result)); };
                 },
                 .fail = [done](absl::Status status) { done(std::move(status)); },
                 .bytes = bytes,
                 .call_bytes = call_bytes,
                 .frees_space = frees_space});
  }
  // Queues a command that runs in parts, each in a group of its own, until a part returns an
  // answer. Other commands run in between. If one of them fails, the earlier ones stay.
  // `call_bytes` counts until the first part runs: a command that has begun (`begun`) is not
  // refused.
  template <typename T>
  void PostParts(std::function<absl::StatusOr<std::optional<T>>()> part, Done<T> done,
                 int64_t call_bytes = 0, bool begun = false) {
    PostCommand({.apply = [this, part, done]() -> Answer {
                   auto result = std::make_shared<absl::StatusOr<std::optional<T>>>(part());
                   return [this, part, done, result] {
                     if (!result->ok()) return done(result->status());
                     if (!result->value().has_value()) {
                       return PostParts(part, done, /*call_bytes=*/0, /*begun=*/true);
                     }
                     done(*std::move(result->value()));
                   };
                 },
                 .fail = [done](absl::Status status) { done(std::move(status)); },
                 .call_bytes = call_bytes,
                 .ends_group = true,
                 .begun = begun});
  }
  void PostCommand(Command command);
  // Queues a worker's call, whose answer may be held (WaitingCalls::Take).
  void Synchronize(v1::SynchronizeRequest request, std::string caller,
                   std::function<bool()> given_up, Done<v1::SynchronizeResponse> done);

  // Calls `read` while no group is being applied and returns its result. `read` may read the
  // scheduler. Keep it short: commands wait for it.
  template <typename Read>
  auto BetweenGroups(Read read) {
    platform::MutexLock lock(state_mutex_);
    return read();
  }

  // Waits until the loop has processed all earlier commands and has acted on an injected clock that
  // was moved.
  void Flush();
  // Number of queued commands.
  int64_t queued();

 private:
  // Commands of one transaction.
  struct Group {
    std::vector<Command> commands;
    // All commands that arrived until then are in this group or in earlier ones.
    absl::Time heard;
    // The loop is stopping, and no command is left.
    bool last = false;
  };

  void Run();
  Group TakeGroup();
  void ProcessGroup(const Group& group);
  void FindRoom();
  // `idle`: the loop ran without a command, because none came before its deadline.
  bool IsCleanUpDue(bool idle) const;
  void CleanUp();
  absl::Time NextDeadline();

  const Options options_;
  Ledger& ledger_;  // changed under state_mutex_, except for its clock
  // Used by the thread only.
  WaitingCalls& waiting_;

  platform::Mutex state_mutex_;  // protects the scheduler's memory; not held during a commit

  // Used by the loop's thread only.
  // The last group failed. Unless a command comes, the loop waits before the next attempt:
  // deadlines that have passed were not served, and would make it spin.
  bool failed_ = false;
  // The rebuild after a failed commit failed too, so memory and store may differ.
  bool broken_ = false;
  // The next clean-up of the store while no command comes: InfinitePast while there is more to do,
  // InfiniteFuture when there is nothing to do until a command has run.
  absl::Time clean_up_at_ = absl::InfinitePast();
  bool clean_up_failed_ = false;
  absl::Time next_housekeeping_;

  platform::Mutex queue_mutex_;
  platform::ConditionVariable queue_changed_;
  std::deque<Command> queue_ ABSL_GUARDED_BY(queue_mutex_);
  absl::Status room_ ABSL_GUARDED_BY(queue_mutex_);  // of find_room
  int64_t queued_bytes_ ABSL_GUARDED_BY(queue_mutex_) = 0;
  int64_t queued_call_bytes_ ABSL_GUARDED_BY(queue_mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;

  platform::Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_COMMAND_LOOP_H_
