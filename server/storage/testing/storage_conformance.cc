#include "server/storage/testing/storage_conformance.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace lengthwise::server {

using testing::ElementsAre;
using testing::SizeIs;

ExperimentRecord StorageConformanceTest::Insert(const std::string& name, int trials) {
  EXPECT_TRUE(writer().Begin().ok());
  ExperimentRecord experiment;
  experiment.name = name;
  experiment.request_fingerprint = "fingerprint";
  experiment.owner = "owner";
  experiment.priority = 3;
  experiment.specification = std::string("\0binary", 7);
  experiment.create_time = absl::FromUnixSeconds(1000);
  experiment.counts.set_queued(trials);
  EXPECT_TRUE(writer().InsertExperiment(experiment).ok());
  PackRecord pack;
  pack.experiment = experiment.key;
  pack.pack_key = "key";
  pack.specification = "red";
  pack.shared = *writer().InsertShared(experiment.key, "sha");
  pack.task = "parity";
  EXPECT_TRUE(writer().InsertPack(pack).ok());
  std::vector<TrialRecord> records(trials);
  for (int i = 0; i < trials; ++i) {
    TrialRecord& trial = records[i];
    trial.experiment = experiment.key;
    trial.index = i;
    trial.id = absl::StrCat("trial", i);
    trial.pack = pack.key;
    trial.learning_rate = 0.1;
    trial.weight_seed = ~uint64_t{0} - i;
    trial.reason = "submitted";
  }
  EXPECT_TRUE(writer().InsertTrials(absl::MakeSpan(records)).ok());
  for (const TrialRecord& trial : records) {
    EXPECT_EQ((*writer().FindTrial(trial.key))->id, trial.id) << "the key that was told";
  }
  EXPECT_TRUE(writer().Commit().ok());
  return experiment;
}

TrialRecord StorageConformanceTest::Trial(const ExperimentRecord& experiment, int index) {
  const auto reader = storage_->Read();
  return **(*reader)->FindTrial(experiment.id, absl::StrCat("trial", index));
}

EventRecord StorageConformanceTest::Append(const TrialRecord& trial, int32_t attempt,
                                           int64_t sequence, int64_t step, int kind) {
  EventRecord event;
  event.experiment = trial.experiment;
  event.trial = trial.key;
  event.attempt = attempt;
  event.sequence = sequence;
  event.step = step;
  event.kind = kind;
  event.payload = absl::StrCat("payload ", sequence);
  EXPECT_TRUE(writer().AppendEvent(event).ok());
  return event;
}

void StorageConformanceTest::Change(TrialRecord& trial, v1::TrialState state) {
  const v1::TrialState previous = trial.state;
  trial.state = state;
  EXPECT_TRUE(writer().UpdateTrial(trial, previous).ok());
}

TEST_P(StorageConformanceTest, KeepsTheOrderOfManyTrials) {
  for (const int trials : {1, 29, 30, 31, 97}) {
    const ExperimentRecord experiment = Insert("many", trials);
    const auto reader = storage_->Read();
    const auto listed = (*reader)->ListTrials(experiment.key, 0, {}, 1000);
    ASSERT_THAT(*listed, SizeIs(trials));
    for (int i = 0; i < trials; ++i) {
      EXPECT_EQ((*listed)[i].id, absl::StrCat("trial", i));
      EXPECT_EQ((*listed)[i].weight_seed, ~uint64_t{0} - i);
      if (i > 0) {
        EXPECT_GT((*listed)[i].key, (*listed)[i - 1].key);
      }
    }
  }
}

