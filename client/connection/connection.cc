#include "client/connection/connection.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/client_unary_call.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/printable_message.h"
#include "rpc/method.h"
#include "rpc/status.h"

namespace lengthwise::client {
namespace {

constexpr int kPageSize = 1000;
// Of a watch.
constexpr absl::Duration kStreamLifetime = absl::Minutes(10);
// Payload key of a status that no server sent.
constexpr char kUnreachable[] = "lengthwise/unreachable";
// Payload key of a status for an address at which nothing listens.
constexpr char kNothingListens[] = "lengthwise/nothing_listens";

absl::Status Unreachable(absl::Status status) {
  status.SetPayload(kUnreachable, absl::Cord());
  return status;
}

// Converts an answer. The message is printable, whoever wrote it.
absl::Status ToStatus(const grpc::Status& answer, const rpc::ChannelOptions& channel,
                      absl::Duration timeout) {
  const std::string& address = channel.server;
  const absl::Status whole = rpc::FromGrpcStatus(answer);
  const std::string said = platform::PrintableText(whole.message());
  switch (whole.code()) {
    case absl::StatusCode::kOk:
      return absl::OkStatus();
    case absl::StatusCode::kUnavailable: {
      // A status from gRPC itself has no details; one from a server has (rpc/status.h).
      if (!answer.error_details().empty()) return absl::UnavailableError(said);
      absl::Status explained = rpc::ExplainRefusedConnection(said, channel);
      if (absl::IsUnavailable(explained)) return Unreachable(explained);
      RETURN_IF_ERROR(explained);
      absl::Status status = Unreachable(absl::UnavailableError(absl::StrCat(
          "cannot reach a server at ", address, " (", rpc::ConnectFailure(said), ")")));
      status.SetPayload(kNothingListens, absl::Cord());
      return status;
    }
    case absl::StatusCode::kCancelled:
      // Calls cancelled here do not get this far, so the server ended the call.
      return Unreachable(
          absl::UnavailableError(absl::StrCat("the server at ", address,
                                              " ended the call early; it may be stopping, try "
                                              "again")));
    case absl::StatusCode::kDeadlineExceeded:
      return Unreachable(absl::DeadlineExceededError(absl::StrCat(
          "the server at ", address, " did not answer within ", absl::FormatDuration(timeout))));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(absl::StrCat(
          "the server at ", address,
          " is of an older release without this call; upgrade the server, or use a client of its "
          "release (`lengthwise doctor` names both)"));
    default: {
      std::string message = platform::PrintableText(rpc::FieldViolations(whole));
      if (message.empty()) message = said;
      const absl::Duration delay = rpc::RetryDelay(whole);
      return delay > absl::ZeroDuration() ? rpc::ExhaustedFor(delay, message)
                                          : absl::Status(whole.code(), message);
    }
  }
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // Retry soon after a lost connection: a restarted server is back within seconds.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3000);
  // In spite of its name, how long one attempt to connect may take: after a failover the first
  // address of a list may be a machine that does not answer at all.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  return arguments;
}

std::chrono::system_clock::time_point Deadline(absl::Duration timeout) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
}

// Reads the next response of a stream and makes it printable; false at its end.
template <typename Response>
bool Read(grpc::ClientReader<Response>& reader, Response& response) {
  if (!reader.Read(&response)) return false;
  MakePrintable(response);
  return true;
}

// Returns true for calls that may expand a large grid or read much data.
bool MayTakeLong(const google::protobuf::Message& request) {
  static const auto& kLong = *new std::set<const google::protobuf::Descriptor*>{
      v1::CreateExperimentRequest::descriptor(), v1::EvaluateTrialRequest::descriptor(),
      v1::ExtendExperimentRequest::descriptor(), v1::FindExperimentRequest::descriptor(),
      v1::GetStorageRequest::descriptor(),       v1::QueryLengthAccuraciesRequest::descriptor(),
      v1::RetryTrialsRequest::descriptor(),      v1::SummarizeExperimentRequest::descriptor()};
  if (kLong.contains(request.GetDescriptor())) return true;
  const auto* list = dynamic_cast<const v1::ListExperimentsRequest*>(&request);
  return list != nullptr && list->include_usage();
}

using Experiments = v1::ExperimentService::Stub;

class GrpcStream : public Connection::Stream {
 public:
  GrpcStream(const std::shared_ptr<grpc::Channel>& channel,
             const v1::WatchExperimentRequest& request, const rpc::ChannelOptions& channel_options)
      : channel_options_(channel_options) {
    context_.set_deadline(Deadline(kStreamLifetime));
    reader_ = Experiments(channel).WatchExperiment(&context_, request);
  }
  bool Next(v1::WatchExperimentResponse& response) override { return Read(*reader_, response); }
  absl::Status Finish() override {
    return ToStatus(reader_->Finish(), channel_options_, kStreamLifetime);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  const rpc::ChannelOptions channel_options_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExperimentResponse>> reader_;
};

}  // namespace

struct Connection::Streams {
  // Calls `once` and retries after the server's delay while the server asks for a retry, within
  // Options::patience.
  template <typename Once>
  static absl::Status Patiently(const Connection& connection, absl::Duration timeout,
                                const Once& once) {
    const absl::Time end = absl::Now() + connection.options_.patience;
    while (true) {
      grpc::ClientContext context;
      if (timeout < absl::InfiniteDuration()) context.set_deadline(Deadline(timeout));
      const absl::Status status = ToStatus(once(context), connection.channel_options_, timeout);
      const absl::Duration delay = rpc::RetryDelay(status);
      if (delay == absl::ZeroDuration() || absl::Now() + delay > end) return status;
      absl::SleepFor(delay);
    }
  }

