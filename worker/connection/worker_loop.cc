#include "worker/connection/worker_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "worker/connection/backoff.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {
namespace {

using ::google::protobuf::util::TimeUtil;
using platform::MutexLock;

std::string Plural(int64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

Connection::Options WithSenderBackoff(Connection::Options options) {
  options.session.sender.backoff = options.backoff;
  return options;
}

std::shared_ptr<grpc::Channel> ChannelOf(const Connection::Options& options) {
  if (options.channel != nullptr) return options.channel;
  return CreateServerChannel({.server = options.server}, options.backoff).value();
}

}  // namespace

Connection::Connection(const Options& options, PackRunner& runner)
    : options_(WithSenderBackoff(options)),
      runner_(runner),
      stub_(v1::WorkerService::NewStub(ChannelOf(options))),
      reachability_({.subject = absl::StrCat("server ", options.server)}) {}

Connection::~Connection() = default;

absl::Status Connection::Run() {
  v1::WorkerDescription description;
  description.set_worker_id(options_.worker_id);
  description.set_experiment(options_.experiment);
  *description.mutable_provenance() = runner_.provenance();
  description.set_max_pack_size(std::max(1, runner_.max_pack_size()));
  description.set_api_version(platform::kWorkerApiVersion);
  Presence* presence = nullptr;
  {
    // Drain either is seen here or finds the presence to interrupt.
    MutexLock lock(mutex_);
    if (draining_) return absl::OkStatus();
    presence_ =
        std::make_unique<Presence>(*stub_, std::move(description), reachability_,
                                   Presence::Options{.backoff = options_.backoff,
                                                     .rpc_timeout = options_.rpc_timeout,
                                                     .explain = options_.explain,
                                                     .measurements = options_.session.measurements,
                                                     .capacities = &capacities_});
    presence = presence_.get();
  }
  std::thread timer;
  if (options_.drain_at != kNever) timer = std::thread([this] { DrainInTime(); });
  Backoff backoff(options_.backoff);
  absl::Status result;
  TimePoint idle_end = After(options_.exit_when_idle);
  while (!draining()) {
    if (absl::Status status = presence->WaitUntilRegistered(idle_end); !status.ok()) {
      if (status.code() == absl::StatusCode::kDeadlineExceeded) break;  // idle
      if (!draining()) result = std::move(status);
      break;
    }
    const absl::Duration time = TimeForLeases();
    if (time <= absl::ZeroDuration()) {
      platform::LogInfo("too little of the lifetime remains for another lease");
      break;
    }
    absl::Duration wait = std::min(options_.acquire_wait, time);
    if (idle_end != kNever) {
      wait = std::clamp(absl::FromChrono(idle_end - std::chrono::steady_clock::now()),
                        absl::ZeroDuration(), wait);
    }
    const TimePoint asked = std::chrono::steady_clock::now();
    absl::StatusOr<v1::Lease> lease = AcquireLease(wait);
    if (lease.ok() && lease->trials().empty()) {
      if (std::chrono::steady_clock::now() >= idle_end) break;
      // Avoids a tight loop if the server answers without waiting.
      if (std::chrono::steady_clock::now() - asked < absl::ToChronoNanoseconds(wait / 2)) {
        Wait(backoff.Next());
      } else {
        backoff.Reset();
      }
    } else if (lease.ok()) {
      const absl::Status status = RunLease(*std::move(lease));
      result = runner_.device_status();
      if (!result.ok()) break;
      idle_end = After(options_.exit_when_idle);
      if (status.ok()) {
        backoff.Reset();
      } else {
        // Gives another worker, which may be able to run the pack, a chance to lease it.
        Wait(backoff.Next());
      }
    } else if (lease.status().code() == absl::StatusCode::kNotFound) {
      presence->RegistrationLost();
    } else if (!draining()) {
      // Transient errors are not logged here: the presence reports that the server is unreachable.
      if (!IsTransient(lease.status())) {
        platform::LogWarning(
            absl::StrCat("cannot acquire a lease: ", lease.status().ToString(), "; retrying"));
      }
      Wait(backoff.Next());
      if (std::chrono::steady_clock::now() >= idle_end) break;
    }
  }
  if (result.ok() && std::chrono::steady_clock::now() >= idle_end) {
    platform::LogInfo("idle for too long without a lease: exiting");
  }
  std::unique_ptr<Presence> ended;
  {
    MutexLock lock(mutex_);
    ended = std::move(presence_);
    ended_ = true;
    changed_.NotifyAll();
  }
  if (timer.joinable()) timer.join();
  // Called without the lock, because it joins a thread. Limited to 2 s, like the release of a lease
  // to a server that may be away.
  ended->SayGoodbye(std::min(options_.rpc_timeout, absl::Seconds(2)));
  return result;
}

absl::Duration Connection::TimeForLeases() {
  if (options_.drain_at == kNever) return absl::InfiniteDuration();
  return absl::FromChrono(options_.drain_at - std::chrono::steady_clock::now()) -
         std::max(options_.shortest_run, 2 * longest_start_);
}

void Connection::DrainInTime() {
  {
    MutexLock lock(mutex_);
    while (!ended_ && std::chrono::steady_clock::now() < options_.drain_at) {
      changed_.WaitUntil(mutex_, options_.drain_at);
    }
    if (ended_ || draining_) return;
  }
  platform::LogInfo("the lifetime is about to end: draining and storing checkpoints");
  Drain();
}

void Connection::Drain() {
  MutexLock lock(mutex_);
  if (draining_) return;
  draining_ = true;
  changed_.NotifyAll();
  acquire_calls_.Cancel();
  if (presence_) presence_->Interrupt();
  if (session_ != nullptr) session_->Drain();
}

v1::WorkerMeasurements Connection::ReadMeasurements() {
  v1::WorkerMeasurements measurements;
  if (options_.session.measurements != nullptr)
    measurements = options_.session.measurements->Read();
  MutexLock lock(mutex_);
  if (session_ != nullptr) session_->AddMeasurements(measurements);
  return measurements;
}

absl::StatusOr<v1::Lease> Connection::AcquireLease(absl::Duration wait) {
  v1::AcquireLeaseRequest request;
  request.set_worker_id(options_.worker_id);
  *request.mutable_wait() = TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(wait));
  v1::AcquireLeaseResponse response;
  CallGroup::Call call(acquire_calls_, wait + options_.rpc_timeout);
  RETURN_IF_ERROR(ToStatus(stub_->AcquireLease(call.context(), request, &response)));
  if (response.no_lease_reason() != no_lease_reason_) {
    no_lease_reason_ = response.no_lease_reason();
    if (!no_lease_reason_.empty()) {
      platform::LogInfo(absl::StrCat("no lease: ", no_lease_reason_));
    }
  }
  return std::move(*response.mutable_lease());
}