TEST_P(StorageConformanceTest, KeepsCommittedData) {
  const ExperimentRecord experiment = Insert("sort", 2);
  EXPECT_EQ(experiment.id, "sort-1");
  Reopen();
  const auto reader = storage_->Read();
  const auto found = *(*reader)->FindExperiment("sort-1");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->specification, std::string("\0binary", 7));
  EXPECT_EQ(found->create_time, absl::FromUnixSeconds(1000));
  EXPECT_EQ(found->end_time, NoTime());
  EXPECT_EQ(found->counts.queued(), 2);
  const auto trial = *(*reader)->FindTrial("sort-1", "trial1");
  ASSERT_TRUE(trial.has_value());
  EXPECT_EQ(trial->learning_rate, 0.1);
  EXPECT_EQ(trial->weight_seed, ~uint64_t{0} - 1);
  EXPECT_EQ(trial->experiment_id, "sort-1");
  EXPECT_EQ((*(*reader)->FindPack(trial->pack))->specification, "shared");
  EXPECT_FALSE((*(*reader)->FindTrial("sort-1", "trial2")).has_value());
  EXPECT_FALSE((*(*reader)->FindExperiment("sort-2")).has_value());
}

TEST_P(StorageConformanceTest, DropsUncommittedTransactions) {
  Insert("sort", 1);
  ASSERT_TRUE(writer().Begin().ok());
  ExperimentRecord lost;
  lost.name = "sort";
  ASSERT_TRUE(writer().InsertExperiment(lost).ok());
  ASSERT_TRUE(writer().Begin().ok());  // rolls the open transaction back
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(Insert("sort", 1).id, "sort-2");
}

TEST_P(StorageConformanceTest, ReaderSeesOneSnapshot) {
  Insert("sort", 1);
  const auto reader = storage_->Read();
  ASSERT_THAT(*(*reader)->ListExperiments(0, "", 10), SizeIs(1));
  Insert("sort", 1);
  EXPECT_THAT(*(*reader)->ListExperiments(0, "", 10), SizeIs(1));
  EXPECT_THAT(*(*storage_->Read())->ListExperiments(0, "", 10), SizeIs(2));
  EXPECT_THAT(*(*storage_->Read())->ListExperiments(0, "owner", 10), SizeIs(2));
  EXPECT_THAT(*(*storage_->Read())->ListExperiments(0, "nobody", 10), SizeIs(0));
}

TEST_P(StorageConformanceTest, LastTrialEndsItsExperiment) {
  const ExperimentRecord experiment = Insert("sort", 2);
  TrialRecord first = Trial(experiment, 0);
  TrialRecord second = Trial(experiment, 1);
  ASSERT_TRUE(writer().Begin().ok());
  Change(first, v1::RUNNING);
  first.end_time = absl::FromUnixSeconds(2000);
  Change(first, v1::SUCCEEDED);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ((*(*storage_->Read())->FindExperiment("sort-1"))->end_time, NoTime());
  ASSERT_TRUE(writer().Begin().ok());
  second.end_time = absl::FromUnixSeconds(3000);
  Change(second, v1::CANCELLED);
  ASSERT_TRUE(writer().Commit().ok());
  const auto ended = *(*storage_->Read())->FindExperiment("sort-1");
  EXPECT_EQ(ended->end_time, absl::FromUnixSeconds(3000));
  EXPECT_EQ(ended->counts.queued() + ended->counts.running(), 0);
  EXPECT_EQ(ended->counts.succeeded(), 1);
  EXPECT_EQ((*storage_->Read())->TotalCounts()->cancelled(), 1);
}

TEST_P(StorageConformanceTest, OldestQueuedTrialWasQueuedFirst) {
  EXPECT_EQ(*(*storage_->Read())->OldestQueued(), NoTime());
  // The oldest by creation was queued again and is not the oldest queued.
  const ExperimentRecord experiment = Insert("sort", 3);
  ASSERT_TRUE(writer().Begin().ok());
  for (int i = 0; i < 3; ++i) {
    TrialRecord trial = Trial(experiment, i);
    Change(trial, v1::RUNNING);
    trial.queue_time = absl::FromUnixSeconds(5000 - 1000 * i);
    Change(trial, v1::QUEUED);
  }
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(*(*storage_->Read())->OldestQueued(), absl::FromUnixSeconds(3000));
  TrialRecord oldest = Trial(experiment, 2);
  EXPECT_EQ(oldest.queue_time, absl::FromUnixSeconds(3000));
  ASSERT_TRUE(writer().Begin().ok());
  Change(oldest, v1::RUNNING);
  ASSERT_TRUE(writer().Commit().ok());
  Reopen();
  EXPECT_EQ(*(*storage_->Read())->OldestQueued(), absl::FromUnixSeconds(4000));
}