  // Makes one call with a streaming answer and waits for all of it, or for the first response that
  // `is_last`.
  template <typename Request, typename Response>
  static absl::StatusOr<std::vector<Response>> Collect(
      const Connection& connection,
      std::unique_ptr<grpc::ClientReader<Response>> (Experiments::*method)(grpc::ClientContext*,
                                                                           const Request&),
      const Request& request, bool (*is_last)(const Response&) = nullptr) {
    Experiments stub(connection.channel_);
    std::vector<Response> responses;
    RETURN_IF_ERROR(Patiently(connection, connection.options_.create_timeout,
                              [&](grpc::ClientContext& context) {
                                const auto reader = (stub.*method)(&context, request);
                                responses.clear();
                                Response response;
                                while (Read(*reader, response)) {
                                  responses.push_back(std::move(response));
                                  if (is_last == nullptr || !is_last(responses.back())) continue;
                                  context.TryCancel();
                                  reader->Finish();
                                  return grpc::Status::OK;
                                }
                                return reader->Finish();
                              }));
    return responses;
  }
};

bool IsUnreachable(const absl::Status& status) {
  return status.GetPayload(kUnreachable).has_value();
}

bool NothingListens(const absl::Status& status) {
  return status.GetPayload(kNothingListens).has_value();
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const rpc::ChannelOptions& channel,
                                                             const Options& options) {
  ASSIGN_OR_RETURN(auto made, rpc::CreateChannel(channel, Arguments()));
  return std::unique_ptr<Connection>(new Connection(channel, options, std::move(made)));
}

Connection::Connection(const std::string& address)
    // Cannot fail: only credentials can make CreateChannel fail, and a plain channel has none.
    : Connection({.server = address}, Options(),
                 rpc::CreateChannel({.server = address}, Arguments()).value()) {}

Connection::Connection(rpc::ChannelOptions channel_options, const Options& options,
                       std::shared_ptr<grpc::Channel> channel)
    : channel_options_(std::move(channel_options)),
      options_(options),
      channel_(std::move(channel)) {}

std::string Connection::DefaultOwner() const {
  const char* user = std::getenv("USER");
  return user == nullptr || !channel_options_.token_file.empty() ? "" : user;
}

absl::Status Connection::CallInto(const google::protobuf::Message& request,
                                  google::protobuf::Message& response) const {
  const auto* called = rpc::FindMethod(*request.GetDescriptor());
  if (called == nullptr || called->output_type() != response.GetDescriptor() ||
      called->client_streaming() || called->server_streaming()) {
    return absl::InternalError(absl::StrCat("no call with a ", request.GetTypeName(),
                                            " is answered by a ", response.GetTypeName()));
  }
  const std::string name = absl::StrCat("/", rpc::NameOf(*called));
  const grpc::internal::RpcMethod method(name.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
  RETURN_IF_ERROR(
      Streams::Patiently(*this, MayTakeLong(request) ? options_.create_timeout : options_.timeout,
                         [&](grpc::ClientContext& context) {
                           return grpc::internal::BlockingUnaryCall(channel_.get(), method,
                                                                    &context, request, &response);
                         }));
  MakePrintable(response);
  return absl::OkStatus();
}

absl::StatusOr<v1::Experiment> Connection::GetExperiment(const std::string& name) {
  v1::GetExperimentRequest request;
  request.set_name(name);
  return Call<v1::Experiment>(request);
}

absl::StatusOr<v1::FindExperimentResponse> Connection::Find(const std::string& text,
                                                            FindRequest::Use use,
                                                            FindRequest::Kind kind) {
  FindRequest request;
  request.set_text(text);
  request.set_use(use);
  request.set_kind(kind);
  return Call<v1::FindExperimentResponse>(request);
}

absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text,
                                              Connection::FindRequest::Use use) {
  ASSIGN_OR_RETURN(auto found, connection.Find(text, use, Connection::FindRequest::EXPERIMENT));
  return std::move(*found.mutable_experiment());
}

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text) {
  using Request = Connection::FindRequest;
  ASSIGN_OR_RETURN(auto found, connection.Find(text, Request::READ, Request::TRIAL));
  return std::move(*found.mutable_trial());
}

