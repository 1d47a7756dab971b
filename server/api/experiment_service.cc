// lengthwise.v1.ExperimentService, implemented with the core.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "models/networks/catalogue.h"
#include "platform/status_macros.h"
#include "proto/experiment_service.grpc.pb.h"
#include "rpc/status.h"
#include "server/api/artifact_upload.h"
#include "server/api/queries.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "server/api/watch_reactor.h"
#include "server/security/authorization.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kMaxNameBytes = 1000;
constexpr int64_t kMaxReasonBytes = 1000;
constexpr int64_t kMaxFilterBytes = 1000;

// The request with the caller as its owner, if the server has tokens.
template <typename Request>
Request InNameOf(const Caller& caller, Request request) {
  if (!caller.token_id.empty()) request.set_owner(caller.principal);
  return request;
}

// True if the experiment trains users' modules.
bool HasCode(const v1::ExperimentSpecification& specification) {
  return absl::c_any_of(specification.networks(), [](const v1::Component& network) {
    return network.name() == models::kPythonNetwork;
  });
}

class ExperimentService final : public v1::ExperimentService::CallbackService {
 public:
  ExperimentService(Core& core, platform::WorkPool& watchers, TransferThreads& transfers,
                    OpenStreams& streams, Calls& calls)
      : core_(core), watchers_(watchers), transfers_(transfers), streams_(streams), calls_(calls) {}

  UnaryReactor* CreateExperiment(CallContext* context, const v1::CreateExperimentRequest* request,
                                 v1::CreateExperimentResponse* response) override {
    return calls_.Serve(Work::kQuery, context, request, response,
                        [this](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckCreateExperiment(asked);
                          if (status.ok()) status = MaySubmitFor(caller, asked.owner());
                          if (!status.ok()) return done(status);
                          absl::StatusOr<Submission> prepared =
                              core_.submissions().PrepareCreation(InNameOf(caller, asked));
                          if (!prepared.ok()) return done(prepared.status());
                          if (HasCode(prepared->grid.specification)) {
                            status = MaySubmitCode(caller, core_.options().python_networks_from);
                          }
                          if (!status.ok()) return done(status);
                          core_.Submit(std::make_shared<Submission>(*std::move(prepared)),
                                       &Submissions::Create, std::move(done));
                        });
  }

  UnaryReactor* ExtendExperiment(CallContext* context, const v1::ExtendExperimentRequest* request,
                                 v1::ExtendExperimentResponse* response) override {
    return calls_.Serve(Work::kQuery, context, request, response,
                        [this](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckOwner(caller, asked.name());
                          if (status.ok()) status = CheckExtendExperiment(asked);
                          if (!status.ok()) return done(status);
                          Extend(asked, done);
                        });
  }

  UnaryReactor* EvaluateTrial(CallContext* context, const v1::EvaluateTrialRequest* request,
                              v1::CreateExperimentResponse* response) override {
    return calls_.Serve(Work::kFiles, context, request, response,
                        [this](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckEvaluateTrial(asked);
                          if (status.ok()) status = MaySubmitFor(caller, asked.owner());
                          if (!status.ok()) return done(status);
                          absl::StatusOr<Submission> prepared =
                              core_.submissions().PrepareEvaluation(InNameOf(caller, asked));
                          if (!prepared.ok()) return done(prepared.status());
                          core_.Submit(std::make_shared<Submission>(*std::move(prepared)),
                                       &Submissions::Evaluate, std::move(done));
                        });
  }

  UnaryReactor* GetExperiment(CallContext* context, const v1::GetExperimentRequest* request,
                              v1::Experiment* response) override {
    // kQuery, because it measures the experiment's disk use.
    return calls_.Serve(Work::kQuery, context, request, response,
                        [this](const auto& asked, const Caller&) -> absl::StatusOr<v1::Experiment> {
                          RETURN_IF_ERROR(CheckExperimentName("name", asked.name()));
                          return core_.reads().GetExperiment(asked.name(), asked.omit_disk_use());
                        });
  }

  UnaryReactor* FindExperiment(CallContext* context, const v1::FindExperimentRequest* request,
                               v1::FindExperimentResponse* response) override {
    return calls_.Serve(
        Work::kQuery, context, request, response,
        [this](const auto& asked, const Caller&) -> absl::StatusOr<v1::FindExperimentResponse> {
          RETURN_IF_ERROR(CheckText("text", asked.text(), kMaxNameBytes));
          return core_.reads().FindExperiment(asked);
        });
  }

