#include "server/simulation/memory_storage.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/trial_counts.h"

namespace lengthwise::server {
namespace {

void Add(const v1::TrialCounts& more, v1::TrialCounts& counts) {
  counts.set_queued(counts.queued() + more.queued());
  counts.set_running(counts.running() + more.running());
  counts.set_succeeded(counts.succeeded() + more.succeeded());
  counts.set_failed(counts.failed() + more.failed());
  counts.set_cancelled(counts.cancelled() + more.cancelled());
}

template <typename T>
std::optional<T> Optional(const T* row) {
  if (row == nullptr) return std::nullopt;
  return *row;
}

}  // namespace

// `Base` is StorageReader or StorageWriter.
template <typename Base>
class MemoryReader : public Base {
 public:
  absl::string_view name() const override { return kMemoryStorageName; }
  absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id) override {
    const int64_t* key = data().experiment_keys.Find(std::string(id));
    return key == nullptr ? std::nullopt : Optional(data().experiments.Find(*key));
  }
  absl::StatusOr<std::optional<ExperimentRecord>> FindRequest(
      absl::string_view request_id) override {
    for (const auto& [key, record] : data().experiments.rows()) {
      if (!request_id.empty() && record.request_id == request_id) return Optional(&record);
    }
    return std::nullopt;
  }
  absl::StatusOr<std::optional<DeletedRequest>> FindDeletedRequest(
      absl::string_view request_id) override {
    return Optional(data().deleted_requests.Find(std::string(request_id)));
  }
  absl::StatusOr<bool> WasDeleted(absl::string_view id) override {
    // An id is a name and a number. Numbers are assigned in turn and never reused.
    const size_t dash = id.rfind('-');
    int64_t number = 0;
    if (dash == absl::string_view::npos || !absl::SimpleAtoi(id.substr(dash + 1), &number)) {
      return false;
    }
    const int64_t* last = data().counters.Find(absl::StrCat("name ", id.substr(0, dash)));
    return last != nullptr && number >= 1 && number <= *last &&
           data().experiment_keys.Find(std::string(id)) == nullptr;
  }
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(absl::string_view experiment_id,
                                                       absl::string_view trial_id) override {
    const int64_t* key =
        data().trial_keys.Find({std::string(experiment_id), std::string(trial_id)});
    return key == nullptr ? std::nullopt : Optional(data().trials.Find(*key));
  }
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(int64_t key) override {
    return Optional(data().trials.Find(key));
  }
  absl::StatusOr<std::optional<PackRecord>> FindPack(int64_t key) override {
    return Optional(data().packs.Find(key));
  }
  absl::StatusOr<std::vector<PackRecord>> ListPacks(int64_t experiment) override {
    std::vector<PackRecord> packs;
    for (const auto& [key, pack] : data().packs.rows()) {
      if (pack.experiment == experiment) packs.push_back(pack);
    }
    return packs;
  }
  absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> PackKeys(int64_t experiment) override {
    absl::flat_hash_map<std::string, int64_t> keys;
    for (const auto& [key, pack] : data().packs.rows()) {
      if (pack.experiment == experiment) keys.emplace(pack.pack_key, key);
    }
    return keys;
  }
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                const std::string& owner,
                                                                int64_t limit) override {
    std::vector<ExperimentRecord> experiments;
    const auto& rows = data().experiments.rows();
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (static_cast<int64_t>(experiments.size()) == limit) break;
      const bool wanted = owner.empty() || row->second.owner == owner;
      if (wanted && (before == 0 || row->first < before)) experiments.push_back(row->second);
    }
    return experiments;
  }
  absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner) override {
    int64_t count = 0;
    for (const auto& [key, experiment] : data().experiments.rows()) {
      if (experiment.owner != owner) continue;
      count += UnendedTrials(experiment.counts);
    }
    return count;
  }
  absl::StatusOr<std::vector<TrialRecord>> ListTrials(int64_t experiment, int32_t first_index,
                                                      const TrialFilter& filter,
                                                      int64_t limit) override {
    std::map<int32_t, TrialRecord> found;  // in the order of the grid
    for (const auto& [key, trial] : data().trials.rows()) {
      const PackRecord* pack = data().packs.Find(trial.pack);
      const auto accepts = [](const auto& wanted, const auto& got) {
        return wanted == std::decay_t<decltype(wanted)>() || wanted == got;
      };
      if (trial.experiment == experiment && trial.index >= first_index &&
          accepts(filter.state, trial.state) && accepts(filter.task, pack->task) &&
          accepts(filter.network, pack->network) && accepts(filter.encoding, pack->encoding)) {
        found[trial.index] = trial;
      }
    }
    std::vector<TrialRecord> trials;
    for (auto& [index, trial] : found) {
      if (static_cast<int64_t>(trials.size()) < limit) trials.push_back(std::move(trial));
    }
    return trials;
  }
  absl::StatusOr<std::vector<int64_t>> ListTrialsInStates(
      int64_t experiment, absl::Span<const v1::TrialState> states) override {
    std::vector<int64_t> keys;
    for (const auto& [key, trial] : data().trials.rows()) {
      const bool wanted = absl::c_linear_search(states, trial.state);
      if (trial.experiment == experiment && wanted) keys.push_back(key);
    }
    absl::c_stable_sort(keys, [&](int64_t a, int64_t b) {
      return data().trials.Find(a)->state > data().trials.Find(b)->state;
    });
    return keys;
  }
  absl::Status ForEachUnendedTrial(
      const std::function<void(const TrialRecord&, const TrialPlacement&)>& take) override {
    for (const v1::TrialState state : {v1::QUEUED, v1::RUNNING}) {
      for (const auto& [key, trial] : data().trials.rows()) {
        if (trial.state != state) continue;
        const ExperimentRecord& experiment = *data().experiments.Find(trial.experiment);
        take(trial, {.priority = experiment.priority,
                     .owner = experiment.owner,
                     .pack_key = data().packs.Find(trial.pack)->pack_key,
                     .pack_bytes = static_cast<int64_t>(
                         data().packs.Find(trial.pack)->specification.size())});
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<LeaseRecord>> ListLeases() override {
    std::vector<LeaseRecord> leases;
    for (const auto& [token, lease] : data().leases.rows()) leases.push_back(lease);
    return leases;
  }
  absl::StatusOr<std::vector<SweepRecord>> ListSweeps(int64_t after, int64_t limit) override {
    std::vector<SweepRecord> sweeps;
    for (const auto& [key, sweep] : data().sweeps.rows()) {
      if (key > after && static_cast<int64_t>(sweeps.size()) < limit) sweeps.push_back(sweep);
    }
    return sweeps;
  }
  absl::StatusOr<std::vector<int64_t>> ListCancelledTrials(int64_t token) override {
    std::vector<int64_t> keys;
    for (const auto& [key, trial] : data().trials.rows()) {
      if (trial.state == v1::CANCELLED && trial.token == token) keys.push_back(key);
    }
    return keys;
  }
  absl::StatusOr<int64_t> NextToken() override { return Counter("token") + 1; }
  absl::Status ForEachEvent(int64_t experiment, int64_t start_position,
                            const StorageReader::TakeEvent& take) override {
    return ForEachInOrder(start_position, take,
                          [&](const EventRecord& event) { return event.experiment == experiment; });
  }
  absl::Status ForEachTrialEvent(int64_t trial, int64_t start_position,
                                 const StorageReader::TakeEvent& take) {
    return ForEachInOrder(start_position, take,
                          [&](const EventRecord& event) { return event.trial == trial; });
  }
  absl::Status ForEachLogEvent(int64_t experiment, int64_t trial, int64_t start_position,
                               const StorageReader::TakeEvent& take) {
    return ForEachInOrder(start_position, take, [&](const EventRecord& event) {
      return (trial != 0 ? event.trial == trial : event.experiment == experiment) &&
             (event.kind == v1::Event::kLogLine || event.kind == v1::Event::kStateChange);
    });
  }
  absl::Status ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                  const StorageReader::TakeEvent& take) override {
    for (const auto& [key, record] : data().trials.rows()) {
      if (trial != 0 ? key != trial : record.experiment != experiment) continue;
      const std::vector<EventRecord>* events = data().events.Find(key);
      if (events == nullptr) continue;
      for (const EventRecord& event : *events) {
        if (event.kind == kind && !take(event, record.id)) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<EventRecord>> NewestEvents(int64_t trial, int kind,
                                                        int64_t limit) override {
    std::vector<EventRecord> newest;
    const std::vector<EventRecord>* events = data().events.Find(trial);
    if (events == nullptr) return newest;
    for (auto event = events->rbegin(); event != events->rend(); ++event) {
      if (static_cast<int64_t>(newest.size()) == limit) break;
      if (event->kind == kind) newest.push_back(*event);
    }
    return newest;
  }
  absl::StatusOr<int64_t> LastSequence(int64_t trial, int32_t attempt) override {
    const std::vector<EventRecord>* events = data().events.Find(trial);
    int64_t last = 0;
    if (events == nullptr) return last;
    for (const EventRecord& event : *events) {
      if (event.attempt == attempt) last = std::max(last, event.sequence);
    }
    return last;
  }
  absl::StatusOr<v1::TrialCounts> TotalCounts() override {
    v1::TrialCounts total;
    for (const auto& [key, record] : data().experiments.rows()) Add(record.counts, total);
    return total;
  }
  absl::StatusOr<absl::Time> OldestQueued() override {
    absl::Time oldest = NoTime();
    for (const auto& [key, trial] : data().trials.rows()) {
      if (trial.state != v1::QUEUED) continue;
      if (oldest == NoTime() || trial.queue_time < oldest) oldest = trial.queue_time;
    }
    return oldest;
  }
  absl::StatusOr<int64_t> LastPosition() { return Counter("position"); }
  absl::StatusOr<int64_t> CountWorkerEvents(int64_t trial, int32_t attempt, int kind) {
    const std::vector<EventRecord>* events = data().events.Find(trial);
    if (events == nullptr) return 0;
    return std::count_if(events->begin(), events->end(), [&](const EventRecord& event) {
      return event.attempt == attempt && event.kind == kind && event.sequence > 0;
    });
  }
  absl::StatusOr<int64_t> CountEvents(int64_t experiment, int64_t first, int64_t last) {
    int64_t count = 0;
    absl::Status status =
        ForEachEvent(experiment, first, [&](const EventRecord& event, absl::string_view) {
          count += event.position <= last ? 1 : 0;
          return true;
        });
    if (!status.ok()) return status;
    return count;
  }
  absl::StatusOr<int64_t> EventBytes(int64_t experiment, int64_t first, int64_t last) {
    int64_t bytes = 0;
    absl::Status status =
        ForEachEvent(experiment, first, [&](const EventRecord& event, absl::string_view) {
          if (event.position <= last) bytes += static_cast<int64_t>(event.payload.size());
          return true;
        });
    if (!status.ok()) return status;
    return bytes;
  }

 protected:
  virtual const MemoryData& data() const = 0;
  int64_t Counter(const std::string& of) const {
    const int64_t* last = data().counters.Find(of);
    return last == nullptr ? 0 : *last;
  }

 private:
  template <typename Wanted>
  absl::Status ForEachInOrder(int64_t start_position, const StorageReader::TakeEvent& take,
                              const Wanted& wanted) {
    std::map<int64_t, const EventRecord*> found;
    for (const auto& [trial, events] : data().events.rows()) {
      for (const EventRecord& event : events) {
        if (event.position >= start_position && wanted(event)) found[event.position] = &event;
      }
    }
    for (const auto& [position, event] : found) {
      if (!take(*event, data().trials.Find(event->trial)->id)) break;
    }
    return absl::OkStatus();
  }
};

namespace {

class Snapshot : public MemoryReader<StorageReader> {
 public:
  explicit Snapshot(std::shared_ptr<const MemoryData> data) : data_(std::move(data)) {}

 protected:
  const MemoryData& data() const override { return *data_; }

 private:
  const std::shared_ptr<const MemoryData> data_;
};

}  // namespace

class MemoryStorage::Writer : public MemoryReader<StorageWriter> {
 public:
  explicit Writer(std::shared_ptr<MemoryData>& data) : data_(data) {}

  void FailNextCommit() { fails_ = true; }
  void RollBack() {
    for (auto undo = journal_.rbegin(); undo != journal_.rend(); ++undo) (*undo)();
    journal_.clear();
    error_ = absl::OkStatus();
  }

  absl::Status Begin() override {
    RollBack();
    // Copy on write: a reader keeps the old state.
    if (data_.use_count() > 1) data_ = std::make_shared<MemoryData>(*data_);
    return absl::OkStatus();
  }
  absl::Status Commit() override {
    if (std::exchange(fails_, false)) error_ = absl::UnavailableError("the store failed");
    absl::Status status = error_;
    if (!status.ok()) {
      RollBack();
      return status;
    }
    journal_.clear();
    return absl::OkStatus();
  }
  bool HasChanges() const override { return !journal_.empty(); }

  absl::StatusOr<std::string> ReserveExperimentId(absl::string_view name) override {
    return absl::StrCat(name, "-", Count(absl::StrCat("name ", name)));
  }
  absl::Status InsertExperiment(ExperimentRecord& experiment) override {
    if (experiment.id.empty()) experiment.id = *ReserveExperimentId(experiment.name);
    experiment.key = Count("experiment");
    data_->experiments.Put(experiment.key, experiment, journal_);
    data_->experiment_keys.Put(experiment.id, experiment.key, journal_);
    return absl::OkStatus();
  }
  absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added) override {
    ExperimentRecord record = *data_->experiments.Find(experiment.key);
    record.specification = experiment.specification;
    record.end_time = NoTime();
    CountTrials(v1::QUEUED, added, record.counts);
    data_->experiments.Put(record.key, record, journal_);
    return absl::OkStatus();
  }
  absl::Status InsertPack(PackRecord& pack) override {
    pack.key = Count("pack");
    data_->packs.Put(pack.key, pack, journal_);
    return absl::OkStatus();
  }
  absl::Status InsertTrials(absl::Span<TrialRecord> trials) override {
    for (TrialRecord& trial : trials) {
      trial.key = Count("trial");
      TrialRecord stored = trial;
      const ExperimentRecord& experiment = *data_->experiments.Find(trial.experiment);
      stored.experiment_id = experiment.id;
      stored.create_time = experiment.create_time;
      data_->trial_keys.Put({experiment.id, trial.id}, trial.key, journal_);
      data_->trials.Put(trial.key, std::move(stored), journal_);
    }
    return absl::OkStatus();
  }
  absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous) override {
    data_->trials.Put(trial.key, trial, journal_);
    if (trial.state == previous) return absl::OkStatus();
    ExperimentRecord experiment = *data_->experiments.Find(trial.experiment);
    CountTrials(previous, -1, experiment.counts);
    CountTrials(trial.state, 1, experiment.counts);
    const bool ended = UnendedTrials(experiment.counts) == 0;
    experiment.end_time = ended ? trial.end_time : NoTime();
    data_->experiments.Put(experiment.key, std::move(experiment), journal_);
    return absl::OkStatus();
  }
  bool HasSequence(const EventRecord& event) const {
    const std::vector<EventRecord>* events = data_->events.Find(event.trial);
    return events != nullptr &&
           std::any_of(events->begin(), events->end(), [&](const EventRecord& stored) {
             return stored.attempt == event.attempt && stored.sequence == event.sequence;
           });
  }
  absl::Status AppendEvent(EventRecord& event) override {
    const auto last = LastSequence(event.trial, event.attempt);
    if (event.sequence > 0 && event.sequence <= *last && HasSequence(event)) {
      error_ = absl::UnavailableError("a sequence number comes twice");
      return error_;
    }
    event.position = Count("position");
    data_->events.Edit(
        event.trial, [&](std::vector<EventRecord>& events) { events.push_back(event); },
        [](std::vector<EventRecord>& events) { events.pop_back(); }, journal_);
    return absl::OkStatus();
  }
  absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position) override {
    const std::vector<EventRecord>* events = data_->events.Find(trial);
    if (events == nullptr) return absl::OkStatus();
    std::vector<EventRecord> kept = *events;
    std::erase_if(kept, [&](const EventRecord& event) {
      return event.position > after_position && event.sequence > 0 &&
             event.kind != v1::Event::kLogLine;
    });
    data_->events.Put(trial, std::move(kept), journal_);
    return absl::OkStatus();
  }
  absl::Status InsertLease(const LeaseRecord& lease) override {
    data_->leases.Put(lease.token, lease, journal_);
    data_->counters.Put("token", std::max(lease.token, Counter("token")), journal_);
    return absl::OkStatus();
  }
  absl::Status DeleteLease(int64_t token) override {
    data_->leases.Erase(token, journal_);
    return absl::OkStatus();
  }
  absl::Status InsertSweep(const SweepRecord& sweep) override {
    SweepRecord record = sweep;
    record.key = Count("sweep");
    data_->sweeps.Put(record.key, std::move(record), journal_);
    return absl::OkStatus();
  }
  absl::Status DeleteSweep(int64_t key) override {
    data_->sweeps.Erase(key, journal_);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> CleanUp() override { return false; }
  absl::Status DeleteExperiment(int64_t key) override {
    const std::string id = data_->experiments.Find(key)->id;
    std::vector<std::pair<int64_t, std::string>> trials;
    for (const auto& [trial, record] : data_->trials.rows()) {
      if (record.experiment == key) trials.emplace_back(trial, record.id);
    }
    for (const auto& [trial, trial_id] : trials) {
      data_->events.Erase(trial, journal_);
      data_->trial_keys.Erase({id, trial_id}, journal_);
      data_->trials.Erase(trial, journal_);
    }
    const auto packs = ListPacks(key);
    for (const PackRecord& pack : *packs) data_->packs.Erase(pack.key, journal_);
    data_->experiment_keys.Erase(id, journal_);
    data_->experiments.Erase(key, journal_);
    return absl::OkStatus();
  }
  absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) override {
    data_->deleted_requests.Put(
        experiment.request_id,
        {.request_fingerprint = experiment.request_fingerprint, .experiment_id = experiment.id},
        journal_);
    return absl::OkStatus();
  }

 protected:
  const MemoryData& data() const override { return *data_; }

 private:
  int64_t Count(const std::string& of) {
    const int64_t next = Counter(of) + 1;
    data_->counters.Put(of, next, journal_);
    return next;
  }

  std::shared_ptr<MemoryData>& data_;
  Journal journal_;
  bool fails_ = false;
  absl::Status error_;
};

MemoryStorage::MemoryStorage()
    : data_(std::make_shared<MemoryData>()), writer_(std::make_unique<Writer>(data_)) {}

MemoryStorage::~MemoryStorage() = default;

StorageWriter& MemoryStorage::writer() { return *writer_; }

absl::StatusOr<std::unique_ptr<StorageReader>> MemoryStorage::Read() {
  return std::make_unique<Snapshot>(data_);
}

void MemoryStorage::FailNextCommit() { writer_->FailNextCommit(); }

void MemoryStorage::Crash() { writer_->RollBack(); }

}  // namespace lengthwise::server
