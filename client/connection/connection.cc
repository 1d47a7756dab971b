#include "client/connection/connection.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/fleet_service.grpc.pb.h"
#include "proto/printable_message.h"
#include "rpc/status.h"

namespace lengthwise::client {
namespace {

constexpr int kPageSize = 1000;
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

// Cannot fail: only credentials can make CreateChannel fail, and a plain channel has none.
std::shared_ptr<grpc::Channel> PlainChannel(const std::string& address) {
  return rpc::CreateChannel({.server = address}, Arguments()).value();
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

using Access = v1::AccessService::Stub;
using Administration = v1::AdministrationService::Stub;
using Experiments = v1::ExperimentService::Stub;
using Fleet = v1::FleetService::Stub;

class GrpcStream : public Connection::Stream {
 public:
  GrpcStream(Experiments& stub, const v1::WatchExperimentRequest& request, absl::Duration lifetime,
             const rpc::ChannelOptions& channel)
      : channel_(channel), lifetime_(lifetime) {
    context_.set_deadline(Deadline(lifetime));
    reader_ = stub.WatchExperiment(&context_, request);
  }
  bool Next(v1::WatchExperimentResponse& response) override { return Read(*reader_, response); }
  absl::Status Finish() override { return ToStatus(reader_->Finish(), channel_, lifetime_); }
  void Cancel() override { context_.TryCancel(); }

 private:
  const rpc::ChannelOptions channel_;
  const absl::Duration lifetime_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExperimentResponse>> reader_;
};

}  // namespace

struct Connection::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : stubs(v1::ExperimentService::NewStub(channel), v1::FleetService::NewStub(channel),
              v1::AccessService::NewStub(channel), v1::AdministrationService::NewStub(channel)) {}

  const std::tuple<std::unique_ptr<Experiments>, std::unique_ptr<Fleet>, std::unique_ptr<Access>,
                   std::unique_ptr<Administration>>
      stubs;
  template <typename Stub>
  Stub& Get() const {
    return *std::get<std::unique_ptr<Stub>>(stubs);
  }

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

  // Makes one call; `method` is a member function of a stub.
  template <typename Stub, typename Request, typename Response>
  static absl::StatusOr<Response> Call(const Connection& connection,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       const Request& request, absl::Duration timeout) {
    Stub& stub = connection.stubs_->Get<Stub>();
    Response response;
    RETURN_IF_ERROR(Patiently(connection, timeout, [&](grpc::ClientContext& context) {
      return (stub.*method)(&context, request, &response);
    }));
    MakePrintable(response);
    return response;
  }

  // Queries all trials of `request.name` at once, or trial by trial if the answer is too large for
  // one message.
  template <typename Request, typename Response>
  static absl::StatusOr<Response> WholeOrByTrial(
      Connection& connection,
      grpc::Status (Experiments::*method)(grpc::ClientContext*, const Request&, Response*),
      Request request) {
    const absl::Duration timeout = connection.options_.create_timeout;
    auto whole = Call(connection, method, request, timeout);
    // A busy server sends a retry delay; an answer that is too large has none.
    const bool too_large = absl::IsResourceExhausted(whole.status()) &&
                           rpc::RetryDelay(whole.status()) == absl::ZeroDuration() &&
                           !absl::StrContains(request.name(), "/trials/");
    if (!too_large) return whole;
    ASSIGN_OR_RETURN(const auto trials, connection.ListTrials(request.name(), ""));
    Response all;
    for (const v1::Trial& trial : trials) {
      request.set_name(trial.name());
      ASSIGN_OR_RETURN(auto part, Call(connection, method, request, timeout));
      all.MergeFrom(part);
    }
    return all;
  }

  // Returns a trial's log lines and state changes up to now.
  static absl::StatusOr<std::vector<v1::Event>> Log(const Connection& connection,
                                                    const std::string& trial) {
    v1::WatchExperimentRequest request;
    request.set_name(trial);
    request.set_log_only(true);
    std::vector<v1::Event> events;
    RETURN_IF_ERROR(Patiently(
        connection, connection.options_.create_timeout, [&](grpc::ClientContext& context) {
          const auto reader =
              connection.stubs_->Get<Experiments>().WatchExperiment(&context, request);
          events.clear();
          v1::WatchExperimentResponse response;
          while (Read(*reader, response)) {
            for (v1::Event& event : *response.mutable_events()) events.push_back(std::move(event));
            if (!response.caught_up()) continue;
            // Later events are not wanted.
            context.TryCancel();
            reader->Finish();
            return grpc::Status::OK;
          }
          return reader->Finish();
        }));
    return events;
  }

