#include "server/services/experiment_service.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/services/push_stream.h"
#include "server/services/queries.h"
#include "server/services/refused_stream.h"
#include "server/services/unary.h"
#include "server/services/validation.h"
#include "server/services/watch_reactor.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kMaxReasonBytes = 1000;
constexpr int64_t kMaxFilterBytes = 1000;

// Streams what `read` returns, one a response. Read first and sent then, so that a slow client does
// not keep a read of the store open.
template <typename T>
PushStream<T>* StreamAll(grpc::CallbackServerContext* context, const Caller& caller,
                         std::function<absl::StatusOr<std::vector<T>>()> read,
                         TransferThreads& threads, OpenStreams& streams) {
  auto produce = [read = std::move(read)](const typename PushStream<T>::Send& send) {
    ASSIGN_OR_RETURN(std::vector<T> all, read());
    for (T& one : all) {
      if (!send(std::move(one))) break;
    }
    return absl::OkStatus();
  };
  return PushStream<T>::Start(context, caller, std::move(produce), threads, streams);
}

// The request, owned by the caller where the server knows its callers.
template <typename Request>
Request InNameOf(const Caller& caller, Request request) {
  if (!caller.token_id.empty()) request.set_owner(caller.principal);
  return request;
}

// Who asks, for the histories of trials; empty where the server does not know its callers.
std::string PrincipalOf(const Caller& caller) {
  return caller.token_id.empty() ? "" : caller.principal;
}

}  // namespace

template <typename Request>
absl::StatusOr<Caller> ExperimentService::AdmitChange(const grpc::CallbackServerContext& context,
                                                      absl::string_view method,
                                                      const Request& request) {
  absl::StatusOr<Caller> caller = gate_.Admit(context, method, request);
  // Who may change all need not be asked whose it is.
  if (!caller.ok() || caller->role == v1::ADMIN) return caller;
  RETURN_IF_ERROR(CheckExperimentOrTrialName("name", request.name()));
  ASSIGN_OR_RETURN(const std::string owner, coordinator_.GetOwner(request.name()));
  RETURN_IF_ERROR(MayChange(*caller, request.name(), owner));
  return caller;
}

