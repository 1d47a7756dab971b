#include "server/coordination/coordinator_impl.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "absl/strings/str_cat.h"
#include "monitoring/histogram.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "server/coordination/decision_counts.h"
#include "server/coordination/retention.h"
#include "server/storage/backup.h"
#include "server/storage/sqlite_storage.h"

namespace lengthwise::server {
namespace {

// Bounds of a group: how long its commit may keep others waiting.
constexpr size_t kMaxGroupCommands = 512;
constexpr int64_t kMaxGroupBytes = 8 << 20;
// How often a store that failed is tried again.
constexpr absl::Duration kRetryStore = absl::Seconds(1);

Engine::Options EngineOptions(const Coordinator::Options& options) {
  Engine::Options engine;
  engine.scheduler.lease_duration = options.lease_duration;
  engine.scheduler.max_failed_attempts = options.max_failed_attempts;
  engine.scheduler.min_run = options.preempt_after;
  engine.heartbeat_interval = options.heartbeat_interval;
  engine.max_unended_trials = options.max_unended_trials;
  return engine;
}

Coordinator::Statistics NoStatistics() {
  Coordinator::Statistics statistics;
  statistics.decided = NoDecisions();
  statistics.lease_trials = monitoring::EmptyHistogram({1, 2, 4, 8, 16, 32, 64, 128});
  statistics.commit_seconds = monitoring::EmptyHistogram(
      {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5});
  const auto sizes = {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0};
  statistics.commit_commands = statistics.commit_events = monitoring::EmptyHistogram(sizes);
  return statistics;
}

absl::Status Stopping() { return absl::UnavailableError("the server is stopping; try again"); }

absl::Status Behind() {
  return absl::UnavailableError(
      "nothing was stored: more waits for the server's disk than its memory may hold; try again");
}

absl::Status NotStored(const absl::Status& cause) {
  return absl::UnavailableError(
      absl::StrCat("nothing was stored: ", cause.message(), "; try again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorImpl>> CoordinatorImpl::Open(const Options& options,
                                                                       Dependencies dependencies) {
  if (!options.restore_from.empty()) {
    RETURN_IF_ERROR(RestoreBackup(options.restore_from, options.data_dir));
  }
  if (absl::Status status = platform::CreateDirectories(options.data_dir); !status.ok()) {
    return absl::FailedPreconditionError(status.message());
  }
  auto lock = platform::FileLock::Acquire(options.data_dir + "/LOCK");
  if (!lock.ok() && !absl::IsAborted(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        lock.status().message(), "; the server must be able to write in its data directory"));
  }
  if (!lock.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(lock.status().message(), "; another server may be using ", options.data_dir,
                     ": stop it or choose another data directory"));
  }
  SqliteOptions sqlite_options;
  sqlite_options.max_bytes = dependencies.max_database_bytes;
  if (dependencies.on_failed_sync) sqlite_options.on_failed_sync = dependencies.on_failed_sync;
  ASSIGN_OR_RETURN(auto storage,
                   OpenSqliteStorage(options.data_dir + "/lengthwise.db", sqlite_options));
  RETURN_IF_ERROR(DeleteUnfinishedBackups(options.data_dir));
  ASSIGN_OR_RETURN(auto artifacts, ArtifactStore::Open(options.data_dir + "/artifacts"));
  std::unique_ptr<CoordinatorImpl> coordinator(
      new CoordinatorImpl(options, std::move(dependencies), *std::move(lock), std::move(storage),
                          std::move(artifacts)));
  {
    platform::MutexLock engine_lock(coordinator->engine_mutex_);
    RETURN_IF_ERROR(coordinator->engine_.Rebuild());
  }
  {
    ASSIGN_OR_RETURN(const auto reader, coordinator->storage_->Read());
    RETURN_IF_ERROR(DeleteLeftArtifacts(*reader, *coordinator->artifacts_));
  }
  platform::MutexLock stop_lock(coordinator->stop_mutex_);
  coordinator->thread_ = std::thread([raw = coordinator.get()] { raw->Run(); });
  return coordinator;
}

CoordinatorImpl::CoordinatorImpl(const Options& options, Dependencies dependencies,
                                 std::unique_ptr<platform::FileLock> lock,
                                 std::unique_ptr<Storage> storage,
                                 std::unique_ptr<ArtifactStore> artifacts)
    : options_(options),
      dependencies_(std::move(dependencies)),
      lock_(std::move(lock)),
      storage_(std::move(storage)),
      artifacts_(std::move(artifacts)),
      lease_ids_(storage_->lease_key()),
      summaries_(*storage_),
      disk_uses_(options.data_dir + "/artifacts"),
      engine_(EngineOptions(options), *storage_, *artifacts_, fleet_, dependencies_.clock),
      statistics_(NoStatistics()) {}

CoordinatorImpl::~CoordinatorImpl() { Stop(); }

void CoordinatorImpl::Stop() {
  {
    platform::MutexLock lock(queue_mutex_);
    stopping_ = true;
  }
  queue_changed_.NotifyAll();
  platform::MutexLock lock(stop_mutex_);
  if (thread_.joinable()) thread_.join();
}

void CoordinatorImpl::PostCommand(Command command) {
  absl::Status refusal;
  {
    platform::MutexLock lock(queue_mutex_);
    if (stopping_) {
      refusal = Stopping();
    } else if (command.bytes > 0 &&
               queued_bytes_ + command.bytes > dependencies_.max_queued_bytes) {
      refusal = Behind();
    } else {
      queued_bytes_ += command.bytes;
      queue_.push_back(std::move(command));
      queue_changed_.NotifyOne();
      return;
    }
  }
  command.fail(refusal);
}

std::vector<CoordinatorImpl::Command> CoordinatorImpl::TakeGroup(bool& last) {
  const absl::Time now = dependencies_.clock.steady();
  const absl::Time deadline = broken_ ? now + kRetryStore : has_space_ ? now : NextDeadline();
  std::vector<Command> group;
  platform::MutexLock lock(queue_mutex_);
  while (queue_.empty() && !stopping_) {
    const absl::Duration wait = deadline - dependencies_.clock.steady();
    if (wait <= absl::ZeroDuration()) break;
    // At most an hour, so that no sum overflows.
    queue_changed_.WaitUntil(queue_mutex_,
                             std::chrono::steady_clock::now() +
                                 absl::ToChronoNanoseconds(std::min(wait, absl::Hours(1))));
  }
  int64_t bytes = 0;
  while (!queue_.empty() && group.size() < kMaxGroupCommands && bytes < kMaxGroupBytes) {
    bytes += queue_.front().bytes;
    queued_bytes_ -= queue_.front().bytes;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (group.back().ends_group) break;
  }
  last = stopping_ && queue_.empty();
  return group;
}

absl::Time CoordinatorImpl::NextDeadline() {
  absl::Time deadline = engine_.scheduler().NextDeadline();
  for (const Waiter& waiter : waiters_) deadline = std::min(deadline, waiter.deadline);
  return deadline;
}

void CoordinatorImpl::Run() {
  bool last = false;
  while (!last) {
    const std::vector<Command> group = TakeGroup(last);
    ProcessGroup(group);
    // While nothing else is to be done, so that a command waits for one step at most.
    if (group.empty() || !has_space_) {
      has_space_ = !broken_ && storage_->writer().GiveBackSpace().value_or(false);
    }
  }
  for (Waiter& waiter : waiters_) waiter.done(Stopping());
  waiters_.clear();
}

void CoordinatorImpl::ProcessGroup(const std::vector<Command>& group) {
  std::vector<Answer> answers;
  std::vector<Waiter> served;
  absl::Status status;
  {
    platform::MutexLock lock(engine_mutex_);
    if (broken_) status = engine_.Rebuild();
    if (status.ok()) {
      broken_ = false;
      status = engine_.Begin();
    }
    if (status.ok()) {
      for (const Command& command : group) answers.push_back(command.apply());
      // After the commands: heartbeats that waited in the queue came in time.
      engine_.Tick().IgnoreError();  // an error of the store shows at the commit
      ServeWaiters(answers, served);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  bool changed = false;
  if (status.ok()) {
    changed = engine_.HasChanges();
    status = engine_.Commit();
  }
  if (!status.ok()) {
    {
      platform::MutexLock lock(engine_mutex_);
      broken_ = !engine_.Rebuild().ok();
    }
    summaries_.ForgetAll();
    {
      platform::MutexLock lock(statistics_mutex_);
      ++statistics_.commit_failures;
    }
    const absl::Status failure = NotStored(status);
    for (const Command& command : group) command.fail(failure);
    for (const Waiter& waiter : served) waiter.done(failure);
    waiters_.remove_if([](const Waiter& waiter) { return *waiter.answered; });
    return;
  }
  const absl::Duration commit_time = absl::FromChrono(std::chrono::steady_clock::now() - start);
  if (changed) LENGTHWISE_FAILPOINT("coordinator.publish.before");
  Publish(engine_.TakeEffects(), commit_time, group.size(), changed);
  if (changed) LENGTHWISE_FAILPOINT("coordinator.answer.before");
  for (const Answer& answer : answers) {
    if (answer) answer();
  }
  if (changed) LENGTHWISE_FAILPOINT("coordinator.answer.after");
}

void CoordinatorImpl::ServeWaiters(std::vector<Answer>& answers, std::vector<Waiter>& served) {
  const absl::Time now = engine_.Now();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const bool late = waiter->deadline <= now || waiter->superseded;
    if (!late && !engine_.scheduler().HasRunnable(waiter->worker, now)) {
      ++waiter;
      continue;
    }
    absl::StatusOr<v1::AcquireLeaseResponse> response = v1::AcquireLeaseResponse();
    const bool given_up = waiter->given_up();
    if (waiter->superseded) {
      response->set_no_lease_reason("the worker asked again");
    } else if (given_up) {
      response->set_no_lease_reason("the worker gave the call up");
    } else {
      response = engine_.AcquireLease(waiter->worker, waiter->caller);
    }
    if (!late && !given_up && response.ok() && !response->has_lease()) {
      ++waiter;
      continue;
    }
    answers.push_back([done = waiter->done, response = std::move(response)] { done(response); });
    served.push_back(std::move(*waiter));
    waiter = waiters_.erase(waiter);
  }
}

void CoordinatorImpl::Publish(Effects effects, absl::Duration commit_time, size_t commands,
                              bool changed) {
  {
    platform::MutexLock lock(statistics_mutex_);
    statistics_.events_stored += effects.events;
    statistics_.points_stored += effects.points;
    statistics_.lease_expiries += effects.lease_expiries;
    Add(effects.decided, statistics_.decided);
    for (const int32_t trials : effects.granted) {
      monitoring::Observe(trials, statistics_.lease_trials);
    }
    if (changed) {
      monitoring::Observe(absl::ToDoubleSeconds(commit_time), statistics_.commit_seconds);
      monitoring::Observe(static_cast<double>(commands), statistics_.commit_commands);
      monitoring::Observe(static_cast<double>(effects.events), statistics_.commit_events);
    }
  }
  running_trials_.Apply(effects.running);
  for (const auto& [trial, accuracies] : effects.evaluations) {
    running_trials_.Evaluated(trial, accuracies);
  }
  for (const std::string& experiment : effects.reshaped) summaries_.Forget(experiment);
  for (const auto& [experiment, trials] : effects.trials) summaries_.Update(experiment, trials);
  for (const std::string& experiment : effects.reshaped) recent_pages_.Changed(experiment);
  for (const std::string& experiment : effects.experiments) recent_pages_.Changed(experiment);
  for (const std::string& experiment : effects.experiments) subscriptions_.Wake(experiment);
  for (const WorkerProgress& told : effects.progress) {
    const std::optional<std::string> experiment = running_trials_.Progress(told);
    if (experiment.has_value()) subscriptions_.Progress(*experiment, told.progress);
  }
  for (std::function<void()>& action : effects.actions) deletions_.Run(std::move(action));
}

void CoordinatorImpl::Flush() {
  std::promise<void> acted;
  PostCommand({.apply = [&acted]() -> Answer { return [&acted] { acted.set_value(); }; },
               .fail = [&acted](const absl::Status&) { acted.set_value(); }});
  acted.get_future().wait();
}

}  // namespace lengthwise::server
