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
#include "proto/experiment_service.pb.h"
#include "rpc/status.h"
#include "server/api/artifact_upload.h"
#include "server/api/queries.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "server/api/watch_reactor.h"
#include "server/coordination/names.h"
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

// PERMISSION_DENIED unless the caller may change the experiment `name`, or the experiment of the
// trial `name`. Reads the store, unless the caller may change all experiments (Work::kChange).
absl::Status CheckOwner(Core& core, const Caller& caller, absl::string_view name) {
  if (caller.role == v1::ADMIN) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string owner, core.reads().GetOwner(name));
  return MayChange(caller, name, owner);
}

// Prepares and posts an extension, again if another one came in between.
void Extend(Core& core, platform::WorkPool& pool, const v1::ExtendExperimentRequest& asked,
            const Done<v1::ExtendExperimentResponse>& done) {
  absl::StatusOr<Extension> prepared = core.submissions().PrepareExtension(asked);
  if (!prepared.ok()) return done(prepared.status());
  const auto extension = std::make_shared<const Extension>(*std::move(prepared));
  core.loop().Post<v1::ExtendExperimentResponse>(
      [&core, extension] { return core.submissions().Extend(*extension); },
      [&core, &pool, &asked, done](absl::StatusOr<v1::ExtendExperimentResponse> response) {
        if (!absl::IsAborted(response.status())) return done(std::move(response));
        pool.Submit("extensions",
                    [&core, &pool, &asked, done] { Extend(core, pool, asked, done); });
      },
      extension->bytes());
}

void AddSubmissions(Service& service, Core& core, platform::WorkPool& pool) {
  service.Serve<v1::CreateExperimentRequest, v1::CreateExperimentResponse>(
      Work::kQuery, [&core](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckCreateExperiment(asked);
        if (status.ok()) status = MaySubmitFor(caller, asked.owner());
        if (!status.ok()) return done(status);
        absl::StatusOr<Submission> prepared =
            core.submissions().PrepareCreation(InNameOf(caller, asked));
        if (!prepared.ok()) return done(prepared.status());
        if (HasCode(prepared->specification)) {
          status = MaySubmitCode(caller, core.options().python_networks_from);
        }
        if (!status.ok()) return done(status);
        core.Submit(std::make_shared<Submission>(*std::move(prepared)), std::move(done));
      });
  service.Serve<v1::ExtendExperimentRequest, v1::ExtendExperimentResponse>(
      Work::kQuery, [&core, &pool](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckOwner(core, caller, asked.name());
        if (status.ok()) status = CheckExtendExperiment(asked);
        if (!status.ok()) return done(status);
        Extend(core, pool, asked, done);
      });
  service.Serve<v1::EvaluateTrialRequest, v1::CreateExperimentResponse>(
      Work::kFiles, [&core](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckEvaluateTrial(asked);
        if (status.ok()) status = MaySubmitFor(caller, asked.owner());
        if (!status.ok()) return done(status);
        absl::StatusOr<Submission> prepared =
            core.submissions().PrepareEvaluation(InNameOf(caller, asked));
        if (!prepared.ok()) return done(prepared.status());
        core.Submit(std::make_shared<Submission>(*std::move(prepared)), std::move(done));
      });
}

