#include "server/coordination/reads.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Maximum age of answers about owners, whose measurement looks at many files.
constexpr absl::Duration kUsageAge = absl::Minutes(1);
// A page ends when its entries have this many bytes: a thousand specifications may have 1 GiB.
constexpr size_t kPageBytes = size_t{4} << 20;
// Trials of a page that are read from the store together.
constexpr size_t kTrialsAtOnce = 100;

}  // namespace

std::string Reads::ReasonOf(const TrialRecord& trial) {
  if (trial.state != v1::RUNNING && trial.state != v1::QUEUED) return trial.reason;
  if (std::string fault = fault_(trial.state == v1::RUNNING); !fault.empty()) return fault;
  if (trial.state == v1::RUNNING) return trial.reason;
  const std::string why =
      loop_.BetweenGroups([&] { return ledger_.scheduler().WhyWaiting(trial.key, ledger_.Now()); });
  // The trial was leased after the snapshot; its stored reason belongs to the snapshot.
  if (why.empty()) return trial.reason;
  // The stored reason says what put the trial back into the queue.
  return trial.attempt == 0 ? why : absl::StrCat(why, "; before: ", trial.reason);
}

absl::StatusOr<v1::Experiment> Reads::GetExperiment(absl::string_view name, bool omit_disk_use) {
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record, server::FindExperiment(*reader, name));
  ASSIGN_OR_RETURN(v1::Experiment experiment, ToExperiment(record, reader->name()));
  if (!omit_disk_use) {
    ASSIGN_OR_RETURN(*experiment.mutable_disk_use(), usage_.Measure(*reader, record));
  }
  if (UnendedTrials(record.counts) > 0) {
    experiment.set_storage_fault(fault_(record.counts.running() > 0));
  }
  return experiment;
}

absl::StatusOr<v1::FindExperimentResponse> Reads::FindExperiment(
    const v1::FindExperimentRequest& request) {
  v1::FindExperimentResponse response;
  {
    ASSIGN_OR_RETURN(const auto reader, storage_.Read());
    ASSIGN_OR_RETURN(response, Search(*reader, request));
  }
  ASSIGN_OR_RETURN(*response.mutable_experiment(),
                   GetExperiment(response.experiment().name(), /*omit_disk_use=*/true));
  if (response.has_trial()) {
    ASSIGN_OR_RETURN(*response.mutable_trial(), GetTrial(response.trial().name()));
  }
  return response;
}

absl::StatusOr<v1::ListExperimentsResponse> Reads::ListExperiments(
    const v1::ListExperimentsRequest& request) {
  constexpr absl::string_view kScope = "experiments";
  const int64_t size = PageSize(request.page_size());
  ASSIGN_OR_RETURN(const int64_t before, DecodePageToken(kScope, request.page_token()));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  v1::ListExperimentsResponse response;
  ASSIGN_OR_RETURN(const std::vector<HoldRecord> holds, reader->ListHolds());
  for (const HoldRecord& hold : holds) {
    if (hold.worker.empty()) response.set_queue_pause(hold.why);
  }
  if (request.include_usage()) {
    ASSIGN_OR_RETURN(std::vector<v1::OwnerUsage> owners, usage_.Owners(kUsageAge));
    for (v1::OwnerUsage& one : owners) {
      if (!request.owner().empty() && one.owner() != request.owner()) continue;
      *response.add_usage() = std::move(one);
    }
  }
  size_t bytes = 0;
  int64_t last = before;
  while (true) {
    ASSIGN_OR_RETURN(const auto records,
                     reader->ListExperiments(last, request.owner(), kExperimentsAtOnce));
    for (const ExperimentRecord& record : records) {
      if (response.experiments_size() == size || bytes >= kPageBytes) {
        response.set_next_page_token(EncodePageToken(kScope, last));
        return response;
      }
      v1::Experiment& experiment = *response.add_experiments();
      ASSIGN_OR_RETURN(experiment, ToExperiment(record, reader->name()));
      bytes += experiment.ByteSizeLong();
      last = record.key;
    }
    if (records.size() < kExperimentsAtOnce) return response;
  }
}

absl::StatusOr<v1::SummarizeExperimentResponse> Reads::SummarizeExperiment(
    const v1::SummarizeExperimentRequest& request) {
  ASSIGN_OR_RETURN(const std::string id, ParseExperimentName(request.name()));
  ASSIGN_OR_RETURN(v1::SummarizeExperimentResponse response,
                   summaries_.Summarize(id, request.select()));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record, server::FindExperiment(*reader, request.name()));
  ASSIGN_OR_RETURN(const auto specification, ToSpecification(record, reader->name()));
  *response.mutable_heading() = HeadingOf(specification, response);
  if (request.omit_lengths()) {
    for (v1::SummarizeExperimentResponse::Cell& cell : *response.mutable_cells()) {
      cell.clear_lengths();
      cell.clear_mean_accuracies();
      cell.clear_losses();
    }
  }
  return response;
}

absl::StatusOr<std::string> Reads::GetOwner(absl::string_view experiment_or_trial) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(experiment_or_trial));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record,
                   server::FindExperiment(*reader, ExperimentName(path.experiment)));
  return record.owner;
}

absl::StatusOr<v1::Trial> Reads::GetTrial(absl::string_view name) {
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const TrialRecord record, FindTrial(*reader, name));
  ASSIGN_OR_RETURN(const auto pack, reader->FindPack(record.pack));
  ASSIGN_OR_RETURN(v1::Trial trial, ToTrial(record, *pack, reader->name()));
  trial.set_reason(ReasonOf(record));
  return trial;
}

