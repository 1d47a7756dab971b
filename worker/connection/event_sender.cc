#include "worker/connection/event_sender.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/sha256.h"
#include "worker/connection/artifact_transfer.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {

using std::chrono::steady_clock;

// One StreamEvents call and its reader thread.
class EventSender::Stream {
 public:
  Stream(v1::WorkerService::StubInterface& stub, CallGroup& calls, Outbox& outbox,
         Reachability& reachability)
      : call_(calls),
        outbox_(outbox),
        reachability_(reachability),
        stream_(stub.StreamEvents(call_.context())),
        heard_(steady_clock::now()),
        reader_([this] { Read(); }) {}

  // False when the stream has ended. Called by the writer only.
  bool Write(const v1::StreamEventsRequest& batch) {
    // The server is silent only if it owes an acknowledgement: after an idle time, silence counts
    // from this batch.
    if (!owes_) heard_.store(steady_clock::now());
    owes_ = true;
    LENGTHWISE_FAILPOINT("sender.batch.before");
    if (!stream_->Write(batch)) ended_.store(true);
    return !ended();
  }

  bool broken() const { return broken_.load(); }
  // The server has ended the call, or the connection is gone.
  bool ended() const { return ended_.load(); }
  bool heard_anything() const { return heard_anything_.load(); }

  // Returns true if events are unacknowledged and no acknowledgement arrived for `timeout`. Called
  // by the writer only.
  bool IsSilent(absl::Duration timeout) {
    owes_ = outbox_.awaits_acknowledgement();
    return owes_ && steady_clock::now() - heard_.load() >= absl::ToChronoNanoseconds(timeout);
  }

  // Ends the call and returns why it ended.
  grpc::Status Close() {
    // Read blocks until the call ends, and Finish may be called only after the last Read. A call
    // that has ended has a status to tell, which a cancellation would replace.
    if (!ended()) call_.context()->TryCancel();
    reader_.join();
    return stream_->Finish();
  }

 private:
  void Read() {
    v1::StreamEventsResponse response;
    while (!broken()) {
      if (!stream_->Read(&response)) {
        ended_.store(true);
        break;
      }
      const auto is_gap = [](const v1::StreamEventsResponse& answer) {
        return answer.refusal() == v1::StreamEventsResponse::SEQUENCE_GAP;
      };
      if (is_gap(response) ||
          std::any_of(response.others().begin(), response.others().end(), is_gap)) {
        // The gap is filled on a new stream, after a pause: a server that reports it for ever must
        // not be asked in a tight loop.
        broken_.store(true);
        reachability_.Failed(absl::AbortedError("the server misses events that were sent"));
      } else {
        heard_.store(steady_clock::now());
        heard_anything_.store(true);
        reachability_.Succeeded();
      }
      outbox_.Acknowledge(response);
      LENGTHWISE_FAILPOINT("sender.acknowledged.after");
    }
    // In this order: the writer, which may be waiting for work, must see the reason when it wakes.
    broken_.store(true);
    outbox_.Interrupt();
  }

  CallGroup::Call call_;
  Outbox& outbox_;
  Reachability& reachability_;
  const std::unique_ptr<
      grpc::ClientReaderWriterInterface<v1::StreamEventsRequest, v1::StreamEventsResponse>>
      stream_;
  bool owes_ = false;
  std::atomic<steady_clock::time_point> heard_;
  std::atomic<bool> heard_anything_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> broken_ = false;
  std::thread reader_;
};

EventSender::EventSender(v1::WorkerService::StubInterface& stub, ObjectTransfers& objects,
                         const v1::Lease& lease, Outbox& outbox, const Options& options)
    : stub_(stub),
      objects_(objects),
      lease_(lease),
      outbox_(outbox),
      options_(options),
      backoff_(options.backoff),
      upload_backoff_(options.backoff),
      reachability_("event stream"),
      writer_([this] { Run(); }) {}

EventSender::~EventSender() { Stop(); }