absl::StatusOr<std::vector<v1::Experiment>> Connection::ListExperiments(size_t limit,
                                                                        const std::string& owner,
                                                                        std::string* queue_pause) {
  std::vector<v1::Experiment> experiments;
  v1::ListExperimentsRequest request;
  request.set_owner(owner);
  do {
    request.set_page_size(limit == 0 ? kPageSize
                                     : static_cast<int>(std::min<size_t>(kPageSize, limit)));
    ASSIGN_OR_RETURN(auto page, Call<v1::ListExperimentsResponse>(request));
    if (queue_pause != nullptr) *queue_pause = page.queue_pause();
    for (v1::Experiment& experiment : *page.mutable_experiments()) {
      if (limit != 0 && experiments.size() == limit) return experiments;
      experiments.push_back(std::move(experiment));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return experiments;
}

absl::StatusOr<std::vector<v1::Trial>> Connection::ListTrials(const std::string& experiment,
                                                              const std::string& filter) {
  std::vector<v1::Trial> trials;
  v1::ListTrialsRequest request;
  request.set_parent(experiment);
  request.set_page_size(kPageSize);
  request.set_filter(filter);
  do {
    ASSIGN_OR_RETURN(auto page, Call<v1::ListTrialsResponse>(request));
    for (v1::Trial& trial : *page.mutable_trials()) trials.push_back(std::move(trial));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return trials;
}

absl::StatusOr<std::vector<v1::Event>> Connection::Log(const std::string& trial) {
  v1::WatchExperimentRequest request;
  request.set_name(trial);
  request.set_log_only(true);
  // Later events are not wanted.
  ASSIGN_OR_RETURN(auto responses,
                   Streams::Collect(
                       *this, &Experiments::WatchExperiment, request,
                       +[](const v1::WatchExperimentResponse& one) { return one.caught_up(); }));
  std::vector<v1::Event> events;
  for (v1::WatchExperimentResponse& response : responses) {
    for (v1::Event& event : *response.mutable_events()) events.push_back(std::move(event));
  }
  return events;
}

absl::StatusOr<std::vector<v1::Event>> Connection::ListStateChanges(const std::string& trial) {
  ASSIGN_OR_RETURN(auto changes, Log(trial));
  std::erase_if(changes, [](const v1::Event& event) { return !event.has_state_change(); });
  return changes;
}

absl::Status Connection::UploadData(const std::string& path, const std::string& sha256,
                                    int64_t bytes) {
  absl::Status read;
  const absl::Status status =
      Streams::Patiently(*this, absl::InfiniteDuration(), [&](grpc::ClientContext& context) {
        v1::UploadDataResponse response;
        const auto writer = Experiments(channel_).UploadData(&context, &response);
        v1::UploadDataRequest request;
        request.mutable_header()->set_sha256(sha256);
        request.mutable_header()->set_size_bytes(bytes);
        // A write fails once the call has ended; Finish then says why.
        bool writable = writer->Write(request);
        request.clear_header();
        platform::Sha256 hash;
        read = platform::ReadFileInChunks(path, [&](absl::string_view chunk) {
          hash.Update(chunk);
          request.set_data(std::string(chunk));
          writable = writable && writer->Write(request);
          return writable;
        });
        if (read.ok() && writable && hash.Finish() != sha256) {
          read = absl::FailedPreconditionError(
              absl::StrCat(path, " changed since it was checked; try again"));
        }
        if (!read.ok()) context.TryCancel();
        writer->WritesDone();
        return writer->Finish();
      });
  return read.ok() ? status : read;
}

absl::StatusOr<v1::QueryLengthAccuraciesResponse> Connection::QueryLengthAccuracies(
    const std::string& name, bool include_intervals) {
  v1::QueryLengthAccuraciesRequest request;
  request.set_name(name);
  request.set_include_intervals(include_intervals);
  auto whole = Call<v1::QueryLengthAccuraciesResponse>(request);
  // A busy server sends a retry delay; an answer that is too large has none.
  const bool too_large = absl::IsResourceExhausted(whole.status()) &&
                         rpc::RetryDelay(whole.status()) == absl::ZeroDuration() &&
                         !absl::StrContains(name, "/trials/");
  if (!too_large) return whole;
  ASSIGN_OR_RETURN(const auto trials, ListTrials(name, ""));
  v1::QueryLengthAccuraciesResponse all;
  for (const v1::Trial& trial : trials) {
    request.set_name(trial.name());
    ASSIGN_OR_RETURN(const auto part, Call<v1::QueryLengthAccuraciesResponse>(request));
    all.MergeFrom(part);
  }
  return all;
}

absl::StatusOr<std::vector<v1::AttentionMap>> Connection::QueryAttentionMaps(
    const std::string& trial, int length) {
  v1::QueryAttentionMapsRequest request;
  request.set_name(trial);
  request.set_length(length);
  ASSIGN_OR_RETURN(auto parts, Streams::Collect(*this, &Experiments::QueryAttentionMaps, request));
  std::vector<v1::AttentionMap> maps;
  for (v1::AttentionMap& part : parts) {
    if (part.first_layer() == 0 || maps.empty()) {
      maps.push_back(std::move(part));
    } else {
      maps.back().set_layers(maps.back().layers() + part.layers());
      maps.back().mutable_probabilities()->append(part.probabilities());
    }
  }
  return maps;
}

absl::StatusOr<std::string> Connection::DownloadNetwork(const std::string& trial) {
  v1::DownloadModelRequest request;
  request.set_name(trial + "/network");
  ASSIGN_OR_RETURN(const auto parts, Streams::Collect(*this, &Experiments::DownloadModel, request));
  std::string archive;
  for (const v1::DownloadModelResponse& part : parts) archive += part.data();
  return archive;
}

absl::StatusOr<std::vector<v1::Event>> Connection::QueryAnalyses(const std::string& name) {
  v1::QueryAnalysesRequest request;
  request.set_name(name);
  return Streams::Collect(*this, &Experiments::QueryAnalyses, request);
}

absl::StatusOr<v1::BackUpResponse> Connection::BackUp(
    const v1::BackUpRequest& request,
    const std::function<void(const v1::BackUpResponse&)>& progress) {
  grpc::ClientContext context;
  const auto reader = v1::AdministrationService::Stub(channel_).BackUp(&context, request);
  v1::BackUpResponse response;
  while (Read(*reader, response)) progress(response);
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return ToStatus(status, channel_options_, absl::InfiniteDuration());
  if (!response.complete()) return absl::InternalError("the server did not complete the backup");
  return response;
}

std::unique_ptr<Connection::Stream> Connection::Watch(const v1::WatchExperimentRequest& request) {
  return std::make_unique<GrpcStream>(channel_, request, channel_options_);
}

}  // namespace lengthwise::client