TEST_P(StorageConformanceTest, CountsUnendedTrialsByOwner) {
  const ExperimentRecord first = Insert("sort", 3);
  Insert("sort", 2);
  const std::string owner = first.owner;
  EXPECT_EQ((*storage_->Read())->CountUnendedTrials(owner).value(), 5);
  TrialRecord trial = Trial(first, 0);
  ASSERT_TRUE(writer().Begin().ok());
  Change(trial, v1::RUNNING);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ((*storage_->Read())->CountUnendedTrials(owner).value(), 5);
  ASSERT_TRUE(writer().Begin().ok());
  Change(trial, v1::SUCCEEDED);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ((*storage_->Read())->CountUnendedTrials(owner).value(), 4);
  EXPECT_EQ((*storage_->Read())->CountUnendedTrials("nobody").value(), 0);
}

TEST_P(StorageConformanceTest, RequeuedTrialReopensItsExperiment) {
  TrialRecord trial = Trial(Insert("sort", 2), 0);
  TrialRecord other = Trial(*(*(*storage_->Read())->FindExperiment("sort-1")), 1);
  ASSERT_TRUE(writer().Begin().ok());
  for (TrialRecord* ended : {&trial, &other}) {
    ended->end_time = absl::FromUnixSeconds(2000);
    Change(*ended, v1::FAILED);
  }
  ASSERT_TRUE(writer().Commit().ok());
  ASSERT_TRUE(writer().Begin().ok());
  trial.end_time = NoTime();
  Change(trial, v1::QUEUED);
  ASSERT_TRUE(writer().Commit().ok());
  const auto again = *(*storage_->Read())->FindExperiment("sort-1");
  EXPECT_EQ(again->end_time, NoTime());
  EXPECT_EQ(again->counts.queued(), 1);
  EXPECT_EQ(again->counts.failed(), 1);
  ASSERT_TRUE(writer().Begin().ok());
  trial.end_time = absl::FromUnixSeconds(4000);
  Change(trial, v1::CANCELLED);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ((*(*storage_->Read())->FindExperiment("sort-1"))->end_time,
            absl::FromUnixSeconds(4000));
}

TEST_P(StorageConformanceTest, KeepsStateToRebuildAScheduler) {
  TrialRecord trial = Trial(Insert("sort", 1), 0);
  ASSERT_TRUE(writer().Begin().ok());
  trial.failures = 2;
  trial.failure = "disk full";
  trial.failure_step = 40;
  trial.losses = 2;
  trial.preemptions = 1;
  trial.pack_limit = 8;
  Change(trial, v1::RUNNING);
  ASSERT_TRUE(writer().InsertLease({.token = 1, .worker = "w", .size = 16}).ok());
  ASSERT_TRUE(writer().Commit().ok());
  Reopen();
  int trials = 0;
  const auto reader = *storage_->Read();
  ASSERT_TRUE(reader
                  ->ForEachUnendedTrial([&](const TrialRecord& kept, const TrialPlacement& place) {
                    ++trials;
                    EXPECT_EQ(kept.failures, 2);
                    EXPECT_EQ(kept.failure, "disk full");
                    EXPECT_EQ(kept.failure_step, 40);
                    EXPECT_EQ(kept.losses, 2);
                    EXPECT_EQ(kept.preemptions, 1);
                    EXPECT_EQ(kept.pack_limit, 8);
                    EXPECT_EQ(place.priority, 3);
                    EXPECT_EQ(place.owner, "owner");
                    EXPECT_EQ(place.pack_key, "key");
                    EXPECT_EQ(place.pack_bytes, 6) << "those of \"shared\"";
                  })
                  .ok());
  EXPECT_EQ(trials, 1);
  EXPECT_EQ((*reader->ListLeases())[0].size, 16);
}

