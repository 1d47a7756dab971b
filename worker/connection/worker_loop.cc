#include "worker/connection/worker_loop.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "platform/counted.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/version.h"
#include "proto/timestamps.h"

namespace lengthwise::worker {
namespace {

using ::google::protobuf::util::TimeUtil;
using platform::MutexLock;
using std::chrono::steady_clock;

// Bounds how long a dead connection goes unnoticed: this plus the rpc timeout.
constexpr absl::Duration kLongestWait = absl::Seconds(30);

std::shared_ptr<grpc::Channel> ChannelOf(const WorkerLoop::Options& options) {
  if (options.channel != nullptr) return options.channel;
  return CreateServerChannel({.server = options.server}, options.session.sender.backoff).value();
}

v1::WorkerDescription Describe(const WorkerLoop::Options& options, const PackRunner& runner) {
  v1::WorkerDescription description;
  description.set_worker_id(options.worker_id);
  description.set_experiment(options.experiment);
  *description.mutable_provenance() = runner.provenance();
  description.set_max_pack_size(std::max(1, runner.max_pack_size()));
  description.set_api_version(platform::kWorkerApiVersion);
  return description;
}

// Another process may have the same id of a worker and, in a container, of a process.
std::string NewSession() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

absl::Duration Milliseconds(const google::protobuf::Duration& duration) {
  return absl::Milliseconds(TimeUtil::DurationToMilliseconds(duration));
}

// Returns true if a retry would get the same answer, even for a worker that was known before.
bool IsFinal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
}

// Returns true if retries fail until the token is renewed.
bool IsAboutAccess(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

struct WorkerLoop::Call {
  Call(CallGroup& group, absl::Duration timeout) : call(group, timeout) {}

  CallGroup::Call call;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  TimePoint sent = steady_clock::now();
};

WorkerLoop::WorkerLoop(const Options& options, PackRunner& runner)
    : options_(options),
      runner_(runner),
      description_(Describe(options, runner)),
      process_(NewSession()),
      stub_(v1::WorkerService::NewStub(ChannelOf(options_))),
      reachability_(absl::StrCat("server ", options.server)),
      backoff_(options.session.sender.backoff) {}

absl::Status WorkerLoop::Run() {
  if (steady_clock::now() >= LastStart()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "too little of the lifetime is left for any lease, which needs ",
        absl::FormatDuration(options_.shortest_run),
        " before the worker stores its checkpoints; set a longer --lifetime, or sbatch's --time "
        "for a job of `lengthwise workers up`"));
  }
  TimePoint idle_end = After(options_.exit_when_idle);
  {
    MutexLock lock(mutex_);
    if (draining_) return absl::OkStatus();
    wants_lease_ = steady_clock::now() < std::min(idle_end, LastStart());
  }
  std::thread calls([this] { Synchronize(); });
  absl::Status result;
  while (result.ok()) {
    absl::StatusOr<v1::Lease> lease = AwaitLease(idle_end);
    if (!lease.ok()) {
      if (!absl::IsCancelled(lease.status())) result = lease.status();
      break;
    }
    RunLease(*std::move(lease));
    result = runner_.device_status();
    idle_end = After(options_.exit_when_idle);
  }
  Leave();
  calls.join();
  return result;
}

absl::StatusOr<v1::Lease> WorkerLoop::AwaitLease(TimePoint idle_end) {
  const TimePoint end = std::min(idle_end, LastStart());
  MutexLock lock(mutex_);
  const bool asks = !granted_.has_value() && steady_clock::now() < end;
  if (asks && !std::exchange(wants_lease_, true)) Tell();
  while (!granted_.has_value() && !draining_ && refusal_.ok() && steady_clock::now() < end) {
    changed_.WaitUntil(mutex_, end);
  }
  wants_lease_ = false;
  std::optional<v1::Lease> lease = std::exchange(granted_, std::nullopt);
  if (lease.has_value() && !draining_ && refusal_.ok()) return *std::move(lease);
  // The server ends a lease that is neither listed nor wanted.
  held_.reset();
  if (!refusal_.ok()) return refusal_;
  if (!draining_) {
    platform::LogInfo(steady_clock::now() >= idle_end
                          ? "idle for too long without a lease: exiting"
                          : "too little of the lifetime remains for another lease");
  }
  return absl::CancelledError("the worker ends");
}

TimePoint WorkerLoop::LastStart() const {
  if (options_.drain_at == kNever) return kNever;
  return options_.drain_at -
         absl::ToChronoNanoseconds(std::max(options_.shortest_run, 2 * longest_start_));
}

void WorkerLoop::Drain() {
  MutexLock lock(mutex_);
  DrainLocked();
}

void WorkerLoop::DrainLocked() {
  if (draining_) return;
  draining_ = true;
  changed_.NotifyAll();
  if (session_ != nullptr) session_->Drain();
}

void WorkerLoop::Tell() {
  is_news_ = true;
  changed_.NotifyAll();
}

