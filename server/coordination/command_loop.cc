#include "server/coordination/command_loop.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/log.h"

namespace lengthwise::server {
namespace {

// Limits of a group. Later commands wait for its whole commit.
constexpr size_t kMaxGroupCommands = 512;
constexpr int64_t kMaxGroupBytes = 8 << 20;
// Interval between attempts while the store fails.
constexpr absl::Duration kRetryStore = absl::Seconds(1);
constexpr absl::Duration kHousekeepingInterval = absl::Minutes(10);

absl::Status Stopping() { return absl::UnavailableError("the server is stopping; try again"); }

absl::Status Behind() {
  return absl::UnavailableError(
      "nothing was stored: the server's queue of writes is full, because its disk is too slow; try "
      "again");
}

absl::Status NotStored(const absl::Status& cause, bool begun = false) {
  return absl::UnavailableError(
      begun ? absl::StrCat("only a part was stored: ", cause.message(),
                           "; try again, which does the rest")
            : absl::StrCat("nothing was stored: ", cause.message(), "; try again"));
}

}  // namespace

int64_t BytesOfCall(const google::protobuf::Message& request) {
  constexpr int64_t kEmptyCall = 8 << 10;
  return kEmptyCall + 2 * static_cast<int64_t>(request.SpaceUsedLong());
}

CommandLoop::CommandLoop(Options options, Ledger& ledger, WaitingCalls& waiting)
    : options_(std::move(options)),
      ledger_(ledger),
      waiting_(waiting),
      next_housekeeping_(ledger_.Now() + kHousekeepingInterval) {}

void CommandLoop::Start() {
  platform::MutexLock lock(stop_mutex_);
  thread_ = std::thread([this] { Run(); });
}

void CommandLoop::Stop() {
  {
    platform::MutexLock lock(queue_mutex_);
    stopping_ = true;
  }
  queue_changed_.NotifyAll();
  // Under a mutex, so that every caller returns only after the thread has ended.
  platform::MutexLock lock(stop_mutex_);
  if (thread_.joinable()) thread_.join();
}

void CommandLoop::PostCommand(Command command) {
  absl::Status refusal;
  {
    platform::MutexLock lock(queue_mutex_);
    if (stopping_) {
      refusal = Stopping();
    } else if ((command.bytes > 0 && queued_bytes_ + command.bytes > options_.max_queued_bytes) ||
               (command.call_bytes > 0 &&
                queued_call_bytes_ + command.call_bytes > options_.max_queued_bytes / 2)) {
      refusal = Behind();
    } else if (command.bytes > 0 && !room_.ok()) {
      refusal = NotStored(room_);
    } else {
      command.arrived = ledger_.Now();
      queued_bytes_ += command.bytes;
      queued_call_bytes_ += command.call_bytes;
      queue_.push_back(std::move(command));
      queue_changed_.NotifyOne();
      return;
    }
  }
  // Without the lock: it is code of whoever posted the command, and may post again.
  command.fail(refusal);
}

void CommandLoop::Synchronize(v1::SynchronizeRequest request, std::string caller,
                              std::function<bool()> given_up, Done<v1::SynchronizeResponse> done) {
  const int64_t call_bytes = BytesOfCall(request);
  PostCommand({.apply = [this, request = std::move(request), caller = std::move(caller),
                         given_up = std::move(given_up), done]() mutable -> Answer {
                 absl::Status taken =
                     waiting_.Take(std::move(request), caller, std::move(given_up), done);
                 if (taken.ok()) return nullptr;
                 return [done, taken = std::move(taken)] { done(taken); };
               },
               .fail = [done](absl::Status status) { done(std::move(status)); },
               .call_bytes = call_bytes});
}

CommandLoop::Group CommandLoop::TakeGroup() {
  const absl::Time now = ledger_.Now();
  absl::Time deadline = failed_ ? now + kRetryStore : std::min(clean_up_at_, NextDeadline());
  if (ledger_.full()) deadline = std::min(deadline, now + kRetryStore);
  Group group;
  std::vector<Command>& commands = group.commands;
  platform::MutexLock lock(queue_mutex_);
  while (queue_.empty() && !stopping_) {
    const absl::Duration wait = deadline - ledger_.Now();
    if (wait <= absl::ZeroDuration()) break;
    // At most an hour, so that the sum cannot overflow.
    queue_changed_.WaitUntil(queue_mutex_,
                             std::chrono::steady_clock::now() +
                                 absl::ToChronoNanoseconds(std::min(wait, absl::Hours(1))));
  }
  int64_t bytes = 0;
  while (!queue_.empty() && commands.size() < kMaxGroupCommands && bytes < kMaxGroupBytes) {
    bytes += queue_.front().bytes;
    queued_bytes_ -= queue_.front().bytes;
    queued_call_bytes_ -= queue_.front().call_bytes;
    commands.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (commands.back().ends_group) break;
  }
  group.heard = queue_.empty() ? ledger_.Now() : queue_.front().arrived;
  group.last = stopping_ && queue_.empty();
  return group;
}

absl::Time CommandLoop::NextDeadline() {
  const Scheduler& scheduler = ledger_.scheduler();
  return std::min({scheduler.NextDeadline(), scheduler.NextLoss(), waiting_.NextDeadline(),
                   next_housekeeping_});
}

void CommandLoop::Run() {
  bool last = false;
  while (!last) {
    const Group group = TakeGroup();
    last = group.last;
    FindRoom();
    if (ledger_.Now() >= next_housekeeping_) {
      const bool more = options_.housekeep();
      next_housekeeping_ = ledger_.Now() + (more ? absl::Seconds(1) : kHousekeepingInterval);
    }
    ProcessGroup(group);
    if (!broken_ && IsCleanUpDue(group.commands.empty())) CleanUp();
  }
  for (const Answer& refuse : BetweenGroups([&] { return waiting_.RefuseAll(Stopping()); })) {
    refuse();
  }
}

void CommandLoop::FindRoom() {
  const absl::Status room = options_.find_room();
  ledger_.SetFull(!room.ok());
  platform::MutexLock lock(queue_mutex_);
  room_ = room;
}

bool CommandLoop::IsCleanUpDue(bool idle) const {
  if (clean_up_failed_) return ledger_.Now() >= clean_up_at_;
  // Known work waits until the queue is empty, so that a command waits for at most one step.
  return idle || clean_up_at_ == absl::InfiniteFuture();
}

void CommandLoop::CleanUp() {
  const absl::StatusOr<bool> more = ledger_.store().CleanUp();
  if (more.ok()) {
    clean_up_at_ = *more ? absl::InfinitePast() : absl::InfiniteFuture();
  } else {
    clean_up_at_ = ledger_.Now() + kRetryStore;
    options_.make_room(more.status());
    if (!clean_up_failed_) {
      platform::LogWarning("cannot clean up the database; retrying every second: ",
                           more.status().message());
    }
  }
  clean_up_failed_ = !more.ok();
}

void CommandLoop::ProcessGroup(const Group& group) {
  std::vector<Answer> answers;
  absl::Status status;
  {
    platform::MutexLock lock(state_mutex_);
    if (broken_) status = ledger_.Rebuild();
    if (status.ok()) {
      broken_ = false;
      status = ledger_.Begin();
    }
    if (status.ok()) {
      ledger_.scheduler().Hear(group.heard);
      const absl::Status room = ledger_.full() ? options_.find_room() : absl::OkStatus();
      for (const Command& command : group.commands) {
        // It was queued before the store was full.
        const bool is_refused = command.bytes > 0 && !room.ok();
        answers.push_back(is_refused ? [&command, room] { command.fail(NotStored(room)); }
                                     : command.apply());
      }
      // After the commands, so that a heartbeat that arrived in time but waited in the queue still
      // renews its lease.
      ledger_.Tick().IgnoreError();  // Commit fails after an error of the store, so it is not lost.
      // Last: the others make directives, which waiting workers are told in the same group.
      for (Answer& answer : waiting_.Serve()) answers.push_back(std::move(answer));
    }
  }
  // Without state_mutex_: readers of the scheduler must not wait for the disk. Only this thread
  // changes it, so it stays equal to what is being committed.
  const auto start = std::chrono::steady_clock::now();
  bool changed = false;
  if (status.ok()) {
    changed = ledger_.HasChanges();
    status = ledger_.Commit();
  }
  failed_ = !status.ok();
  if (failed_) {
    answers.clear();
    {
      platform::MutexLock lock(state_mutex_);
      broken_ = !ledger_.Rebuild().ok();
      answers = waiting_.CommitFailed(NotStored(status));
    }
    // Before the answers: a caller that is told of the failure must not read a cache that may be
    // wrong.
    options_.commit_failed(status);
    const bool made_room = options_.make_room(status);
    if (made_room) FindRoom();
    for (const Command& command : group.commands) {
      if (made_room && command.frees_space) {
        PostCommand(command);
      } else {
        command.fail(NotStored(status, command.begun));
      }
    }
    for (const Answer& fail : answers) fail();
    return;
  }
  const absl::Duration commit_time = absl::FromChrono(std::chrono::steady_clock::now() - start);
  waiting_.Committed();
  if (changed) LENGTHWISE_FAILPOINT("coordinator.publish.before");
  // Before the answers: a caller that reads after its answer must see its own effects.
  options_.publish({.effects = ledger_.TakeEffects(),
                    .commit_time = commit_time,
                    .commands = group.commands.size(),
                    .changed = changed});
  if (changed) LENGTHWISE_FAILPOINT("coordinator.answer.before");
  for (const Answer& answer : answers) {
    if (answer) answer();
  }
  if (changed) LENGTHWISE_FAILPOINT("coordinator.answer.after");
}

void CommandLoop::Flush() {
  std::promise<void> acted;
  PostCommand({.apply = [&acted]() -> Answer { return [&acted] { acted.set_value(); }; },
               .fail = [&acted](const absl::Status&) { acted.set_value(); }});
  acted.get_future().wait();
}

int64_t CommandLoop::queued() {
  platform::MutexLock lock(queue_mutex_);
  return static_cast<int64_t>(queue_.size());
}

}  // namespace lengthwise::server