  UnaryReactor* ListExperiments(CallContext* context, const v1::ListExperimentsRequest* request,
                                v1::ListExperimentsResponse* response) override {
    return calls_.Serve(
        request->include_usage() ? Work::kFiles : Work::kLookup, context, request, response,
        [this](const auto& asked, const Caller&) -> absl::StatusOr<v1::ListExperimentsResponse> {
          RETURN_IF_ERROR(CheckPage(asked.page_size(), asked.page_token()));
          return core_.reads().ListExperiments(asked);
        });
  }

  UnaryReactor* CancelExperiment(CallContext* context, const v1::CancelExperimentRequest* request,
                                 v1::Experiment* response) override {
    return calls_.Serve(
        Work::kChange, context, request, response,
        [this](const auto& asked, const Caller& caller, auto done) {
          absl::Status status = CheckOwner(caller, asked.name());
          if (status.ok()) status = CheckExperimentName("name", asked.name());
          if (status.ok()) status = CheckText("reason", asked.reason(), kMaxReasonBytes);
          if (!status.ok()) return done(status);
          core_.loop().PostParts<v1::Experiment>(
              [this, &asked, by = PrincipalOf(caller), parts = std::make_shared<Parts>()] {
                return core_.experiments().Cancel(asked, by, *parts);
              },
              std::move(done), BytesOfCall(asked));
        });
  }

  UnaryReactor* RetryTrials(CallContext* context, const v1::RetryTrialsRequest* request,
                            v1::RetryTrialsResponse* response) override {
    return calls_.Serve(
        Work::kChange, context, request, response,
        [this](const auto& asked, const Caller& caller, auto done) {
          absl::Status status = CheckOwner(caller, asked.name());
          if (status.ok()) status = CheckRetryTrials(asked);
          if (!status.ok()) return done(status);
          core_.loop().PostParts<v1::RetryTrialsResponse>(
              [this, &asked, by = PrincipalOf(caller), parts = std::make_shared<Parts>()] {
                return core_.experiments().RetryTrials(asked, by, *parts);
              },
              std::move(done), BytesOfCall(asked));
        });
  }

  UnaryReactor* DeleteExperiment(CallContext* context, const v1::DeleteExperimentRequest* request,
                                 v1::DeleteExperimentResponse* response) override {
    return calls_.Serve(Work::kChange, context, request, response,
                        [this](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckOwner(caller, asked.name());
                          if (status.ok()) status = CheckExperimentName("name", asked.name());
                          if (!status.ok()) return done(status);
                          core_.loop().Post<v1::DeleteExperimentResponse>(
                              [this, &asked] { return core_.experiments().Delete(asked); },
                              std::move(done),
                              /*bytes=*/0, BytesOfCall(asked), /*frees_space=*/true);
                        });
  }

  UnaryReactor* ChangeOwner(CallContext* context, const v1::ChangeOwnerRequest* request,
                            v1::Experiment* response) override {
    return calls_.Serve(Work::kMemory, context, request, response,
                        [this](const auto& asked, const Caller&, auto done) {
                          absl::Status status = CheckExperimentName("name", asked.name());
                          if (status.ok()) status = CheckOwnerName(asked.owner());
                          if (!status.ok()) return done(status);
                          core_.loop().Post<v1::Experiment>(
                              [this, &asked] { return core_.experiments().ChangeOwner(asked); },
                              std::move(done),
                              /*bytes=*/0, BytesOfCall(asked));
                        });
  }

  UnaryReactor* GetTrial(CallContext* context, const v1::GetTrialRequest* request,
                         v1::Trial* response) override {
    return calls_.Serve(Work::kLookup, context, request, response,
                        [this](const auto& asked, const Caller&) -> absl::StatusOr<v1::Trial> {
                          RETURN_IF_ERROR(CheckTrialName("name", asked.name()));
                          return core_.reads().GetTrial(asked.name());
                        });
  }

