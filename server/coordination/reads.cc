// The coordinator's reads: on the caller's thread, from a snapshot of what is committed.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/process_usage.h"
#include "platform/status_macros.h"
#include "server/coordination/coordinator_impl.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "server/coordination/trial_filter.h"

namespace lengthwise::server {
namespace {

absl::Status NotThere(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no ", name));
}

}  // namespace

absl::StatusOr<ExperimentRecord> CoordinatorImpl::FindExperiment(StorageReader& reader,
                                                                 absl::string_view name) {
  ASSIGN_OR_RETURN(const std::string id, ParseExperimentName(name));
  ASSIGN_OR_RETURN(std::optional<ExperimentRecord> found, reader.FindExperiment(id));
  if (!found.has_value()) return NotThere(name);
  return *std::move(found);
}

absl::StatusOr<TrialRecord> CoordinatorImpl::FindTrial(StorageReader& reader,
                                                       absl::string_view name) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseTrialName(name));
  ASSIGN_OR_RETURN(std::optional<TrialRecord> found, reader.FindTrial(path.experiment, path.trial));
  if (!found.has_value()) return NotThere(name);
  return *std::move(found);
}

std::string CoordinatorImpl::WhyWaiting(const TrialRecord& trial) {
  std::string why;
  {
    platform::MutexLock lock(engine_mutex_);
    why = engine_.scheduler().WhyWaiting(trial.key, engine_.Now());
  }
  // A trial that was leased just now: its reason was true when the snapshot was taken.
  if (why.empty()) return trial.reason;
  // What brought it back into the queue.
  return trial.attempt == 0 ? why : absl::StrCat(why, "; before: ", trial.reason);
}

absl::StatusOr<v1::Experiment> CoordinatorImpl::GetExperiment(absl::string_view name) {
  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(*reader, name));
  ASSIGN_OR_RETURN(v1::Experiment experiment, ToExperiment(record, reader->name()));
  ASSIGN_OR_RETURN(*experiment.mutable_disk_use(), disk_uses_.Measure(*reader, record));
  return experiment;
}

absl::StatusOr<v1::ListExperimentsResponse> CoordinatorImpl::ListExperiments(
    const v1::ListExperimentsRequest& request) {
  constexpr absl::string_view kScope = "experiments";
  ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t before, DecodePageToken(kScope, request.page_token()));
  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  ASSIGN_OR_RETURN(auto records, reader->ListExperiments(before, request.owner(), size + 1));
  v1::ListExperimentsResponse response;
  if (static_cast<int64_t>(records.size()) > size) {
    records.pop_back();
    response.set_next_page_token(EncodePageToken(kScope, records.back().key));
  }
  for (const ExperimentRecord& record : records) {
    ASSIGN_OR_RETURN(*response.add_experiments(), ToExperiment(record, reader->name()));
  }
  return response;
}

absl::StatusOr<v1::SummarizeExperimentResponse> CoordinatorImpl::SummarizeExperiment(
    const v1::SummarizeExperimentRequest& request) {
  ASSIGN_OR_RETURN(const std::string id, ParseExperimentName(request.name()));
  return summaries_.Summarize(id, request.omit_lengths());
}

absl::StatusOr<std::string> CoordinatorImpl::GetOwner(absl::string_view experiment_or_trial) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(experiment_or_trial));
  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record,
                   FindExperiment(*reader, ExperimentName(path.experiment)));
  return record.owner;
}

absl::StatusOr<v1::Trial> CoordinatorImpl::GetTrial(absl::string_view name) {
  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  ASSIGN_OR_RETURN(const TrialRecord record, FindTrial(*reader, name));
  ASSIGN_OR_RETURN(const auto pack, reader->FindPack(record.pack));
  ASSIGN_OR_RETURN(v1::Trial trial, ToTrial(record, *pack, reader->name()));
  if (record.state == v1::QUEUED) trial.set_reason(WhyWaiting(record));
  return trial;
}

