#include "worker/connection/testing/fake_worker_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "platform/sha256.h"

namespace lengthwise::worker {

using ::google::protobuf::util::TimeUtil;
using platform::MutexLock;
using std::chrono::steady_clock;

class FakeWorkerService::Service final : public v1::WorkerService::Service {
 public:
  explicit Service(FakeWorkerService& server) : server_(server) {}

  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    MutexLock lock(server_.mutex_);
    State& state = Touch();
    if (grpc::Status failure = Pop(state.call_failures); !failure.ok()) return failure;
    // Calls may overtake each other.
    const auto later = std::find_if(
        state.calls.begin(), state.calls.end(), [&](const v1::SynchronizeRequest& call) {
          return call.session() == request->session() && call.number() > request->number();
        });
    state.calls.insert(later, *request);
    state.newest_call = request->number();
    state.acquires += request->wants_lease() ? 1 : 0;
    if (!std::exchange(state.is_registered, true)) state.registrations.push_back(request->worker());
    // A worker tells it again in every call until one of them was answered.
    for (const v1::ReleasedLease& released : request->released()) {
      const bool known = std::any_of(state.releases.begin(), state.releases.end(),
                                     [&](const v1::ReleasedLease& earlier) {
                                       return earlier.fencing_token() == released.fencing_token();
                                     });
      if (!known) state.releases.push_back(released);
    }
    Hold(*context, *request);
    if (server_.stopping_) return {grpc::StatusCode::UNAVAILABLE, "stopping"};
    const auto duration = [](absl::Duration time) {
      return TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(time));
    };
    *response->mutable_heartbeat_interval() = duration(state.heartbeat_interval);
    *response->mutable_lease_duration() = duration(state.lease_duration);
    for (const v1::HeldLease& held : request->leases()) {
      auto& status = *response->add_leases();
      status.set_lease_id(held.lease_id());
      status.set_lost(state.lost_leases.contains(held.lease_id()));
      if (const auto preempted = state.preempted_leases.find(held.lease_id());
          preempted != state.preempted_leases.end()) {
        status.set_preempted(true);
        status.set_reason(preempted->second);
      }
      for (const std::string& trial : state.cancelled_trials) status.add_cancelled_trials(trial);
    }
    if (!request->wants_lease() || state.newest_call > request->number()) return grpc::Status::OK;
    if (state.leases.empty()) {
      response->set_no_lease_reason(state.no_lease_reason);
    } else {
      *response->mutable_lease() = state.leases.front();
      state.leases.pop_front();
    }
    return grpc::Status::OK;
  }

  grpc::Status StreamEvents(grpc::ServerContext* context,
                            grpc::ServerReaderWriter<v1::StreamEventsResponse,
                                                     v1::StreamEventsRequest>* stream) override {
    StreamFault fault;
    bool faulty = false;
    {
      MutexLock lock(server_.mutex_);
      State& state = Touch();
      ++state.streams;
      if (!state.stream_faults.empty()) {
        fault = state.stream_faults.front();
        state.stream_faults.pop_front();
        faulty = true;
      }
    }
    v1::StreamEventsRequest batch;
    for (int batches = 0; !(faulty && batches == fault.stored) && stream->Read(&batch); ++batches) {
      v1::StreamEventsResponse response;
      {
        MutexLock lock(server_.mutex_);
        if (server_.state_.vanishing_batches > 0) {
          --server_.state_.vanishing_batches;
          continue;
        }
        response = Store(batch);
        while (server_.state_.holds_acknowledgements && !server_.stopping_) {
          server_.changed_.Wait(server_.mutex_);
        }
      }
      if (!faulty || batches < fault.acknowledged) stream->Write(response);
    }
    return faulty ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut off") : grpc::Status::OK;
  }

  grpc::Status UploadArtifact(grpc::ServerContext* context,
                              grpc::ServerReader<v1::UploadArtifactRequest>* reader,
                              v1::UploadArtifactResponse*) override {
    {
      MutexLock lock(server_.mutex_);
      NoteDeadline(*context);
      State& state = Touch();
      ++state.uploads;
      if (grpc::Status failure = Pop(state.upload_failures); !failure.ok()) return failure;
      // Polls, because gRPC does not notify of a cancellation.
      while (state.holds_uploads && !server_.stopping_ && !context->IsCancelled()) {
        server_.changed_.WaitUntil(server_.mutex_,
                                   steady_clock::now() + std::chrono::milliseconds(10));
      }
    }
    v1::UploadArtifactRequest request;
    if (!reader->Read(&request) || !request.has_header()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the first message must have the header"};
    }
    const v1::UploadArtifactRequest::Header header = request.header();
    std::string bytes;
    absl::Duration pause;
    {
      MutexLock lock(server_.mutex_);
      pause = server_.state_.upload_pause;
    }
    int64_t parts = 0;
    do {
      ++parts;
      absl::SleepFor(pause);
      if (request.data().size() > 1 << 20) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "a chunk of more than 1 MiB"};
      }
      bytes += request.data();
    } while (reader->Read(&request));
    if (static_cast<int64_t>(bytes.size()) != header.size_bytes() ||
        platform::Sha256Hex(bytes) != header.sha256()) {
      return {grpc::StatusCode::DATA_LOSS, "damaged"};
    }
    MutexLock lock(server_.mutex_);
    Touch().history.push_back(absl::StrCat("upload ", header.trial(), " ", header.step()));
    server_.state_.upload_parts += parts;
    server_.state_.artifacts[header.sha256()] = std::move(bytes);
    return grpc::Status::OK;
  }

  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::DownloadArtifactResponse>* writer) override {
    std::string bytes;
    {
      MutexLock lock(server_.mutex_);
      NoteDeadline(*context);
      State& state = Touch();
      ++state.downloads;
      if (grpc::Status failure = Pop(state.download_failures); !failure.ok()) return failure;
      // Polls, because gRPC does not notify of a cancellation.
      while (state.holds_downloads && !server_.stopping_ && !context->IsCancelled()) {
        server_.changed_.WaitUntil(
            server_.mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
      }
      const auto found = state.artifacts.find(request->sha256());
      if (found == state.artifacts.end()) return {grpc::StatusCode::NOT_FOUND, "no artifact"};
      bytes = found->second;
      if (state.damages_downloads) bytes[bytes.size() / 2] ^= 1;
    }
    v1::DownloadArtifactResponse response;
    for (size_t offset = 0; offset < bytes.size(); offset += 1 << 20) {
      response.set_data(bytes.substr(offset, 1 << 20));
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  grpc::Status SignTransfer(grpc::ServerContext*, const v1::SignTransferRequest* request,
                            v1::SignTransferResponse* response) override {
    const auto sign = server_.With([](State& state) { return state.sign_transfer; });
    if (!sign) return {grpc::StatusCode::UNIMPLEMENTED, "no object store"};
    return sign(*request, *response);
  }

 private:
  // True if the answer to the call need not wait.
  bool IsDue(const v1::SynchronizeRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    const State& state = server_.state_;
    const bool has_directive =
        std::any_of(request.leases().begin(), request.leases().end(), [&](const auto& held) {
          return !state.cancelled_trials.empty() || state.lost_leases.contains(held.lease_id()) ||
                 state.preempted_leases.contains(held.lease_id());
        });
    const bool holds = state.holds_answers || request.wants_lease();
    return !holds || has_directive || server_.stopping_ || request.stopping() ||
           !state.is_registered || state.newest_call > request.number() ||
           (request.wants_lease() && !state.leases.empty());
  }

  void Hold(const grpc::ServerContext& context, const v1::SynchronizeRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    const auto end = steady_clock::now() +
                     std::chrono::milliseconds(TimeUtil::DurationToMilliseconds(request.wait()));
    ++server_.state_.held_answers;
    while (!IsDue(request) && !context.IsCancelled() && steady_clock::now() < end) {
      // Polls, because gRPC does not notify of a cancellation.
      server_.changed_.WaitUntil(server_.mutex_,
                                 steady_clock::now() + std::chrono::milliseconds(10));
    }
    --server_.state_.held_answers;
  }

  State& Touch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    server_.changed_.NotifyAll();
    return server_.state_;
  }

  void NoteDeadline(const grpc::ServerContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    if (context.deadline() != std::chrono::system_clock::time_point::max()) {
      ++server_.state_.transfers_with_deadline;
    }
  }

  static grpc::Status Pop(std::deque<grpc::Status>& failures) {
    if (failures.empty()) return grpc::Status::OK;
    grpc::Status failure = failures.front();
    failures.pop_front();
    return failure;
  }

  v1::StreamEventsResponse Store(const v1::StreamEventsRequest& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    v1::StreamEventsResponse response;
    for (int first = 0, end = 0; first < batch.events_size(); first = end) {
      v1::StreamEventsRequest part;
      *part.mutable_artifacts() = batch.artifacts();
      while (end < batch.events_size() &&
             batch.events(end).trial() == batch.events(first).trial()) {
        *part.add_events() = batch.events(end++);
      }
      (first == 0 ? response : *response.add_others()) = StorePart(part);
    }
    response.set_lease_id(batch.lease_id());
    return response;
  }

  v1::StreamEventsResponse StorePart(const v1::StreamEventsRequest& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    State& state = Touch();
    const std::string& trial = batch.events(0).trial();
    std::vector<v1::Event>& stored = state.events[trial];
    v1::StreamEventsResponse response;
    response.set_trial(trial);
    response.set_refusal(Check(batch, stored));
    if (response.refusal() == v1::StreamEventsResponse::REFUSAL_UNSPECIFIED) {
      for (const v1::Event& event : batch.events()) {
        if (event.sequence() <= static_cast<int64_t>(stored.size())) {
          ++state.duplicates;
          continue;
        }
        const auto artifact = batch.artifacts().find(event.checkpoint().sha256());
        if (artifact != batch.artifacts().end())
          state.artifacts.insert({artifact->first, artifact->second});
        stored.push_back(event);
        state.history.push_back(absl::StrCat("event ", trial, " ", event.sequence()));
      }
    } else {
      ++state.refusals;
      response.set_detail("as the test asked");
    }
    response.set_acknowledged_sequence(static_cast<int64_t>(stored.size()));
    return response;
  }

  v1::StreamEventsResponse::Refusal Check(const v1::StreamEventsRequest& batch,
                                          const std::vector<v1::Event>& stored)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_.mutex_) {
    State& state = server_.state_;
    int64_t next = batch.events(0).sequence();
    for (const v1::Event& event : batch.events()) {
      if (event.sequence() != next++ ||
          (!state.invalid_text.empty() && event.log_line().text() == state.invalid_text)) {
        return v1::StreamEventsResponse::INVALID;
      }
    }
    if (state.stale_trials.contains(batch.events(0).trial())) {
      return v1::StreamEventsResponse::STALE_LEASE;
    }
    if (state.reported_gaps > 0 ||
        batch.events(0).sequence() > static_cast<int64_t>(stored.size()) + 1) {
      if (state.reported_gaps > 0) --state.reported_gaps;
      return v1::StreamEventsResponse::SEQUENCE_GAP;
    }
    if (state.lost_artifacts > 0 && !batch.artifacts().empty()) {
      --state.lost_artifacts;
      return v1::StreamEventsResponse::NOT_STORED;
    }
    for (const v1::Event& event : batch.events()) {
      const std::string& sha256 = event.checkpoint().sha256();
      if (event.has_checkpoint() && state.sign_transfer == nullptr &&
          !batch.artifacts().contains(sha256) && !state.artifacts.contains(sha256)) {
        return v1::StreamEventsResponse::NOT_STORED;
      }
    }
    return v1::StreamEventsResponse::REFUSAL_UNSPECIFIED;
  }

  FakeWorkerService& server_;
};

FakeWorkerService::FakeWorkerService() = default;

FakeWorkerService::~FakeWorkerService() { Stop(); }

void FakeWorkerService::Start() {
  {
    MutexLock lock(mutex_);
    stopping_ = false;
  }
  service_ = std::make_unique<Service>(*this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
}

void FakeWorkerService::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
  service_.reset();
}

std::string FakeWorkerService::address() const { return absl::StrCat("127.0.0.1:", port_); }

bool FakeWorkerService::WaitUntil(const std::function<bool(const State&)>& condition) {
  const steady_clock::time_point deadline = steady_clock::now() + std::chrono::seconds(30);
  MutexLock lock(mutex_);
  while (!condition(state_)) {
    if (!changed_.WaitUntil(mutex_, deadline) && steady_clock::now() >= deadline) {
      return condition(state_);
    }
  }
  return true;
}

}  // namespace lengthwise::worker