void AddChanges(Service& service, Core& core) {
  service.Serve<v1::CancelExperimentRequest, v1::Experiment>(
      Work::kChange, [&core](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckOwner(core, caller, asked.name());
        if (status.ok()) status = CheckText("reason", asked.reason(), kMaxReasonBytes);
        if (!status.ok()) return done(status);
        core.loop().PostParts<v1::Experiment>(
            [&core, &asked, by = PrincipalOf(caller), parts = std::make_shared<Parts>()] {
              return core.experiments().Cancel(asked, by, *parts);
            },
            std::move(done), BytesOfCall(asked));
      });
  service.Serve<v1::RetryTrialsRequest, v1::RetryTrialsResponse>(
      Work::kChange, [&core](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckOwner(core, caller, asked.name());
        if (status.ok()) status = CheckRetryTrials(asked);
        if (!status.ok()) return done(status);
        core.loop().PostParts<v1::RetryTrialsResponse>(
            [&core, &asked, by = PrincipalOf(caller), parts = std::make_shared<Parts>()] {
              return core.experiments().RetryTrials(asked, by, *parts);
            },
            std::move(done), BytesOfCall(asked));
      });
  service.Serve<v1::DeleteExperimentRequest, v1::DeleteExperimentResponse>(
      Work::kChange, [&core](const auto& asked, const Caller& caller, auto done) {
        const absl::Status status = CheckOwner(core, caller, asked.name());
        if (!status.ok()) return done(status);
        core.loop().Post<v1::DeleteExperimentResponse>(
            [&core, &asked] { return core.experiments().Delete(asked); }, std::move(done),
            /*bytes=*/0, BytesOfCall(asked), /*frees_space=*/true);
      });
  service.Serve<v1::ChangeOwnerRequest, v1::Experiment>(
      Work::kMemory, [&core](const auto& asked, const Caller&, auto done) {
        const absl::Status status = CheckOwnerName(asked.owner());
        if (!status.ok()) return done(status);
        core.loop().Post<v1::Experiment>(
            [&core, &asked] { return core.experiments().ChangeOwner(asked); }, std::move(done),
            /*bytes=*/0, BytesOfCall(asked));
      });
  service.Serve<v1::CancelTrialRequest, v1::Trial>(
      Work::kChange, [&core](const auto& asked, const Caller& caller, auto done) {
        absl::Status status = CheckOwner(core, caller, asked.name());
        if (status.ok()) status = CheckText("reason", asked.reason(), kMaxReasonBytes);
        if (!status.ok()) return done(status);
        core.loop().Post<v1::Trial>(
            [&core, &asked, by = PrincipalOf(caller)] {
              return core.experiments().CancelTrial(asked, by);
            },
            std::move(done), /*bytes=*/0, BytesOfCall(asked));
      });
}

void AddReads(Service& service, Core& core, Calls& calls) {
  service.ServeBy<v1::GetExperimentRequest, v1::Experiment>(
      [&core, &calls](CallContext* context, const auto* request, auto* response) {
        // Disk use is measured, which takes as long as the experiment is large.
        return calls.Serve(request->omit_disk_use() ? Work::kLookup : Work::kQuery, context,
                           request, response, [&core](const auto& asked, const Caller&) {
                             return core.reads().GetExperiment(asked.name(), asked.omit_disk_use());
                           });
      });
  service.Serve<v1::FindExperimentRequest, v1::FindExperimentResponse>(
      Work::kLookup,
      [&core](const auto& asked, const Caller&) -> absl::StatusOr<v1::FindExperimentResponse> {
        RETURN_IF_ERROR(CheckText("text", asked.text(), kMaxNameBytes));
        return core.reads().FindExperiment(asked);
      });
  service.ServeBy<v1::ListExperimentsRequest, v1::ListExperimentsResponse>(
      [&core, &calls](CallContext* context, const auto* request, auto* response) {
        return calls.Serve(request->include_usage() ? Work::kFiles : Work::kLookup, context,
                           request, response,
                           [&core](const auto& asked,
                                   const Caller&) -> absl::StatusOr<v1::ListExperimentsResponse> {
                             RETURN_IF_ERROR(CheckPage(asked.page_size(), asked.page_token()));
                             return core.reads().ListExperiments(asked);
                           });
      });
  service.Serve<v1::GetTrialRequest, v1::Trial>(
      Work::kLookup,
      [&core](const auto& asked, const Caller&) { return core.reads().GetTrial(asked.name()); });
  service.Serve<v1::ListTrialsRequest, v1::ListTrialsResponse>(
      Work::kLookup,
      [&core](const auto& asked, const Caller&) -> absl::StatusOr<v1::ListTrialsResponse> {
        RETURN_IF_ERROR(ParseExperimentName(asked.parent(), "parent").status());
        RETURN_IF_ERROR(CheckPage(asked.page_size(), asked.page_token()));
        RETURN_IF_ERROR(CheckText("filter", asked.filter(), kMaxFilterBytes));
        return core.reads().ListTrials(asked);
      });
  service.Serve<v1::QueryLossCurvesRequest, v1::QueryLossCurvesResponse>(
      Work::kQuery,
      [&core](const auto& asked, const Caller&) { return LossCurves(core.event_log(), asked); });
  service.Serve<v1::SummarizeExperimentRequest, v1::SummarizeExperimentResponse>(
      Work::kQuery,
      [&core](const auto& asked, const Caller&) { return Summary(core.reads(), asked); });
  service.Serve<v1::QueryLengthAccuraciesRequest, v1::QueryLengthAccuraciesResponse>(
      Work::kQuery, [&core](const auto& asked, const Caller&) {
        return LengthAccuracies(core.event_log(), asked);
      });
}