v1::WorkerMeasurements WorkerLoop::ReadMeasurements() {
  v1::WorkerMeasurements measurements;
  if (options_.session.measurements != nullptr) {
    measurements = options_.session.measurements->Read();
  }
  MutexLock lock(mutex_);
  if (session_ != nullptr) session_->AddMeasurements(measurements);
  return measurements;
}

void WorkerLoop::RunLease(v1::Lease lease) {
  LENGTHWISE_FAILPOINT("loop.lease.acquired");
  platform::LogInfo("lease ", lease.fencing_token(), ": running ",
                    platform::Counted(lease.trials_size(), "trial"), ", the first is ",
                    lease.trials(0).trial());
  LeaseSession session(*stub_, objects_, capacities_, std::move(lease), options_.session);
  // Logs the fencing token, because the lease id is a secret.
  const int64_t number = session.lease().fencing_token();
  {
    MutexLock lock(mutex_);
    session_ = &session;
    // Drain found no session if it came before this one.
    if (draining_) session.Drain();
  }
  absl::Status status = runner_.Run(session.lease(), session);
  longest_start_ = std::max(longest_start_, session.time_to_first_step());
  const bool sent = session.Flush();
  LENGTHWISE_FAILPOINT("loop.lease.flushed");
  // Before the lease is released: nothing may be in flight for trials that are about to be leased
  // again.
  session.StopSending();
  MutexLock lock(mutex_);
  // The calls' threads and Drain use the session, which ends with this function.
  session_ = nullptr;
  held_.reset();
  if (sent && session.IsComplete()) {
    platform::LogInfo("lease ", number, ": done");
  } else if (draining_) {
    if (sent) patience_ = options_.rpc_timeout;
    Release(session.lease(), "the worker was asked to stop");
  } else if (const std::string preemption = session.preemption(); !preemption.empty()) {
    // The next attempt repeats unsent work from the last stored checkpoint.
    Release(session.lease(), preemption);
  } else if (!sent) {
    platform::LogWarning("lease ", number, ": ended before its trials did");
  } else {
    if (status.ok()) status = absl::InternalError("the runner returned before its trials ended");
    platform::LogError("lease ", number, ": ", status.ToString());
    patience_ = options_.rpc_timeout;
    Release(session.lease(), absl::StrCat("the worker cannot run it: ", status.message()),
            /*unfit=*/true);
  }
}

void WorkerLoop::Release(const v1::Lease& lease, const std::string& reason, bool unfit) {
  v1::ReleasedLease& released = released_.emplace_back();
  released.set_lease_id(lease.lease_id());
  released.set_fencing_token(lease.fencing_token());
  released.set_reason(reason);
  released.set_unfit(unfit);
  // The trials may be what broke the device: another worker must not lose its own for ever.
  released.set_lost(unfit && !runner_.device_status().ok());
}

void WorkerLoop::Leave() {
  MutexLock lock(mutex_);
  leaving_ = true;
  leave_until_ = After(std::min(options_.rpc_timeout, patience_));
  Tell();
}

void WorkerLoop::Synchronize() {
  while (AwaitCall()) Send();
  calls_.Cancel();
  MutexLock lock(mutex_);
  while (in_flight_ > 0) changed_.Wait(mutex_);
  for (const v1::ReleasedLease& released : released_) {
    platform::LogWarning("lease ", released.fencing_token(),
                         ": could not be released; it expires by itself");
  }
}

bool WorkerLoop::AwaitCall() {
  MutexLock lock(mutex_);
  while (true) {
    const TimePoint now = steady_clock::now();
    if (leaving_ && (has_left_ || !is_known_ || !refusal_.ok() || now >= leave_until_)) {
      return false;
    }
    if (!draining_ && !leaving_ && now >= options_.drain_at) {
      platform::LogInfo("the lifetime is about to end: draining and storing checkpoints");
      DrainLocked();
    }
    TimePoint next = kNever;
    if (refusal_.ok() && is_news_) next = retry_at_;
    if (refusal_.ok() && !newest_in_flight_) next = std::min(next, due_);
    if (next <= now) return true;
    next = std::min(next, leave_until_);
    if (!draining_) next = std::min(next, options_.drain_at);
    changed_.WaitUntil(mutex_, next);
  }
}

