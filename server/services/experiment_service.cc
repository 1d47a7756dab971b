#include "server/services/experiment_service.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/services/push_stream.h"
#include "server/services/queries.h"
#include "server/services/unary.h"
#include "server/services/validation.h"
#include "server/services/watch_reactor.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kMaxReasonBytes = 1000;
constexpr int64_t kMaxFilterBytes = 1000;

// A watch that is refused before it begins.
class RefusedWatch final : public grpc::ServerWriteReactor<v1::WatchExperimentResponse> {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// Streams what `read` returns, one a response. Read first and sent then, so that a slow client does
// not keep a read of the store open.
template <typename T>
PushStream<T>* StreamAll(std::function<absl::StatusOr<std::vector<T>>()> read, WorkPool& pool,
                         OpenStreams& streams) {
  auto produce = [read = std::move(read)](const typename PushStream<T>::Send& send) {
    absl::StatusOr<std::vector<T>> all = read();
    if (!all.ok()) return all.status();
    for (T& one : *all) {
      if (!send(std::move(one))) break;
    }
    return absl::OkStatus();
  };
  return PushStream<T>::Start(std::move(produce), pool, streams);
}

}  // namespace

grpc::ServerUnaryReactor* ExperimentService::CreateExperiment(
    grpc::CallbackServerContext* context, const v1::CreateExperimentRequest* request,
    v1::CreateExperimentResponse* response) {
  if (absl::Status status = CheckCreateExperiment(*request); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CreateExperiment(*request, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::ExtendExperiment(
    grpc::CallbackServerContext* context, const v1::ExtendExperimentRequest* request,
    v1::ExtendExperimentResponse* response) {
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
  if (absl::Status status = CheckEvaluateTrial(*request); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.EvaluateTrial(*request, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::GetExperiment(grpc::CallbackServerContext* context,
                                                           const v1::GetExperimentRequest* request,
                                                           v1::Experiment* response) {
  if (absl::Status status = CheckExperimentName("name", request->name()); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // Its disk use is measured.
  readers_.Submit([this, request, answer = AnswerLater(reactor, response)] {
    answer(coordinator_.GetExperiment(request->name()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::ListExperiments(
    grpc::CallbackServerContext* context, const v1::ListExperimentsRequest* request,
    v1::ListExperimentsResponse* response) {
  if (absl::Status status = CheckPage(request->page_size(), request->page_token()); !status.ok()) {
    return Answer(context, status);
  }
  return Answer(context, response, coordinator_.ListExperiments(*request));
}

grpc::ServerUnaryReactor* ExperimentService::CancelExperiment(
    grpc::CallbackServerContext* context, const v1::CancelExperimentRequest* request,
    v1::Experiment* response) {
  absl::Status status = CheckExperimentName("name", request->name());
  if (status.ok()) status = CheckLength("reason", request->reason(), kMaxReasonBytes);
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CancelExperiment(*request, "", AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::RetryTrials(grpc::CallbackServerContext* context,
                                                         const v1::RetryTrialsRequest* request,
                                                         v1::RetryTrialsResponse* response) {
  if (absl::Status status = CheckRetryTrials(*request); !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.RetryTrials(*request, "", AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::DeleteExperiment(
    grpc::CallbackServerContext* context, const v1::DeleteExperimentRequest* request,
    v1::DeleteExperimentResponse* response) {
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
  if (absl::Status status = CheckTrialName("name", request->name()); !status.ok()) {
    return Answer(context, status);
  }
  return Answer(context, response, coordinator_.GetTrial(request->name()));
}

grpc::ServerUnaryReactor* ExperimentService::ListTrials(grpc::CallbackServerContext* context,
                                                        const v1::ListTrialsRequest* request,
                                                        v1::ListTrialsResponse* response) {
  absl::Status status = CheckExperimentName("parent", request->parent());
  if (status.ok()) status = CheckPage(request->page_size(), request->page_token());
  if (status.ok()) status = CheckLength("filter", request->filter(), kMaxFilterBytes);
  if (!status.ok()) return Answer(context, status);
  return Answer(context, response, coordinator_.ListTrials(*request));
}

grpc::ServerUnaryReactor* ExperimentService::CancelTrial(grpc::CallbackServerContext* context,
                                                         const v1::CancelTrialRequest* request,
                                                         v1::Trial* response) {
  absl::Status status = CheckTrialName("name", request->name());
  if (status.ok()) status = CheckLength("reason", request->reason(), kMaxReasonBytes);
  if (!status.ok()) return Answer(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.CancelTrial(*request, "", AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchExperimentResponse>* ExperimentService::WatchExperiment(
    grpc::CallbackServerContext* context, const v1::WatchExperimentRequest* request) {
  absl::Status status = CheckExperimentOrTrialName("name", request->name());
  if (status.ok() && request->start_position() < 0) {
    status = InvalidField("start_position", "is negative; accepted: 0 for all, or next_position");
  }
  if (!status.ok()) return new RefusedWatch(status);
  return WatchReactor::Start(*request, coordinator_, readers_, streams_);
}

grpc::ServerUnaryReactor* ExperimentService::QueryLossCurves(
    grpc::CallbackServerContext* context, const v1::QueryLossCurvesRequest* request,
    v1::QueryLossCurvesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  readers_.Submit([this, request, answer = AnswerLater(reactor, response)] {
    answer(LossCurves(coordinator_, *request));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::SummarizeExperiment(
    grpc::CallbackServerContext* context, const v1::SummarizeExperimentRequest* request,
    v1::SummarizeExperimentResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  readers_.Submit([this, request, answer = AnswerLater(reactor, response)] {
    answer(Summary(coordinator_, *request));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ExperimentService::QueryLengthAccuracies(
    grpc::CallbackServerContext* context, const v1::QueryLengthAccuraciesRequest* request,
    v1::QueryLengthAccuraciesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  readers_.Submit([this, request, answer = AnswerLater(reactor, response)] {
    answer(LengthAccuracies(coordinator_, *request));
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::AttentionMap>* ExperimentService::QueryAttentionMaps(
    grpc::CallbackServerContext* context, const v1::QueryAttentionMapsRequest* request) {
  return StreamAll<v1::AttentionMap>(
      [this, request = *request] { return AttentionMaps(coordinator_, request); }, transfers_,
      streams_);
}

grpc::ServerWriteReactor<v1::Projection>* ExperimentService::QueryProjections(
    grpc::CallbackServerContext* context, const v1::QueryProjectionsRequest* request) {
  return StreamAll<v1::Projection>(
      [this, request = *request] { return Projections(coordinator_, request); }, transfers_,
      streams_);
}

}  // namespace lengthwise::server