// Streams a part of each event at the positions that `find` returns. Reads an event when the
// client is ready for it, from a new snapshot of the store: a slow client neither pins a snapshot
// nor costs the memory of the whole answer.
template <typename Request, typename Response, typename Find, typename Part>
void PushEvents(Service& service, Core& core, TransferThreads& transfers, Find find, Part part) {
  service.Push<Request, Response>(
      transfers,
      [&core, find, part](const Request& asked, const Caller&) -> absl::StatusOr<Next<Response>> {
        ASSIGN_OR_RETURN(std::vector<int64_t> found, find(core.event_log(), asked));
        return [&core, part, asked, found = std::move(found),
                sent = size_t{0}]() mutable -> absl::StatusOr<std::optional<Response>> {
          if (sent == found.size()) return std::nullopt;
          ASSIGN_OR_RETURN(v1::Event event, EventAt(core.event_log(), asked.name(), found[sent++]));
          return std::move(part(event));
        };
      });
}

void AddStreams(Service& service, Core& core, TransferThreads& transfers, Calls& calls) {
  service.ServeResponses<v1::WatchExperimentRequest, v1::WatchExperimentResponse>(
      [&core, &calls](CallContext* context, const auto& asked,
                      Gate::Admission admission) -> absl::StatusOr<WatchReactor*> {
        RETURN_IF_ERROR(ParseExperimentOrTrialName(asked.name()).status());
        if (asked.start_position() < 0) {
          return rpc::InvalidField("start_position",
                                   "is negative; accepted: 0 for all, or next_position");
        }
        // Its own lane: a watch does not wait for the same client's queries.
        std::string lane = "watches of " + ClientOf(*context, admission.caller);
        // A page of an experiment's log is found by reading all its events.
        platform::WorkPool& pool = asked.log_only() ? calls.pools().queries : calls.pools().lookups;
        return WatchReactor::Start(asked, std::move(admission), core.event_log(), pool,
                                   calls.streams(), std::move(lane));
      });
  PushEvents<v1::QueryAttentionMapsRequest, v1::AttentionMap>(
      service, core, transfers, AttentionMaps,
      [](v1::Event & event) -> auto& { return *event.mutable_attention_map(); });
  PushEvents<v1::QueryProjectionsRequest, v1::Projection>(
      service, core, transfers, Projections,
      [](v1::Event & event) -> auto& { return *event.mutable_projection(); });
  PushEvents<v1::QueryAnalysesRequest, v1::Event>(
      service, core, transfers, Analyses, [](v1::Event & event) -> auto& { return event; });
  service.Push<v1::DownloadModelRequest, v1::DownloadModelResponse>(
      transfers,
      [&core](const auto& asked, const Caller&) -> absl::StatusOr<Next<v1::DownloadModelResponse>> {
        absl::string_view trial = asked.name();
        const bool is_network = absl::ConsumeSuffix(&trial, "/network");
        RETURN_IF_ERROR(ParseTrialName(trial).status());
        ASSIGN_OR_RETURN(OpenedModel opened, core.artifacts().OpenModel(trial, is_network));
        const auto model = std::make_shared<OpenedModel>(std::move(opened));
        return
            [model,
             begun = false]() mutable -> absl::StatusOr<std::optional<v1::DownloadModelResponse>> {
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
  service.ServeRequests<v1::UploadDataRequest, v1::UploadDataResponse>(
      [&core, &transfers, &calls](CallContext* context,
                                  Gate::Admission admission) -> absl::StatusOr<DataUpload*> {
        const std::string principal = admission.caller.principal;
        return DataUpload::Start(
            *context, std::move(admission),
            [&core, principal](const v1::UploadDataRequest::Header& header)
                -> absl::StatusOr<std::unique_ptr<ArtifactWriter>> {
              RETURN_IF_ERROR(CheckSha256("header.sha256", header.sha256()));
              return core.artifacts().WriteData(header, principal);
            },
            transfers, calls.streams());
      });
}

}  // namespace

std::unique_ptr<Service> NewExperimentService(Core& core, TransferThreads& transfers,
                                              Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  AddSubmissions(*service, core, calls.pools().queries);
  AddChanges(*service, core);
  AddReads(*service, core, calls);
  AddStreams(*service, core, transfers, calls);
  return service;
}

}  // namespace lengthwise::server
