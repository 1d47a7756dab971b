#include "worker/connection/presence.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {
namespace {

using ::google::protobuf::util::TimeUtil;
using platform::MutexLock;

// Bounds how long a dead connection goes unnoticed: this plus the rpc timeout.
constexpr absl::Duration kLongestWait = absl::Seconds(30);

// Returns true if a retry would get the same answer, even for a worker that was registered before.
bool IsFinal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kUnimplemented;
}

// Returns true if retries fail until the token is renewed.
bool IsAboutAccess(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnauthenticated ||
         status.code() == absl::StatusCode::kPermissionDenied;
}

}  // namespace

Presence::Presence(v1::WorkerService::StubInterface& stub, v1::WorkerDescription description,
                   Reachability& reachability, const Options& options)
    : stub_(stub),
      description_(std::move(description)),
      reachability_(reachability),
      options_(options),
      thread_([this] { Run(); }) {}

Presence::~Presence() { Stop(); }

void Presence::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  // After stopping_ is set, so that Run does not report the cancelled call as an outage.
  calls_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void Presence::SayGoodbye(absl::Duration patience) {
  Stop();
  {
    MutexLock lock(mutex_);
    if (!registered_) return;
  }
  v1::HeartbeatRequest request;
  request.set_worker_id(description_.worker_id());
  request.set_stopping(true);
  CallGroup calls;
  CallGroup::Call call(calls, patience);
  v1::HeartbeatResponse response;
  // Ignores errors: a server that misses the goodbye counts the worker as lost, which does not
  // affect its trials.
  stub_.Heartbeat(call.context(), request, &response);
}

absl::Status Presence::WaitUntilRegistered(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (true) {
    RETURN_IF_ERROR(refusal_);
    if (interrupted_) return absl::CancelledError("interrupted");
    if (registered_) return absl::OkStatus();
    if (deadline == kNever) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline) &&
               std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError("not registered in time");
    }
  }
}

void Presence::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  changed_.NotifyAll();
}

void Presence::RegistrationLost() {
  MutexLock lock(mutex_);
  registered_ = false;
  changed_.NotifyAll();
}

void Presence::SetSession(LeaseSession* session) {
  MutexLock lock(mutex_);
  session_ = session;
}

void Presence::Run() {
  Backoff backoff(options_.backoff);
  while (true) {
    bool registered;
    bool was_registered;
    absl::Duration wait;
    {
      MutexLock lock(mutex_);
      if (stopping_ || !refusal_.ok()) return;
      registered = registered_;
      was_registered = was_registered_;
      wait = std::min(lease_duration_ / 4, kLongestWait);
    }
    const TimePoint sent = std::chrono::steady_clock::now();
    absl::Status status = registered ? SendHeartbeat(wait) : Register();
    {
      // Stop cancelled the call, so its error needs no explanation.
      MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (!status.ok() && options_.explain) {
      const absl::Status explained = options_.explain(status);
      // A worker that was registered before keeps retrying: its trials continue until the server
      // accepts it again.
      if (!explained.ok()) {
        status = was_registered ? absl::UnavailableError(explained.message()) : explained;
      }
    }
    if (status.ok()) {
      reachability_.Succeeded();
      backoff.Reset();
      // The first heartbeat follows a registration at once, because leases may be about to expire.
      // So does the next one if an answer was held for longer than the interval.
      if (registered) {
        Wait(heartbeat_interval() - absl::FromChrono(std::chrono::steady_clock::now() - sent));
      }
    } else if (registered && status.code() == absl::StatusCode::kNotFound) {
      RegistrationLost();
    } else if (!registered && (IsFinal(status) || (!was_registered && IsAboutAccess(status)))) {
      MutexLock lock(mutex_);
      refusal_ = status;
      if (session_ != nullptr) session_->Abandon();
      changed_.NotifyAll();
    } else {
      reachability_.Failed(status);
      Wait(backoff.Next());
    }
  }
}

absl::Status Presence::Register() {
  v1::RegisterWorkerRequest request;
  *request.mutable_worker() = description_;
  v1::RegisterWorkerResponse response;
  {
    CallGroup::Call call(calls_, options_.rpc_timeout);
    RETURN_IF_ERROR(ToStatus(stub_.RegisterWorker(call.context(), request, &response)));
  }
  LENGTHWISE_FAILPOINT("presence.register.after");
  if (options_.capacities != nullptr && options_.capacities->ForgetTold()) {
    // Otherwise the first lease could be a pack that does not fit.
    RETURN_IF_ERROR(SendHeartbeat(absl::ZeroDuration()));
  }
  platform::LogInfo(absl::StrCat("registered as ", description_.worker_id()));
  MutexLock lock(mutex_);
  registered_ = was_registered_ = true;
  SetHeartbeatInterval(response.heartbeat_interval());
  lease_duration_ = absl::Milliseconds(TimeUtil::DurationToMilliseconds(response.lease_duration()));
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Duration Presence::heartbeat_interval() {
  MutexLock lock(mutex_);
  return heartbeat_interval_;
}

void Presence::SetHeartbeatInterval(const google::protobuf::Duration& interval) {
  const auto asked = absl::Milliseconds(TimeUtil::DurationToMilliseconds(interval));
  if (asked > absl::ZeroDuration()) heartbeat_interval_ = asked;
}

absl::Status Presence::SendHeartbeat(absl::Duration wait) {
  v1::HeartbeatRequest request;
  request.set_worker_id(description_.worker_id());
  *request.mutable_wait() = TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(wait));
  if (options_.measurements != nullptr) {
    *request.mutable_measurements() = options_.measurements->Read();
  }
  if (options_.capacities != nullptr) options_.capacities->AddUntold(request);
  {
    MutexLock lock(mutex_);
    if (session_ != nullptr) session_->AddToHeartbeat(request);
  }
  LENGTHWISE_FAILPOINT("presence.heartbeat.before");
  v1::HeartbeatResponse response;
  {
    CallGroup::Call call(calls_, options_.rpc_timeout + wait);
    RETURN_IF_ERROR(ToStatus(stub_.Heartbeat(call.context(), request, &response)));
  }
  LENGTHWISE_FAILPOINT("presence.heartbeat.after");
  // Only after the answer: capacities of a lost heartbeat are sent again.
  if (options_.capacities != nullptr) options_.capacities->Told(request);
  // The session may have changed during the call; Apply ignores directives for other leases.
  MutexLock lock(mutex_);
  SetHeartbeatInterval(response.heartbeat_interval());
  if (session_ != nullptr) session_->Apply(response);
  return absl::OkStatus();
}

void Presence::Wait(absl::Duration duration) {
  const TimePoint until = After(duration);
  MutexLock lock(mutex_);
  const bool registered = registered_;
  while (!stopping_ && registered_ == registered && std::chrono::steady_clock::now() < until) {
    changed_.WaitUntil(mutex_, until);
  }
}

}  // namespace lengthwise::worker