TEST_P(StorageConformanceTest, KeepsHoldsUntilTheyAreDeleted) {
  ASSERT_TRUE(writer().Begin().ok());
  for (const HoldRecord& hold : {HoldRecord{"w2", "drained"}, {"", "paused"}, {"w1", "drained"}}) {
    ASSERT_TRUE(writer().PutHold(hold).ok());
  }
  ASSERT_TRUE(writer().PutHold({.worker = "w2", .why = "drained by ada"}).ok());
  ASSERT_TRUE(writer().DeleteHold("w1").ok());
  ASSERT_TRUE(writer().DeleteHold("unknown").ok());
  ASSERT_TRUE(writer().Commit().ok());
  const auto holds = *(*storage_->Read())->ListHolds();
  ASSERT_THAT(holds, SizeIs(2));
  EXPECT_EQ(holds[0].worker, "");
  EXPECT_EQ(holds[0].why, "paused");
  EXPECT_EQ(holds[1].worker, "w2");
  EXPECT_EQ(holds[1].why, "drained by ada");
}

TEST_P(StorageConformanceTest, ExtensionReopensTheExperiment) {
  ExperimentRecord experiment = Insert("sort", 1);
  TrialRecord ended = Trial(experiment, 0);
  ASSERT_TRUE(writer().Begin().ok());
  ended.end_time = absl::FromUnixSeconds(2000);
  Change(ended, v1::CANCELLED);
  ASSERT_TRUE(writer().Commit().ok());
  ASSERT_TRUE(writer().Begin().ok());
  experiment.specification = "longer";
  ASSERT_TRUE(writer().ExtendExperiment(experiment, 1).ok());
  TrialRecord added;
  added.experiment = experiment.key;
  added.index = 1;
  added.id = "trial1";
  added.pack = ended.pack;
  ASSERT_TRUE(writer().InsertTrials({&added, 1}).ok());
  ASSERT_TRUE(writer().Commit().ok());
  const auto extended = *(*storage_->Read())->FindExperiment("sort-1");
  EXPECT_EQ(extended->specification, "longer");
  EXPECT_EQ(extended->end_time, NoTime());
  EXPECT_EQ(extended->counts.queued(), 1);
  EXPECT_EQ(extended->counts.cancelled(), 1);
  // It ends again with its last trial.
  ASSERT_TRUE(writer().Begin().ok());
  added.end_time = absl::FromUnixSeconds(3000);
  Change(added, v1::CANCELLED);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ((*(*storage_->Read())->FindExperiment("sort-1"))->end_time,
            absl::FromUnixSeconds(3000));
}

TEST_P(StorageConformanceTest, NewOwnerHasTheExperiment) {
  const ExperimentRecord experiment = Insert("sort", 3);
  ASSERT_TRUE(writer().Begin().ok());
  ASSERT_TRUE(writer().ChangeOwner(experiment.key, "grace").ok());
  ASSERT_TRUE(writer().Commit().ok());
  const auto reader = *storage_->Read();
  EXPECT_EQ((*reader->FindExperiment("sort-1"))->owner, "grace");
  EXPECT_EQ(reader->ListExperiments(0, "grace", 10)->size(), 1u);
  EXPECT_EQ(*reader->CountUnendedTrials("grace"), 3);
}

TEST_P(StorageConformanceTest, ListsPacksOfAnExperiment) {
  const ExperimentRecord experiment = Insert("sort", 1);
  Insert("sort", 1);
  ASSERT_TRUE(writer().Begin().ok());
  PackRecord pack;
  pack.experiment = experiment.key;
  pack.pack_key = "other";
  ASSERT_TRUE(writer().InsertPack(pack).ok());
  ASSERT_TRUE(writer().Commit().ok());
  const auto packs = *(*storage_->Read())->ListPacks(experiment.key);
  ASSERT_THAT(packs, SizeIs(2));
  EXPECT_EQ(packs[0].task, "parity");
  EXPECT_EQ(packs[1].pack_key, "other");
  EXPECT_EQ(packs[1].key, pack.key);
  const auto keys = *(*storage_->Read())->PackKeys(experiment.key);
  EXPECT_EQ(keys.size(), 2);
  EXPECT_EQ(keys.at("other"), pack.key);
}