void EventSender::Stop() {
  stopping_.store(true);
  calls_.Cancel();
  outbox_.Interrupt();
  if (writer_.joinable()) writer_.join();
}

void EventSender::Run() {
  while (!stopping()) {
    SendUntilBroken();
    // The reader has ended, so no acknowledgement of the old stream can follow. The server drops
    // events that it has stored already.
    outbox_.Resend();
    if (!stopping()) outbox_.Sleep(After(backoff_.Next()));
  }
}

void EventSender::SendUntilBroken() {
  std::unique_ptr<Stream> stream;
  while (!stopping()) {
    const Outbox::Work work = outbox_.Next(After(options_.acknowledgement_timeout),
                                           /*with_artifacts=*/objects_.are_unavailable());
    if (stopping() || (stream && stream->broken())) break;
    if (const auto* upload = std::get_if<Outbox::Upload>(&work)) {
      Upload(*upload);
    } else if (const auto* batch = std::get_if<v1::StreamEventsRequest>(&work)) {
      if (!stream) stream = std::make_unique<Stream>(stub_, calls_, outbox_, reachability_);
      if (!stream->Write(*batch)) break;
    }
    if (stream && stream->IsSilent(options_.acknowledgement_timeout)) break;
  }
  if (!stream) return;
  const bool silent = !stream->broken() && !stream->ended();
  const grpc::Status status = stream->Close();
  // Not after a stream alone: a server that accepts streams and breaks them must not be asked in a
  // tight loop.
  if (stream->heard_anything()) backoff_.Reset();
  if (stopping()) return;
  // A server says more than its code; gRPC, which finds it away, does not.
  reachability_.Failed(silent ? absl::DeadlineExceededError("it acknowledged no events in time")
                       : status.ok() ? absl::UnavailableError("the server ended the event stream")
                                     : ToStatus(status),
                       /*answered=*/!silent && !status.error_details().empty());
}

void EventSender::Upload(const Outbox::Upload& upload) {
  v1::UploadArtifactRequest::Header header;
  header.set_lease_id(lease_.lease_id());
  header.set_fencing_token(lease_.fencing_token());
  header.set_trial(lease_.trials(static_cast<int>(upload.trial)).trial());
  header.set_sha256(platform::Sha256Hex(*upload.bytes));
  header.set_size_bytes(static_cast<int64_t>(upload.bytes->size()));
  header.set_step(upload.step);
  LENGTHWISE_FAILPOINT("sender.upload.before");
  const auto progress = [this] { outbox_.NoteProgress(); };
  absl::Status status = objects_.Put(stub_, calls_, header, *upload.bytes, progress);
  if (absl::IsUnimplemented(status)) {
    status = UploadArtifact(stub_, calls_, header, *upload.bytes, progress);
  }
  // Stop cancelled the call, so its status says nothing about the upload.
  if (stopping()) return;
  LENGTHWISE_FAILPOINT("sender.upload.after");
  if (status.ok()) {
    upload_backoff_.Reset();
    v1::Checkpoint checkpoint;
    checkpoint.set_sha256(header.sha256());
    checkpoint.set_size_bytes(header.size_bytes());
    outbox_.UploadStored(upload, checkpoint);
  } else if (status.code() == absl::StatusCode::kPermissionDenied) {
    // The fencing token is stale: the trial no longer belongs to this lease.
    outbox_.CloseTrial(upload.trial);
  } else if (IsTransient(status) || status.code() == absl::StatusCode::kDataLoss) {
    // Retries DATA_LOSS too, because the bytes were damaged in transit.
    reachability_.Failed(status);
    outbox_.Sleep(After(upload_backoff_.Next()));
  } else {
    platform::LogError("checkpoint of ", header.trial(), " at step ", upload.step,
                       " was not stored: ", status.ToString());
    outbox_.UploadRefused(upload, status.ToString());
  }
}

}  // namespace lengthwise::worker