void WorkerLoop::Send() {
  const v1::WorkerMeasurements measurements = ReadMeasurements();
  std::shared_ptr<Call> call;
  {
    MutexLock lock(mutex_);
    const absl::Duration wait =
        leaving_ ? absl::ZeroDuration() : std::min(lease_duration_ / 4, kLongestWait);
    absl::Duration timeout = options_.rpc_timeout + wait;
    if (leaving_) timeout = absl::FromChrono(leave_until_ - steady_clock::now());
    call = std::make_shared<Call>(calls_, timeout);
    v1::SynchronizeRequest& request = call->request;
    *request.mutable_worker() = description_;
    request.set_session(process_);
    request.set_number(++number_);
    if (held_.has_value() && (session_ == nullptr || !session_->lost())) {
      *request.add_leases() = *held_;
    }
    request.mutable_released()->Assign(released_.begin(), released_.end());
    request.set_wants_lease(wants_lease_);
    *request.mutable_measurements() = measurements;
    *request.mutable_measurements()->mutable_time() = ToTimestamp(absl::Now());
    if (session_ != nullptr) session_->AddProgress(request);
    capacities_.AddTo(request);
    request.set_stopping(leaving_);
    *request.mutable_wait() = TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(wait));
    is_news_ = false;
    newest_in_flight_ = true;
    ++in_flight_;
  }
  LENGTHWISE_FAILPOINT("loop.call.before");
  if (call->request.released_size() > 0) LENGTHWISE_FAILPOINT("loop.release.before");
  Call& sent = *call;
  stub_->async()->Synchronize(sent.call.context(), &sent.request, &sent.response,
                              [this, call = std::move(call)](const grpc::Status& status) mutable {
                                Answered(std::move(call), ToStatus(status));
                              });
}

void WorkerLoop::Answered(std::shared_ptr<Call> call, const absl::Status& status) {
  LENGTHWISE_FAILPOINT("loop.call.after");
  MutexLock lock(mutex_);
  const bool newest = call->request.number() == number_;
  if (newest) newest_in_flight_ = false;
  if (status.ok()) {
    Take(call->request, call->response);
    // At once if the answer was held for longer than the interval.
    if (newest) due_ = call->sent + absl::ToChronoNanoseconds(interval_);
  } else if (newest && !calls_.is_cancelled()) {
    Fail(status);
  }
  // Before in_flight_ falls: the call belongs to calls_.
  call.reset();
  --in_flight_;
  changed_.NotifyAll();
}

void WorkerLoop::Take(const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response) {
  reachability_.Succeeded();
  backoff_.Reset();
  retry_at_ = TimePoint();
  if (!std::exchange(is_known_, true)) {
    LENGTHWISE_FAILPOINT("loop.registered.after");
    platform::LogInfo("registered as ", options_.worker_id);
    // Now the worker knows for how long it may wait for a lease.
    is_news_ = true;
  }
  has_left_ = has_left_ || request.stopping();
  for (const v1::ReleasedLease& told : request.released()) {
    LENGTHWISE_FAILPOINT("loop.release.after");
    const auto known = std::remove_if(released_.begin(), released_.end(), [&](const auto& lease) {
      return lease.fencing_token() == told.fencing_token();
    });
    if (known == released_.end()) continue;
    released_.erase(known, released_.end());
    platform::LogInfo("lease ", told.fencing_token(), ": released: ", told.reason());
  }
  // The empty answer to a call that was overtaken.
  if (!response.has_heartbeat_interval()) return;
  interval_ = Milliseconds(response.heartbeat_interval());
  lease_duration_ = Milliseconds(response.lease_duration());
  // The session may have changed during the call; Apply ignores other leases.
  if (session_ != nullptr) session_->Apply(response);
  if (response.no_lease_reason() != no_lease_reason_ && request.wants_lease()) {
    no_lease_reason_ = response.no_lease_reason();
    if (!no_lease_reason_.empty()) platform::LogInfo("no lease: " + no_lease_reason_);
  }
  // A call that overtook the answer with a lease is answered with the same one, and so is a later
  // call if the lease was given up before any call listed it. Tokens do not tell: those of another
  // database begin at 1.
  v1::Lease& lease = *response.mutable_lease();
  if (!wants_lease_ || lease.trials().empty() || request.number() <= taken_at_ ||
      lease.lease_id() == taken_) {
    return;
  }
  wants_lease_ = false;
  taken_at_ = number_;
  taken_ = lease.lease_id();
  held_.emplace();
  held_->set_lease_id(taken_);
  held_->set_fencing_token(lease.fencing_token());
  granted_ = std::move(lease);
}

void WorkerLoop::Fail(absl::Status status) {
  std::string who = "the server refuses this worker: ";
  if (absl::IsUnimplemented(status)) {
    who.clear();
    status = absl::FailedPreconditionError(
        "the server is of release 0.2 or older, and this worker is newer; upgrade the server");
  } else if (options_.explain) {
    const absl::Status explained = options_.explain(status);
    // A worker that was known before keeps retrying: its trials continue until the server accepts
    // it again.
    if (!explained.ok()) {
      who.clear();
      status = is_known_ ? absl::UnavailableError(explained.message()) : explained;
    }
  }
  if (IsFinal(status) || (!is_known_ && IsAboutAccess(status))) {
    refusal_ = absl::Status(status.code(), who + std::string(status.message()));
    if (session_ != nullptr) session_->Abandon();
    return;
  }
  reachability_.Failed(status);
  retry_at_ = due_ = After(backoff_.Next());
}

}  // namespace lengthwise::worker