TEST_P(StorageConformanceTest, SequenceNumberIsStoredOnce) {
  const TrialRecord trial = Trial(Insert("sort", 1), 0);
  ASSERT_TRUE(writer().Begin().ok());
  Append(trial, 1, 1, 10, v1::Event::kTrainingPoints);
  Append(trial, 1, 2, 20, v1::Event::kTrainingPoints);
  Append(trial, 2, 1, 10, v1::Event::kTrainingPoints);
  Append(trial, 1, 0, 0, v1::Event::kStateChange);
  Append(trial, 1, 0, 0, v1::Event::kStateChange);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(*(*storage_->Read())->LastSequence(trial.key, 1), 2);
  ASSERT_TRUE(writer().Begin().ok());
  EventRecord twice;
  twice.experiment = trial.experiment;
  twice.trial = trial.key;
  twice.attempt = 1;
  twice.sequence = 2;
  EXPECT_FALSE(writer().AppendEvent(twice).ok());
  EXPECT_FALSE(writer().Commit().ok());
}

TEST_P(StorageConformanceTest, NeverReusesPositionsOfDeletedEvents) {
  const ExperimentRecord experiment = Insert("sort", 2);
  const TrialRecord trial = Trial(experiment, 0);
  ASSERT_TRUE(writer().Begin().ok());
  const EventRecord checkpoint = Append(trial, 1, 1, 10, v1::Event::kCheckpoint);
  Append(trial, 1, 2, 10, v1::Event::kLengthAccuracies);
  Append(trial, 1, 0, 0, v1::Event::kStateChange);
  Append(Trial(experiment, 1), 1, 1, 10, v1::Event::kLengthAccuracies);
  const EventRecord last = Append(trial, 1, 3, 20, v1::Event::kTrainingPoints);
  Append(trial, 1, 4, 20, v1::Event::kLogLine);  // kept: it explains what went wrong
  ASSERT_TRUE(writer().DeleteWorkerEvents(trial.key, checkpoint.position).ok());
  EXPECT_GT(Append(trial, 2, 1, 20, v1::Event::kTrainingPoints).position, last.position);
  ASSERT_TRUE(writer().Commit().ok());
  std::vector<std::string> kept;
  ASSERT_TRUE((*storage_->Read())
                  ->ForEachEvent(experiment.key, 0, 0, /*log_only=*/false,
                                 [&](const EventRecord& event, absl::string_view id) {
                                   kept.push_back(
                                       absl::StrCat(id, " ", event.attempt, ".", event.sequence));
                                   return true;
                                 })
                  .ok());
  EXPECT_THAT(kept,
              ElementsAre("trial0 1.1", "trial0 1.0", "trial1 1.1", "trial0 1.4", "trial0 2.1"));
}

TEST_P(StorageConformanceTest, ReadsEventsAndLogInOrder) {
  const ExperimentRecord experiment = Insert("sort", 2);
  const TrialRecord trial = Trial(experiment, 0);
  const TrialRecord other = Trial(experiment, 1);
  ASSERT_TRUE(writer().Begin().ok());
  // All kinds there are, not in their numeric order.
  std::vector<int> kinds;
  const auto& facts = *v1::Event::descriptor()->FindOneofByName("fact");
  for (int i = 0; i < facts.field_count(); ++i) {
    const int kind = facts.field(i)->number();
    kinds.insert(i % 2 == 0 ? kinds.begin() : kinds.end(), kind);
  }
  std::vector<int64_t> of_trial, log_of_trial, log;
  int64_t second = 0;
  int64_t sequence = 0;
  for (int round = 0; round < 3; ++round) {
    for (const int kind : kinds) {
      const EventRecord event = Append(trial, 1, ++sequence, 5, kind);
      of_trial.push_back(event.position);
      const EventRecord others = Append(other, 1, sequence, 5, kind);
      if (round == 1 && kind == kinds[0]) second = event.position;
      if (kind == v1::Event::kStateChange || kind == v1::Event::kLogLine) {
        log_of_trial.push_back(event.position);
        log.push_back(event.position);
        log.push_back(others.position);
      }
    }
  }
  const int64_t last = Append(other, 1, 100, 5, v1::Event::kTrainingPoints).position;
  ASSERT_TRUE(writer().Commit().ok());
  const auto reader = *storage_->Read();
  std::vector<int64_t> read;
  const auto take = [&](const EventRecord& event, absl::string_view id) {
    if (event.trial == trial.key) {
      EXPECT_EQ(id, trial.id);
    }
    read.push_back(event.position);
    return true;
  };
  ASSERT_TRUE(reader->ForEachEvent(0, trial.key, 0, /*log_only=*/false, take).ok());
  EXPECT_EQ(read, of_trial);
  read.clear();
  ASSERT_TRUE(reader->ForEachEvent(0, trial.key, second, /*log_only=*/false, take).ok());
  EXPECT_EQ(read, std::vector<int64_t>(of_trial.begin() + facts.field_count(), of_trial.end()));
  read.clear();
  ASSERT_TRUE(reader->ForEachEvent(experiment.key, trial.key, 0, /*log_only=*/true, take).ok());
  EXPECT_EQ(read, log_of_trial);
  read.clear();
  ASSERT_TRUE(reader->ForEachEvent(experiment.key, 0, log[1], /*log_only=*/true, take).ok());
  EXPECT_EQ(read, std::vector<int64_t>(log.begin() + 1, log.end()));
  EXPECT_EQ(*reader->LastPosition(), last);
}