grpc::ServerUnaryReactor* ExperimentService::CreateExperiment(
    grpc::CallbackServerContext* context, const v1::CreateExperimentRequest* request,
    v1::CreateExperimentResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/CreateExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  absl::Status status = CheckCreateExperiment(*request);
  if (status.ok()) status = MaySubmitFor(*caller, request->owner());
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CreateExperiment(InNameOf(*caller, *request), AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::ExtendExperiment(
    grpc::CallbackServerContext* context, const v1::ExtendExperimentRequest* request,
    v1::ExtendExperimentResponse* response) {
  const absl::StatusOr<Caller> caller =
      AdmitChange(*context, "lengthwise.v1.ExperimentService/ExtendExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckExtendExperiment(*request); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.ExtendExperiment(*request, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::EvaluateTrial(grpc::CallbackServerContext* context,
                                                           const v1::EvaluateTrialRequest* request,
                                                           v1::CreateExperimentResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/EvaluateTrial", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  absl::Status status = CheckEvaluateTrial(*request);
  if (status.ok()) status = MaySubmitFor(*caller, request->owner());
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.EvaluateTrial(InNameOf(*caller, *request), AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::GetExperiment(grpc::CallbackServerContext* context,
                                                           const v1::GetExperimentRequest* request,
                                                           v1::Experiment* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/GetExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckExperimentName("name", request->name()); !status.ok()) {
    return Answer(context, status);
  }
  // Its disk use is measured.
  return AnswerOnPool<v1::Experiment>(context, readers_, response, [this, request] {
    return coordinator_.GetExperiment(request->name());
  });
}

grpc::ServerUnaryReactor* ExperimentService::ListExperiments(
    grpc::CallbackServerContext* context, const v1::ListExperimentsRequest* request,
    v1::ListExperimentsResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/ListExperiments", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckPage(request->page_size(), request->page_token()); !status.ok()) {
    return Answer(context, status);
  }
  return Answer(context, response, coordinator_.ListExperiments(*request));
}

grpc::ServerUnaryReactor* ExperimentService::CancelExperiment(
    grpc::CallbackServerContext* context, const v1::CancelExperimentRequest* request,
    v1::Experiment* response) {
  const absl::StatusOr<Caller> caller =
      AdmitChange(*context, "lengthwise.v1.ExperimentService/CancelExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  absl::Status status = CheckExperimentName("name", request->name());
  if (status.ok()) status = CheckText("reason", request->reason(), kMaxReasonBytes);
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CancelExperiment(*request, PrincipalOf(*caller), AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::RetryTrials(grpc::CallbackServerContext* context,
                                                         const v1::RetryTrialsRequest* request,
                                                         v1::RetryTrialsResponse* response) {
  const absl::StatusOr<Caller> caller =
      AdmitChange(*context, "lengthwise.v1.ExperimentService/RetryTrials", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckRetryTrials(*request); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.RetryTrials(*request, PrincipalOf(*caller), AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::DeleteExperiment(
    grpc::CallbackServerContext* context, const v1::DeleteExperimentRequest* request,
    v1::DeleteExperimentResponse* response) {
  const absl::StatusOr<Caller> caller =
      AdmitChange(*context, "lengthwise.v1.ExperimentService/DeleteExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckExperimentName("name", request->name()); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.DeleteExperiment(*request, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::GetTrial(grpc::CallbackServerContext* context,
                                                      const v1::GetTrialRequest* request,
                                                      v1::Trial* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/GetTrial", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckTrialName("name", request->name()); !status.ok()) {
    return Answer(context, status);
  }
  return Answer(context, response, coordinator_.GetTrial(request->name()));
}

grpc::ServerUnaryReactor* ExperimentService::ListTrials(grpc::CallbackServerContext* context,
                                                        const v1::ListTrialsRequest* request,
                                                        v1::ListTrialsResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/ListTrials", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  absl::Status status = CheckExperimentName("parent", request->parent());
  if (status.ok()) status = CheckPage(request->page_size(), request->page_token());
  if (status.ok()) status = CheckText("filter", request->filter(), kMaxFilterBytes);
  if (!status.ok()) return Answer(context, status);
  return Answer(context, response, coordinator_.ListTrials(*request));
}

grpc::ServerUnaryReactor* ExperimentService::CancelTrial(grpc::CallbackServerContext* context,
                                                         const v1::CancelTrialRequest* request,
                                                         v1::Trial* response) {
  const absl::StatusOr<Caller> caller =
      AdmitChange(*context, "lengthwise.v1.ExperimentService/CancelTrial", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  absl::Status status = CheckTrialName("name", request->name());
  if (status.ok()) status = CheckText("reason", request->reason(), kMaxReasonBytes);
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CancelTrial(*request, PrincipalOf(*caller), AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchExperimentResponse>* ExperimentService::WatchExperiment(
    grpc::CallbackServerContext* context, const v1::WatchExperimentRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.ExperimentService/WatchExperiment", *request);
  if (!admission.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::WatchExperimentResponse>>(
        admission.status());
  absl::Status status = CheckExperimentOrTrialName("name", request->name());
  if (status.ok() && request->start_position() < 0) {
    status = InvalidField("start_position", "is negative; accepted: 0 for all, or next_position");
  }
  if (!status.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::WatchExperimentResponse>>(status);
  return streams_.Keep(WatchReactor::Start(*request, coordinator_, readers_, streams_),
                       *std::move(admission));
}

grpc::ServerUnaryReactor* ExperimentService::QueryLossCurves(
    grpc::CallbackServerContext* context, const v1::QueryLossCurvesRequest* request,
    v1::QueryLossCurvesResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/QueryLossCurves", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  return AnswerOnPool<v1::QueryLossCurvesResponse>(
      context, readers_, response, [this, request] { return LossCurves(coordinator_, *request); });
}

grpc::ServerUnaryReactor* ExperimentService::SummarizeExperiment(
    grpc::CallbackServerContext* context, const v1::SummarizeExperimentRequest* request,
    v1::SummarizeExperimentResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/SummarizeExperiment", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  return AnswerOnPool<v1::SummarizeExperimentResponse>(
      context, readers_, response, [this, request] { return Summary(coordinator_, *request); });
}

grpc::ServerUnaryReactor* ExperimentService::QueryLengthAccuracies(
    grpc::CallbackServerContext* context, const v1::QueryLengthAccuraciesRequest* request,
    v1::QueryLengthAccuraciesResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.ExperimentService/QueryLengthAccuracies", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  return AnswerOnPool<v1::QueryLengthAccuraciesResponse>(
      context, readers_, response,
      [this, request] { return LengthAccuracies(coordinator_, *request); });
}

grpc::ServerWriteReactor<v1::AttentionMap>* ExperimentService::QueryAttentionMaps(
    grpc::CallbackServerContext* context, const v1::QueryAttentionMapsRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.ExperimentService/QueryAttentionMaps", *request);
  if (!admission.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::AttentionMap>>(admission.status());
  return streams_.Keep(
      StreamAll<v1::AttentionMap>(
          context, admission->caller,
          [this, request = *request] { return AttentionMaps(coordinator_, request); }, transfers_,
          streams_),
      *std::move(admission));
}

grpc::ServerWriteReactor<v1::Projection>* ExperimentService::QueryProjections(
    grpc::CallbackServerContext* context, const v1::QueryProjectionsRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.ExperimentService/QueryProjections", *request);
  if (!admission.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::Projection>>(admission.status());
  return streams_.Keep(
      StreamAll<v1::Projection>(
          context, admission->caller,
          [this, request = *request] { return Projections(coordinator_, request); }, transfers_,
          streams_),
      *std::move(admission));
}

grpc::ServerWriteReactor<v1::Event>* ExperimentService::QueryAnalyses(
    grpc::CallbackServerContext* context, const v1::QueryAnalysesRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.ExperimentService/QueryAnalyses", *request);
  if (!admission.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::Event>>(admission.status());
  return streams_.Keep(StreamAll<v1::Event>(
                           context, admission->caller,
                           [this, request = *request] { return Analyses(coordinator_, request); },
                           transfers_, streams_),
                       *std::move(admission));
}

grpc::ServerWriteReactor<v1::DownloadModelResponse>* ExperimentService::DownloadModel(
    grpc::CallbackServerContext* context, const v1::DownloadModelRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.ExperimentService/DownloadModel", *request);
  using Stream = PushStream<v1::DownloadModelResponse>;
  if (!admission.ok()) {
    return new RefusedStream<grpc::ServerWriteReactor<v1::DownloadModelResponse>>(
        admission.status());
  }
  auto produce = [this, request = *request](const Stream::Send& send) -> absl::Status {
    RETURN_IF_ERROR(CheckTrialName("name", request.name()));
    return coordinator_.ReadModel(request.name(), send);
  };
  return streams_.Keep(
      Stream::Start(context, admission->caller, std::move(produce), transfers_, streams_),
      *std::move(admission));
}

}  // namespace lengthwise::server