  // Makes one call with a streaming answer and waits for all of it.
  template <typename Stub, typename Request, typename Response>
  static absl::StatusOr<std::vector<Response>> Collect(
      const Connection& connection,
      std::unique_ptr<grpc::ClientReader<Response>> (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&),
      const Request& request, absl::Duration timeout) {
    Stub& stub = connection.stubs_->Get<Stub>();
    std::vector<Response> responses;
    RETURN_IF_ERROR(Patiently(connection, timeout, [&](grpc::ClientContext& context) {
      const auto reader = (stub.*method)(&context, request);
      responses.clear();
      Response response;
      while (Read(*reader, response)) responses.push_back(std::move(response));
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
  ASSIGN_OR_RETURN(const auto made, rpc::CreateChannel(channel, Arguments()));
  return std::unique_ptr<Connection>(
      new Connection(channel, options, std::make_unique<Stubs>(made)));
}

Connection::Connection(const std::string& address, const Options& options)
    : Connection({.server = address}, options, std::make_unique<Stubs>(PlainChannel(address))) {}

Connection::Connection(rpc::ChannelOptions channel_options, const Options& options,
                       std::unique_ptr<Stubs> stubs)
    : channel_options_(std::move(channel_options)), options_(options), stubs_(std::move(stubs)) {}

Connection::~Connection() = default;

std::string Connection::DefaultOwner() const {
  const char* user = std::getenv("USER");
  return user == nullptr || !channel_options_.token_file.empty() ? "" : user;
}

absl::StatusOr<v1::CreateExperimentResponse> Connection::CreateExperiment(
    const v1::CreateExperimentRequest& request) {
  return Stubs::Call(*this, &Experiments::CreateExperiment, request, options_.create_timeout);
}

absl::StatusOr<v1::ExtendExperimentResponse> Connection::ExtendExperiment(
    const v1::ExtendExperimentRequest& request) {
  return Stubs::Call(*this, &Experiments::ExtendExperiment, request, options_.create_timeout);
}

absl::StatusOr<v1::CreateExperimentResponse> Connection::EvaluateTrial(
    const v1::EvaluateTrialRequest& request) {
  return Stubs::Call(*this, &Experiments::EvaluateTrial, request, options_.create_timeout);
}

absl::StatusOr<v1::Experiment> Connection::GetExperiment(const std::string& name) {
  v1::GetExperimentRequest request;
  request.set_name(name);
  return Stubs::Call(*this, &Experiments::GetExperiment, request, options_.timeout);
}

absl::StatusOr<v1::FindExperimentResponse> Connection::Find(const std::string& text,
                                                            FindRequest::Use use,
                                                            FindRequest::Kind kind) {
  FindRequest request;
  request.set_text(text);
  request.set_use(use);
  request.set_kind(kind);
  return Stubs::Call(*this, &Experiments::FindExperiment, request, options_.create_timeout);
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
    ASSIGN_OR_RETURN(auto page,
                     Stubs::Call(*this, &Experiments::ListExperiments, request, options_.timeout));
    if (queue_pause != nullptr) *queue_pause = page.queue_pause();
    for (v1::Experiment& experiment : *page.mutable_experiments()) {
      if (limit != 0 && experiments.size() == limit) return experiments;
      experiments.push_back(std::move(experiment));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return experiments;
}

absl::StatusOr<v1::Experiment> Connection::CancelExperiment(const std::string& name,
                                                            const std::string& reason) {
  v1::CancelExperimentRequest request;
  request.set_name(name);
  request.set_reason(reason);
  return Stubs::Call(*this, &Experiments::CancelExperiment, request, options_.timeout);
}

absl::Status Connection::DeleteExperiment(const std::string& name) {
  v1::DeleteExperimentRequest request;
  request.set_name(name);
  return Stubs::Call(*this, &Experiments::DeleteExperiment, request, options_.timeout).status();
}

absl::StatusOr<v1::Experiment> Connection::ChangeOwner(const std::string& name,
                                                       const std::string& owner) {
  v1::ChangeOwnerRequest request;
  request.set_name(name);
  request.set_owner(owner);
  return Stubs::Call(*this, &Experiments::ChangeOwner, request, options_.timeout);
}

absl::StatusOr<v1::Trial> Connection::GetTrial(const std::string& name) {
  v1::GetTrialRequest request;
  request.set_name(name);
  return Stubs::Call(*this, &Experiments::GetTrial, request, options_.timeout);
}

absl::StatusOr<std::vector<v1::Trial>> Connection::ListTrials(const std::string& experiment,
                                                              const std::string& filter) {
  std::vector<v1::Trial> trials;
  v1::ListTrialsRequest request;
  request.set_parent(experiment);
  request.set_page_size(kPageSize);
  request.set_filter(filter);
  do {
    ASSIGN_OR_RETURN(auto page,
                     Stubs::Call(*this, &Experiments::ListTrials, request, options_.timeout));
    for (v1::Trial& trial : *page.mutable_trials()) trials.push_back(std::move(trial));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return trials;
}

absl::StatusOr<v1::Trial> Connection::CancelTrial(const std::string& name,
                                                  const std::string& reason) {
  v1::CancelTrialRequest request;
  request.set_name(name);
  request.set_reason(reason);
  return Stubs::Call(*this, &Experiments::CancelTrial, request, options_.timeout);
}

absl::StatusOr<v1::RetryTrialsResponse> Connection::RetryTrials(
    const std::string& name, const std::vector<v1::TrialState>& states) {
  v1::RetryTrialsRequest request;
  request.set_name(name);
  for (const v1::TrialState state : states) request.add_states(state);
  return Stubs::Call(*this, &Experiments::RetryTrials, request, options_.create_timeout);
}

absl::StatusOr<std::vector<v1::Event>> Connection::ListStateChanges(const std::string& trial) {
  ASSIGN_OR_RETURN(auto changes, Stubs::Log(*this, trial));
  std::erase_if(changes, [](const v1::Event& event) { return !event.has_state_change(); });
  return changes;
}

absl::StatusOr<std::vector<v1::LogLine>> Connection::ListLogLines(const std::string& trial) {
  ASSIGN_OR_RETURN(const auto events, Stubs::Log(*this, trial));
  std::vector<v1::LogLine> lines;
  for (const v1::Event& event : events) {
    if (event.has_log_line()) lines.push_back(event.log_line());
  }
  return lines;
}

absl::Status Connection::UploadData(const std::string& path, const std::string& sha256,
                                    int64_t bytes) {
  absl::Status read;
  const absl::Status status =
      Stubs::Patiently(*this, absl::InfiniteDuration(), [&](grpc::ClientContext& context) {
        v1::UploadDataResponse response;
        const auto writer = stubs_->Get<Experiments>().UploadData(&context, &response);
        v1::UploadDataRequest request;
        request.mutable_header()->set_sha256(sha256);
        request.mutable_header()->set_size_bytes(bytes);
        // A write fails once the call has ended; Finish then says why.
        bool writable = writer->Write(request);
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

absl::StatusOr<v1::SummarizeExperimentResponse> Connection::SummarizeExperiment(
    const std::string& name, const std::string& select) {
  v1::SummarizeExperimentRequest request;
  request.set_name(name);
  request.set_select(select);
  return Stubs::Call(*this, &Experiments::SummarizeExperiment, request, options_.create_timeout);
}

absl::StatusOr<v1::QueryLengthAccuraciesResponse> Connection::QueryLengthAccuracies(
    const std::string& name, bool include_intervals) {
  v1::QueryLengthAccuraciesRequest request;
  request.set_name(name);
  request.set_include_intervals(include_intervals);
  return Stubs::WholeOrByTrial(*this, &Experiments::QueryLengthAccuracies, std::move(request));
}

absl::StatusOr<std::vector<v1::AttentionMap>> Connection::QueryAttentionMaps(
    const std::string& trial, int length) {
  v1::QueryAttentionMapsRequest request;
  request.set_name(trial);
  request.set_length(length);
  ASSIGN_OR_RETURN(auto parts, Stubs::Collect(*this, &Experiments::QueryAttentionMaps, request,
                                              options_.create_timeout));
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
  ASSIGN_OR_RETURN(const auto parts, Stubs::Collect(*this, &Experiments::DownloadModel, request,
                                                    options_.create_timeout));
  std::string archive;
  for (const v1::DownloadModelResponse& part : parts) archive += part.data();
  return archive;
}

absl::StatusOr<std::vector<v1::Event>> Connection::QueryAnalyses(const std::string& name) {
  v1::QueryAnalysesRequest request;
  request.set_name(name);
  return Stubs::Collect(*this, &Experiments::QueryAnalyses, request, options_.create_timeout);
}

absl::StatusOr<v1::ListWorkersResponse> Connection::ListWorkers() {
  return Stubs::Call(*this, &Fleet::ListWorkers, v1::ListWorkersRequest(), options_.timeout);
}

absl::StatusOr<v1::GetWantedWorkersResponse> Connection::GetWantedWorkers(
    const v1::GetWantedWorkersRequest& request) {
  return Stubs::Call(*this, &Fleet::GetWantedWorkers, request, options_.timeout);
}

absl::Status Connection::HoldLeases(const v1::HoldLeasesRequest& request) {
  return Stubs::Call(*this, &Fleet::HoldLeases, request, options_.timeout).status();
}

absl::Status Connection::ResumeLeases(const v1::ResumeLeasesRequest& request) {
  return Stubs::Call(*this, &Fleet::ResumeLeases, request, options_.timeout).status();
}

absl::StatusOr<v1::CreateTokenResponse> Connection::CreateToken(
    const v1::CreateTokenRequest& request) {
  return Stubs::Call(*this, &Access::CreateToken, request, options_.timeout);
}

absl::StatusOr<v1::ListTokensResponse> Connection::ListTokens() {
  return Stubs::Call(*this, &Access::ListTokens, v1::ListTokensRequest(), options_.timeout);
}

absl::StatusOr<v1::RevokeTokenResponse> Connection::RevokeToken(
    const v1::RevokeTokenRequest& request) {
  return Stubs::Call(*this, &Access::RevokeToken, request, options_.timeout);
}

absl::StatusOr<v1::Caller> Connection::GetCaller() {
  return Stubs::Call(*this, &Access::GetCaller, v1::GetCallerRequest(), options_.timeout);
}

absl::StatusOr<v1::BackUpResponse> Connection::BackUp(
    const v1::BackUpRequest& request,
    const std::function<void(const v1::BackUpResponse&)>& progress) {
  grpc::ClientContext context;
  const auto reader = stubs_->Get<Administration>().BackUp(&context, request);
  v1::BackUpResponse response;
  while (Read(*reader, response)) progress(response);
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return ToStatus(status, channel_options_, absl::InfiniteDuration());
  if (!response.complete()) return absl::InternalError("the server did not complete the backup");
  return response;
}

absl::StatusOr<v1::Storage> Connection::GetStorage() {
  return Stubs::Call(*this, &Administration::GetStorage, v1::GetStorageRequest(),
                     options_.create_timeout);
}

absl::StatusOr<std::vector<v1::OwnerUsage>> Connection::ListUsage(const std::string& owner) {
  v1::ListExperimentsRequest request;
  request.set_page_size(1);
  request.set_owner(owner);
  request.set_include_usage(true);
  ASSIGN_OR_RETURN(const auto page, Stubs::Call(*this, &Experiments::ListExperiments, request,
                                                options_.create_timeout));
  return std::vector<v1::OwnerUsage>(page.usage().begin(), page.usage().end());
}

absl::StatusOr<v1::Server> Connection::GetServer() {
  return Stubs::Call(*this, &Administration::GetServer, v1::GetServerRequest(), options_.timeout);
}

std::unique_ptr<Connection::Stream> Connection::Watch(const v1::WatchExperimentRequest& request,
                                                      absl::Duration lifetime) {
  return std::make_unique<GrpcStream>(stubs_->Get<Experiments>(), request, lifetime,
                                      channel_options_);
}

}  // namespace lengthwise::client