absl::StatusOr<v1::ListTrialsResponse> CoordinatorImpl::ListTrials(
    const v1::ListTrialsRequest& request) {
  ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const TrialFilter filter, ParseTrialFilter(request.filter()));
  const std::string scope = absl::StrCat("trials\n", request.parent(), "\n", request.filter());
  const absl::StatusOr<int64_t> start = DecodePageToken(scope, request.page_token());
  if (!start.ok()) return start.status();
  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  ASSIGN_OR_RETURN(const ExperimentRecord experiment, FindExperiment(*reader, request.parent()));
  ASSIGN_OR_RETURN(auto records, reader->ListTrials(experiment.key, static_cast<int32_t>(*start),
                                                    filter, size + 1));
  v1::ListTrialsResponse response;
  if (static_cast<int64_t>(records.size()) > size) {
    response.set_next_page_token(EncodePageToken(scope, records.back().index));
    records.pop_back();
  }
  std::map<int64_t, PackRecord> packs;
  for (const TrialRecord& record : records) {
    auto pack = packs.find(record.pack);
    if (pack == packs.end()) {
      ASSIGN_OR_RETURN(auto found, reader->FindPack(record.pack));
      pack = packs.emplace(record.pack, *std::move(found)).first;
    }
    ASSIGN_OR_RETURN(*response.add_trials(), ToTrial(record, pack->second, reader->name()));
  }
  for (int i = 0; i < response.trials_size(); ++i) {
    const TrialRecord& record = records[i];
    if (record.state == v1::QUEUED) response.mutable_trials(i)->set_reason(WhyWaiting(record));
  }
  return response;
}

v1::ListWorkersResponse CoordinatorImpl::ListWorkers() {
  std::vector<v1::Worker> workers = fleet_.List(dependencies_.clock.steady());
  std::vector<std::vector<TrialKey>> trials;
  {
    platform::MutexLock lock(engine_mutex_);
    for (v1::Worker& worker : workers) {
      worker.set_alive(engine_.scheduler().IsAlive(worker.worker_id(), engine_.Now()));
      trials.push_back(engine_.scheduler().TrialsOf(worker.worker_id()));
    }
  }
  v1::ListWorkersResponse response;
  const auto reader = storage_->Read();
  for (size_t i = 0; i < workers.size(); ++i) {
    for (const TrialKey key : trials[i]) {
      if (!reader.ok()) break;
      const auto trial = (*reader)->FindTrial(key);
      if (!trial.ok() || !trial->has_value()) continue;
      workers[i].add_trials(TrialName((*trial)->experiment_id, (*trial)->id));
    }
    if (!workers[i].alive()) {
      workers[i].clear_steps_per_second();
      workers[i].clear_model_steps_per_second();
    }
    *response.add_workers() = std::move(workers[i]);
  }
  return response;
}

Coordinator::Statistics CoordinatorImpl::GetStatistics() {
  Statistics statistics;
  {
    platform::MutexLock lock(statistics_mutex_);
    statistics = statistics_;
  }
  statistics.workers = fleet_.Samples(dependencies_.clock.steady());
  {
    platform::MutexLock lock(engine_mutex_);
    const Scheduler& scheduler = engine_.scheduler();
    statistics.leases = scheduler.leases();
    std::erase_if(statistics.workers, [&](const monitoring::WorkerSample& worker) {
      return !scheduler.IsAlive(worker.worker_id, engine_.Now());
    });
  }
  statistics.running_trials = running_trials_.List();
  statistics.database_bytes = storage_->SizeBytes();
  const platform::DiskSpace disk = platform::ReadDiskSpace(options_.data_dir.c_str());
  statistics.disk_free_bytes = disk.free_bytes;
  statistics.disk_size_bytes = disk.size_bytes;
  const auto reader = storage_->Read();
  if (!reader.ok()) return statistics;
  const auto counts = (*reader)->TotalCounts();
  if (counts.ok()) statistics.trials = *counts;
  const auto oldest = (*reader)->OldestQueued();
  if (oldest.ok() && *oldest != NoTime()) {
    statistics.oldest_queued_seconds =
        std::max(0.0, absl::ToDoubleSeconds(dependencies_.clock.wall() - *oldest));
  }
  for (const RunningTrial& trial : statistics.running_trials) {
    if (statistics.running_experiments.contains(trial.experiment_id)) continue;
    const auto experiment = (*reader)->FindExperiment(trial.experiment_id);
    if (!experiment.ok() || !experiment->has_value()) continue;
    statistics.running_experiments[trial.experiment_id] = (*experiment)->counts;
  }
  return statistics;
}

}  // namespace lengthwise::server