absl::Status Connection::RunLease(v1::Lease lease) {
  LENGTHWISE_FAILPOINT("connection.lease.acquired");
  platform::LogInfo(absl::StrCat("lease ", lease.fencing_token(), ": running ",
                                 Plural(lease.trials_size(), "trial"), ", the first is ",
                                 lease.trials(0).trial()));
  LeaseSession::Options session_options = options_.session;
  session_options.capacities = &capacities_;
  LeaseSession session(*stub_, objects_, std::move(lease), session_options);
  // Logs the fencing token, because the lease id is a secret.
  const int64_t number = session.lease().fencing_token();
  {
    // Mutexes nest in this order: connection, presence, session, outbox, spool.
    MutexLock lock(mutex_);
    session_ = &session;
    presence_->SetSession(&session);
    // Drain found no session if it came before this one.
    if (draining_) session.Drain();
  }
  absl::Status status = runner_.Run(session.lease(), session);
  longest_start_ = std::max(longest_start_, session.time_to_first_step());
  const bool sent = session.Flush();
  LENGTHWISE_FAILPOINT("connection.lease.flushed");
  // Before the lease is released: nothing may be in flight for trials that are about to be leased
  // again.
  session.StopSending();
  {
    // The heartbeat thread and Drain use the session, which ends with this function.
    MutexLock lock(mutex_);
    session_ = nullptr;
    presence_->SetSession(nullptr);
  }
  if (sent && session.IsComplete()) {
    platform::LogInfo(absl::StrCat("lease ", number, ": done"));
    return absl::OkStatus();
  }
  if (draining()) {
    // Unsent events mean that the server is away: one short try is enough.
    ReleaseLease(session.lease(), "the worker was asked to stop",
                 sent ? options_.rpc_timeout : std::min(options_.rpc_timeout, absl::Seconds(2)));
    return absl::OkStatus();
  }
  if (const std::string preemption = session.preemption(); !preemption.empty()) {
    // The next attempt repeats unsent work from the last stored checkpoint.
    ReleaseLease(session.lease(), preemption, options_.rpc_timeout);
    return absl::OkStatus();
  }
  if (!sent) {
    platform::LogWarning(absl::StrCat("lease ", number, ": ended before its trials did"));
    return absl::OkStatus();
  }
  if (status.ok()) status = absl::InternalError("the runner returned before its trials ended");
  platform::LogError(absl::StrCat("lease ", number, ": ", status.ToString()));
  ReleaseLease(session.lease(), absl::StrCat("the worker cannot run it: ", status.message()),
               options_.rpc_timeout, /*unfit=*/true);
  return status;
}

void Connection::ReleaseLease(const v1::Lease& lease, const std::string& reason,
                              absl::Duration patience, bool unfit) {
  v1::ReleaseLeaseRequest request;
  request.set_worker_id(options_.worker_id);
  request.set_lease_id(lease.lease_id());
  request.set_fencing_token(lease.fencing_token());
  request.set_reason(reason);
  request.set_unfit(unfit);
  // The trials may be what broke the device: another worker must not lose its own for ever.
  request.set_lost(unfit && !runner_.device_status().ok());
  const absl::Time end = absl::Now() + patience;
  Backoff backoff(options_.backoff);
  absl::Status status;
  do {
    LENGTHWISE_FAILPOINT("connection.release.before");
    CallGroup calls;
    CallGroup::Call call(calls, end - absl::Now());
    v1::ReleaseLeaseResponse response;
    status = ToStatus(stub_->ReleaseLease(call.context(), request, &response));
    if (status.ok()) {
      LENGTHWISE_FAILPOINT("connection.release.after");
      platform::LogInfo(absl::StrCat("lease ", lease.fencing_token(), ": released: ", reason));
      return;
    }
    if (!IsTransient(status)) break;
    absl::SleepFor(std::min(backoff.Next(), std::max(end - absl::Now(), absl::ZeroDuration())));
  } while (absl::Now() < end);
  platform::LogWarning(absl::StrCat("lease ", lease.fencing_token(), ": could not be released (",
                                    ShortReason(status), "); it expires by itself"));
}

void Connection::Wait(absl::Duration duration) {
  const TimePoint until = After(duration);
  MutexLock lock(mutex_);
  while (!draining_ && std::chrono::steady_clock::now() < until) changed_.WaitUntil(mutex_, until);
}

bool Connection::draining() {
  MutexLock lock(mutex_);
  return draining_;
}

}  // namespace lengthwise::worker