  UnaryReactor* ListTrials(CallContext* context, const v1::ListTrialsRequest* request,
                           v1::ListTrialsResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto& asked, const Caller&) -> absl::StatusOr<v1::ListTrialsResponse> {
          RETURN_IF_ERROR(CheckExperimentName("parent", asked.parent()));
          RETURN_IF_ERROR(CheckPage(asked.page_size(), asked.page_token()));
          RETURN_IF_ERROR(CheckText("filter", asked.filter(), kMaxFilterBytes));
          return core_.reads().ListTrials(asked);
        });
  }

  UnaryReactor* CancelTrial(CallContext* context, const v1::CancelTrialRequest* request,
                            v1::Trial* response) override {
    return calls_.Serve(Work::kChange, context, request, response,
                        [this](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckOwner(caller, asked.name());
                          if (status.ok()) status = CheckTrialName("name", asked.name());
                          if (status.ok())
                            status = CheckText("reason", asked.reason(), kMaxReasonBytes);
                          if (!status.ok()) return done(status);
                          core_.loop().Post<v1::Trial>(
                              [this, &asked, by = PrincipalOf(caller)] {
                                return core_.experiments().CancelTrial(asked, by);
                              },
                              std::move(done), /*bytes=*/0, BytesOfCall(asked));
                        });
  }

  grpc::ServerWriteReactor<v1::WatchExperimentResponse>* WatchExperiment(
      CallContext* context, const v1::WatchExperimentRequest* request) override {
    return calls_.Open<grpc::ServerWriteReactor<v1::WatchExperimentResponse>>(
        "lengthwise.v1.ExperimentService/WatchExperiment", context, request,
        [&](const Caller& caller) -> absl::StatusOr<WatchReactor*> {
          RETURN_IF_ERROR(CheckExperimentOrTrialName("name", request->name()));
          if (request->start_position() < 0) {
            return rpc::InvalidField("start_position",
                                     "is negative; accepted: 0 for all, or next_position");
          }
          // Its own lane: a watch does not wait for the same client's queries.
          return WatchReactor::Start(*request, core_.event_log(), watchers_, streams_,
                                     "watches of " + ClientOf(*context, caller));
        });
  }

  UnaryReactor* QueryLossCurves(CallContext* context, const v1::QueryLossCurvesRequest* request,
                                v1::QueryLossCurvesResponse* response) override {
    return calls_.Serve(
        Work::kQuery, context, request, response,
        [this](const auto& asked, const Caller&) { return LossCurves(core_.event_log(), asked); });
  }

  UnaryReactor* SummarizeExperiment(CallContext* context,
                                    const v1::SummarizeExperimentRequest* request,
                                    v1::SummarizeExperimentResponse* response) override {
    return calls_.Serve(
        Work::kQuery, context, request, response,
        [this](const auto& asked, const Caller&) { return Summary(core_.reads(), asked); });
  }

  UnaryReactor* QueryLengthAccuracies(CallContext* context,
                                      const v1::QueryLengthAccuraciesRequest* request,
                                      v1::QueryLengthAccuraciesResponse* response) override {
    return calls_.Serve(Work::kQuery, context, request, response,
                        [this](const auto& asked, const Caller&) {
                          return LengthAccuracies(core_.event_log(), asked);
                        });
  }

  grpc::ServerWriteReactor<v1::AttentionMap>* QueryAttentionMaps(
      CallContext* context, const v1::QueryAttentionMapsRequest* request) override {
    return PushEvents<v1::AttentionMap>(
        context, request, AttentionMaps,
        [](v1::Event & event) -> auto& { return *event.mutable_attention_map(); });
  }

  grpc::ServerWriteReactor<v1::Projection>* QueryProjections(
      CallContext* context, const v1::QueryProjectionsRequest* request) override {
    return PushEvents<v1::Projection>(
        context, request, Projections,
        [](v1::Event & event) -> auto& { return *event.mutable_projection(); });
  }

  grpc::ServerWriteReactor<v1::Event>* QueryAnalyses(
      CallContext* context, const v1::QueryAnalysesRequest* request) override {
    return PushEvents<v1::Event>(
        context, request, Analyses, [](v1::Event & event) -> auto& { return event; });
  }

  grpc::ServerWriteReactor<v1::DownloadModelResponse>* DownloadModel(
      CallContext* context, const v1::DownloadModelRequest* request) override {
    return calls_.Push<v1::DownloadModelResponse>(
        transfers_, context, request,
        [this](const auto& asked,
               const Caller&) -> absl::StatusOr<Next<v1::DownloadModelResponse>> {
          absl::string_view trial = asked.name();
          const bool is_network = absl::ConsumeSuffix(&trial, "/network");
          RETURN_IF_ERROR(CheckTrialName("name", trial));
          ASSIGN_OR_RETURN(OpenedModel opened, core_.artifacts().OpenModel(trial, is_network));
          const auto model = std::make_shared<OpenedModel>(std::move(opened));
          return [model,
                  begun =
                      false]() mutable -> absl::StatusOr<std::optional<v1::DownloadModelResponse>> {
            v1::DownloadModelResponse response;
            if (!std::exchange(begun, true)) {
              *response.mutable_checkpoint() = model->checkpoint;
              response.set_step(model->step);
              return response;
            }
            ASSIGN_OR_RETURN(std::string chunk, model->bytes->Next());
            if (chunk.empty()) return std::nullopt;
            response.set_data(std::move(chunk));
            return response;
          };
        });
  }

  grpc::ServerReadReactor<v1::UploadDataRequest>* UploadData(
      CallContext* context, v1::UploadDataResponse* /*response*/) override {
    return calls_.Open<grpc::ServerReadReactor<v1::UploadDataRequest>>(
        "lengthwise.v1.ExperimentService/UploadData", context, nullptr,
        [this, context](const Caller& caller) -> absl::StatusOr<DataUpload*> {
          return DataUpload::Start(
              *context, caller,
              [this, principal = caller.principal](const v1::UploadDataRequest::Header& header)
                  -> absl::StatusOr<std::unique_ptr<ArtifactWriter>> {
                RETURN_IF_ERROR(CheckSha256("header.sha256", header.sha256()));
                return core_.artifacts().WriteData(header, principal);
              },
              transfers_, streams_);
        });
  }

 private:
  // PERMISSION_DENIED unless the caller may change the experiment `name`, or the experiment of the
  // trial `name`. Reads the store, unless the caller may change all experiments (Work::kChange).
  absl::Status CheckOwner(const Caller& caller, absl::string_view name) {
    if (caller.role == v1::ADMIN) return absl::OkStatus();
    RETURN_IF_ERROR(CheckExperimentOrTrialName("name", name));
    ASSIGN_OR_RETURN(const std::string owner, core_.reads().GetOwner(name));
    return MayChange(caller, name, owner);
  }

  // Streams a part of each event at the positions that `find` returns. Reads an event when the
  // client is ready for it, from a new snapshot of the store: a slow client neither pins a snapshot
  // nor costs the memory of the whole answer.
  template <typename Response, typename Request, typename Part>
  grpc::ServerWriteReactor<Response>* PushEvents(
      CallContext* context, const Request* request,
      absl::StatusOr<std::vector<int64_t>> (*find)(EventLog&, const Request&), Part part) {
    return calls_.Push<Response>(
        transfers_, context, request,
        [this, find, part](const Request& asked, const Caller&) -> absl::StatusOr<Next<Response>> {
          ASSIGN_OR_RETURN(std::vector<int64_t> found, find(core_.event_log(), asked));
          return [this, part, asked, found = std::move(found),
                  sent = size_t{0}]() mutable -> absl::StatusOr<std::optional<Response>> {
            if (sent == found.size()) return std::nullopt;
            ASSIGN_OR_RETURN(v1::Event event,
                             EventAt(core_.event_log(), asked.name(), found[sent++]));
            return std::move(part(event));
          };
        });
  }

  // Prepares and posts an extension, again if another one came in between.
  void Extend(const v1::ExtendExperimentRequest& asked,
              const Done<v1::ExtendExperimentResponse>& done) {
    absl::StatusOr<Extension> prepared = core_.submissions().PrepareExtension(asked);
    if (!prepared.ok()) return done(prepared.status());
    const auto extension = std::make_shared<const Extension>(*std::move(prepared));
    core_.loop().Post<v1::ExtendExperimentResponse>(
        [this, extension] { return core_.submissions().Extend(*extension); },
        [this, &asked, done](absl::StatusOr<v1::ExtendExperimentResponse> response) {
          if (!absl::IsAborted(response.status())) return done(std::move(response));
          watchers_.Submit("extensions", [this, &asked, done] { Extend(asked, done); });
        },
        extension->bytes());
  }

  Core& core_;
  platform::WorkPool& watchers_;
  TransferThreads& transfers_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewExperimentService(Core& core, platform::WorkPool& watchers,
                                                    TransferThreads& transfers,
                                                    OpenStreams& streams, Calls& calls) {
  return std::make_unique<ExperimentService>(core, watchers, transfers, streams, calls);
}

}  // namespace lengthwise::server