TEST_P(StorageConformanceTest, RemembersWhichExperimentsWereDeleted) {
  const ExperimentRecord first = Insert("sort", 1);
  const ExperimentRecord second = Insert("sort", 1);
  ASSERT_TRUE(writer().Begin().ok());
  ASSERT_TRUE(writer().DeleteExperiment(first.key).ok());
  ASSERT_TRUE(writer().Commit().ok());
  const auto reader = *storage_->Read();
  EXPECT_TRUE(*reader->WasDeleted("sort-1"));
  // Existing; not created yet; never created; not an id.
  for (const char* id : {"sort-2", "sort-3", "other-1", "sort", "sort-0", ""}) {
    EXPECT_FALSE(*reader->WasDeleted(id)) << id;
  }
}

TEST_P(StorageConformanceTest, RemembersRequestsOfDeletedExperiments) {
  ExperimentRecord experiment;
  experiment.name = "sort";
  experiment.request_id = "r";
  experiment.request_fingerprint = "f";
  EXPECT_FALSE((*(*storage_->Read())->FindRequest("r")).has_value());
  ASSERT_TRUE(writer().Begin().ok());
  ASSERT_TRUE(writer().InsertExperiment(experiment).ok());
  ASSERT_TRUE(writer().DeleteExperiment(experiment.key).ok());
  ASSERT_TRUE(writer().Commit().ok());
  Reopen();
  const auto found = *(*storage_->Read())->FindRequest("r");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->fingerprint, "f");
  EXPECT_EQ(found->experiment_id, "sort-1");
  EXPECT_TRUE(found->is_deleted);
}

TEST_P(StorageConformanceTest, LeaseKeyStays) {
  const LeaseKey key = storage_->lease_key();
  EXPECT_GE(key.key.size(), 16u);
  EXPECT_EQ(key.first_token, 1);
  Reopen();
  EXPECT_EQ(storage_->lease_key().key, key.key);
  EXPECT_EQ(storage_->lease_key().first_token, 1);
}