absl::StatusOr<v1::ListTrialsResponse> Reads::ListTrials(const v1::ListTrialsRequest& request) {
  const int64_t size = PageSize(request.page_size());
  ASSIGN_OR_RETURN(const TrialFilter filter, ParseTrialFilter(request.filter()));
  const std::string scope = absl::StrCat("trials\n", request.parent(), "\n", request.filter());
  ASSIGN_OR_RETURN(const int64_t start, DecodePageToken(scope, request.page_token()));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord experiment,
                   server::FindExperiment(*reader, request.parent()));
  v1::ListTrialsResponse response;
  std::vector<TrialRecord> listed;
  std::map<int64_t, PackRecord> packs;
  size_t bytes = 0;
  auto next = static_cast<int32_t>(start);
  for (bool goes_on = true; goes_on;) {
    ASSIGN_OR_RETURN(auto records, reader->ListTrials(experiment.key, next, filter, kTrialsAtOnce));
    goes_on = records.size() == kTrialsAtOnce;
    for (TrialRecord& record : records) {
      if (response.trials_size() == size || bytes >= kPageBytes) {
        response.set_next_page_token(EncodePageToken(scope, record.index));
        goes_on = false;
        break;
      }
      auto pack = packs.find(record.pack);
      if (pack == packs.end()) {
        ASSIGN_OR_RETURN(auto found, reader->FindPack(record.pack));
        pack = packs.emplace(record.pack, *std::move(found)).first;
      }
      v1::Trial& trial = *response.add_trials();
      ASSIGN_OR_RETURN(trial, ToTrial(record, pack->second, reader->name()));
      bytes += trial.ByteSizeLong();
      next = record.index + 1;
      listed.push_back(std::move(record));
    }
  }
  for (int i = 0; i < response.trials_size(); ++i) {
    response.mutable_trials(i)->set_reason(ReasonOf(listed[i]));
  }
  return response;
}

v1::ListWorkersResponse Reads::ListWorkers() {
  v1::ListWorkersResponse response;
  std::vector<v1::Worker> workers = fleet_.List(ledger_.Now());
  absl::flat_hash_map<std::string, std::vector<TrialKey>> trials;
  loop_.BetweenGroups([&] {
    for (v1::Worker& worker : workers) {
      worker.set_alive(ledger_.scheduler().IsAlive(worker.worker_id(), ledger_.Now()));
      if (!worker.stopped()) {
        worker.set_fault(ledger_.scheduler().FaultOf(worker.worker_id(), ledger_.Now()));
      }
      worker.set_hold(ledger_.scheduler().HoldOf(worker.worker_id()));
    }
    response.set_queue_pause(ledger_.scheduler().HoldOf(""));
    trials = ledger_.scheduler().TrialsByWorker();
  });
  const auto reader = storage_.Read();
  for (v1::Worker& worker : workers) {
    for (const TrialKey key : trials[worker.worker_id()]) {
      // The list is useful without the names of the trials.
      if (!reader.ok()) break;
      const auto trial = (*reader)->FindTrial(key);
      if (!trial.ok() || !trial->has_value()) continue;
      worker.add_trials(TrialName((*trial)->experiment_id, (*trial)->id));
    }
    if (!worker.alive()) {
      worker.clear_steps_per_second();
      worker.clear_model_steps_per_second();
    }
    *response.add_workers() = std::move(worker);
  }
  return response;
}

absl::StatusOr<v1::GetWantedWorkersResponse> Reads::GetWantedWorkers(
    const v1::GetWantedWorkersRequest& request) {
  constexpr int kMostRows = 1000;
  if (request.max_pack_size() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_pack_size: got ", request.max_pack_size(),
                                                   ", accepted is 0 (which stands for 1) or more"));
  }
  std::string experiment;
  if (!request.experiment().empty()) {
    ASSIGN_OR_RETURN(experiment, ParseExperimentName(request.experiment(), "experiment"));
  }
  v1::GetWantedWorkersResponse response;
  absl::btree_map<std::string, WantedPacks> wanted;
  loop_.BetweenGroups([&] {
    const Scheduler& scheduler = ledger_.scheduler();
    wanted = scheduler.Wanted(std::max(request.max_pack_size(), 1), experiment);
    response.set_busy_workers(scheduler.BusyWorkers(ledger_.Now()));
    response.set_idle_workers(waiting_.IdleWorkers(experiment));
  });
  std::vector<std::pair<std::string, WantedPacks>> rows(wanted.begin(), wanted.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.priority, a.second.packs) >
           std::pair(b.second.priority, b.second.packs);
  });
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  for (const auto& [shape, packs] : rows) {
    response.set_runnable_packs(response.runnable_packs() + packs.packs);
    if (response.wanted_size() == kMostRows) continue;
    v1::WantedWorkers& row = *response.add_wanted();
    row.set_shape(shape);
    row.set_priority(packs.priority);
    row.set_trials(packs.trials);
    row.set_packs(packs.packs);
    ASSIGN_OR_RETURN(const auto pack, reader->FindPack(packs.pack));
    if (!pack.has_value()) continue;  // its experiment was just deleted
    ASSIGN_OR_RETURN(const auto shared, ToSharedSpecification(*pack, reader->name()));
    row.set_task(shared.task().label());
    row.set_network(shared.network().label());
    row.set_encoding(shared.encoding().label());
    row.set_precision(shared.training().precision());
  }
  return response;
}

void Reads::Publish(const Effects& effects) {
  for (const std::string& experiment : effects.reshaped) summaries_.Forget(experiment);
  for (const auto& [experiment, trials] : effects.trials) summaries_.Update(experiment, trials);
}

}  // namespace lengthwise::server