TEST_P(StorageConformanceTest, CountsAndMeasuresEvents) {
  const ExperimentRecord experiment = Insert("sort", 1);
  const TrialRecord trial = Trial(experiment, 0);
  ASSERT_TRUE(writer().Begin().ok());
  int64_t bytes = 0;
  std::vector<EventRecord> events;
  for (int64_t sequence = 1; sequence <= 5; ++sequence) {
    events.push_back(Append(trial, sequence < 5 ? 1 : 2, sequence, 10, v1::Event::kLogLine));
    bytes += static_cast<int64_t>(events.back().payload.size());
  }
  Append(trial, 1, 0, 10, v1::Event::kLogLine);  // an event of the server
  ASSERT_TRUE(writer().Commit().ok());
  const auto reader = *storage_->Read();
  EXPECT_EQ(*reader->CountWorkerEvents(trial.key, 1, v1::Event::kLogLine), 4);
  EXPECT_EQ(*reader->CountWorkerEvents(trial.key, 1, v1::Event::kTrainingPoints), 0);
  const int64_t first = events.front().position;
  EXPECT_EQ(*reader->CountEvents(experiment.key, first, events.back().position), 5);
  EXPECT_EQ(*reader->EventBytes(experiment.key, first, events.back().position), bytes);
  EXPECT_EQ(*reader->CountEvents(experiment.key, first + 1, first + 1), 1);
  EXPECT_EQ(*reader->EventBytes(experiment.key, first + 1, first + 1),
            static_cast<int64_t>(events[1].payload.size()));
  EXPECT_EQ(*reader->EventBytes(experiment.key + 1, 0, events.back().position), 0);
}

TEST_P(StorageConformanceTest, FindsTheNewestEventsOfAKind) {
  const TrialRecord trial = Trial(Insert("sort", 1), 0);
  ASSERT_TRUE(writer().Begin().ok());
  for (int64_t sequence = 1; sequence <= 4; ++sequence) {
    Append(trial, 1, sequence, sequence * 10,
           sequence % 2 == 0 ? v1::Event::kCheckpoint : v1::Event::kTrainingPoints);
  }
  ASSERT_TRUE(writer().Commit().ok());
  const auto newest = *(*storage_->Read())->NewestEvents(trial.key, v1::Event::kCheckpoint, 5);
  ASSERT_THAT(newest, SizeIs(2));
  EXPECT_EQ(newest[0].step, 40);
  EXPECT_EQ(newest[1].step, 20);
}

TEST_P(StorageConformanceTest, TokensAscendAfterLeasesAreDeleted) {
  EXPECT_EQ(*(*storage_->Read())->NextToken(), 1);
  ASSERT_TRUE(writer().Begin().ok());
  for (const int64_t token : {1, 2}) {
    ASSERT_TRUE(writer().InsertLease({.token = token, .worker = "w"}).ok());
    ASSERT_TRUE(writer().DeleteLease(token, NoTime()).ok());
  }
  ASSERT_TRUE(writer().Commit().ok());
  Reopen();
  EXPECT_EQ(*(*storage_->Read())->NextToken(), 3);
  EXPECT_THAT(*(*storage_->Read())->ListLeases(), SizeIs(0));
}

TEST_P(StorageConformanceTest, DeletesAnExperimentCompletely) {
  const ExperimentRecord deleted = Insert("sort", 2);
  const ExperimentRecord other = Insert("sort", 1);
  const TrialRecord gone = Trial(deleted, 0);
  ASSERT_TRUE(writer().Begin().ok());
  Append(gone, 1, 1, 10, v1::Event::kTrainingPoints);
  Append(Trial(other, 0), 1, 1, 10, v1::Event::kTrainingPoints);
  ASSERT_TRUE(writer().DeleteExperiment(deleted.key).ok());
  ASSERT_TRUE(writer().Commit().ok());
  {
    const auto reader = storage_->Read();
    EXPECT_FALSE((*(*reader)->FindExperiment("sort-1")).has_value());
    EXPECT_FALSE((*(*reader)->FindTrial("sort-1", gone.id)).has_value());
    EXPECT_FALSE((*(*reader)->FindTrial(gone.key)).has_value());
    EXPECT_THAT(*(*reader)->ListExperiments(0, "", 10), SizeIs(1));
    EXPECT_EQ((*reader)->TotalCounts()->queued(), 1);
  }
  while (*writer().CleanUp()) {
  }
  const auto reader = storage_->Read();
  EXPECT_THAT(*(*reader)->ListTrials(deleted.key, 0, {}, 10), SizeIs(0));
  EXPECT_THAT(*(*reader)->ListTrials(other.key, 0, {}, 10), SizeIs(1));
  EXPECT_EQ(*(*reader)->LastSequence(Trial(other, 0).key, 1), 1);
}

}  // namespace lengthwise::server
