// What stays of trials, what it takes on the disk, and copies of all of it.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/log_limits.h"
#include "server/coordination/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class CoordinatorHousekeepingTest : public testing::Test {
 protected:
  CoordinatorHousekeepingTest() : coordinator_(NewDirectory()) {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  static std::string NewDirectory(const std::string& suffix = "") {
    const std::string path = testing::TempDir() + "/housekeeping_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() + suffix;
    std::filesystem::remove_all(path);
    return path;
  }

  std::string Create(const std::string& keep, int seeds = 1) {
    v1::CreateExperimentRequest request;
    v1::ExperimentSpecification& specification = *request.mutable_specification();
    specification.set_name("sort");
    specification.add_learning_rates(0.001);
    for (int seed = 0; seed < seeds; ++seed) specification.add_seeds(seed);
    specification.mutable_training()->set_steps(100);
    specification.set_keep(keep);
    const auto response = coordinator_.TryCreate(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response->experiment().name();
  }

  // Uploads and sends checkpoints of steps 10, 20, 30.
  void Train(const v1::Lease& lease) {
    for (int64_t sequence = 1; sequence <= 3; ++sequence) {
      const std::string bytes = absl::StrCat("checkpoint ", sequence);
      ASSERT_EQ(coordinator_.Upload(lease, 0, 10 * sequence, bytes), absl::OkStatus());
      ASSERT_EQ(
          coordinator_.Send(lease, {CheckpointEvent(lease, 0, sequence, 10 * sequence, bytes)})
              ->acknowledged_sequence(),
          sequence);
    }
  }
  void End(const v1::Lease& lease, v1::Outcome::Kind kind, int64_t sequence = 4) {
    ASSERT_EQ(
        coordinator_.Send(lease, {OutcomeEvent(lease, 0, sequence, 30, kind, "x")})->refusal(), 0);
  }

  // What the artifacts on the disk say, of all trials.
  static std::vector<std::string> Artifacts(const std::string& data_dir) {
    std::vector<std::string> contents;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(data_dir + "/artifacts")) {
      if (entry.path().extension() != ".safetensors") continue;
      std::ifstream file(entry.path());
      contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return contents;
  }
  std::vector<std::string> Artifacts() { return Artifacts(coordinator_.data_dir()); }

  TestCoordinator coordinator_;
};

TEST_F(CoordinatorHousekeepingTest, TheLastTwoCheckpointsOfARunningTrialAreKept) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoordinatorHousekeepingTest, OfATrialThatSucceededItsModelStays) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_THAT(Artifacts(), ElementsAre("checkpoint 3"));
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial(experiment + "/trials/lr0-seed0");
  EXPECT_TRUE(coordinator_.Evaluate(evaluate).ok());
}

TEST_F(CoordinatorHousekeepingTest, OfATrialThatFailedWhatARetryNeedsStays) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoordinatorHousekeepingTest, AllKeepsTheCheckpointBeforeTheLastToo) {
  Create("all");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoordinatorHousekeepingTest, NothingFreesTheDiskWhenATrialEndsAndSaysSo) {
  const std::string experiment = Create("nothing", 2);
  for (const auto kind : {v1::Outcome::COMPLETED, v1::Outcome::FAILED_PERMANENTLY}) {
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    EXPECT_THAT(Artifacts(), SizeIs(2)) << "while it runs";
    End(lease, kind);
    EXPECT_THAT(Artifacts(), IsEmpty());
    EXPECT_EQ(coordinator_->GetTrial(lease.trials(0).trial())->checkpoint_step(), 0);
  }
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial(experiment + "/trials/lr0-seed0");
  const absl::Status status = coordinator_.Evaluate(evaluate).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stored no model"));
}

TEST_F(CoordinatorHousekeepingTest, DiskUseCountsWhatIsThereAndDeletingFreesIt) {
  const std::string experiment = Create("weights");
  v1::DiskUse use = coordinator_->GetExperiment(experiment)->disk_use();
  EXPECT_EQ(use.artifacts(), 0);
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  for (int64_t sequence = 4; sequence < 20; ++sequence) {
    coordinator_.Send(lease, {PointsEvent(lease, 0, sequence, 30 + sequence)}).IgnoreError();
    use = coordinator_->GetExperiment(experiment)->disk_use();
    EXPECT_EQ(use.events(), static_cast<int64_t>(coordinator_.History(experiment).size()));
  }
  EXPECT_EQ(use.artifacts(), 2);
  EXPECT_GT(use.artifact_bytes(), 2 * static_cast<int64_t>(std::string("checkpoint 2").size()));
  EXPECT_GT(use.event_bytes(), 16 * 10);
  // The next attempt goes on from step 30 and forgets the points behind.
  coordinator_.Release("w", lease);
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_THAT(next.trials(), SizeIs(1));
  const v1::DiskUse less = coordinator_->GetExperiment(experiment)->disk_use();
  EXPECT_EQ(less.events(), static_cast<int64_t>(coordinator_.History(experiment).size()));
  EXPECT_LT(less.event_bytes(), use.event_bytes());

  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_THAT(Artifacts(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(coordinator_->GetExperiment(experiment).status()));
}

v1::Event LogLine(const v1::Lease& lease, int64_t sequence, const std::string& text) {
  v1::Event event = PointsEvent(lease, 0, sequence, 1);
  event.mutable_log_line()->set_severity(v1::LogLine::ERROR);
  event.mutable_log_line()->set_text(text);
  return event;
}

std::vector<std::string> Log(CoordinatorImpl& coordinator, const std::string& name) {
  std::vector<std::string> log;
  int64_t start = 0;
  for (bool at_end = false; !at_end;) {
    const auto page = coordinator.ReadLog(name, start, 3);
    if (!page.ok()) return {std::string(page.status().message())};
    for (const v1::Event& event : page->events) {
      log.push_back(event.has_log_line() ? event.log_line().text()
                                         : v1::TrialState_Name(event.state_change().to()));
    }
    start = page->next_position;
    at_end = page->at_end;
  }
  return log;
}

TEST_F(CoordinatorHousekeepingTest, ATrialsLogOutlivesItsAttemptsAndTheServer) {
  const std::string experiment = Create("weights", 2);
  const std::string name = experiment + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(lease.trials(0).trial(), name);
  coordinator_
      .Send(lease, {PointsEvent(lease, 0, 1, 10), LogLine(lease, 2, "out of memory"),
                    OutcomeEvent(lease, 0, 3, 10, v1::Outcome::FAILED_TEMPORARILY, "memory")})
      .IgnoreError();
  coordinator_.Advance(absl::Minutes(10));  // the back-off
  ASSERT_EQ(coordinator_.Register("w", 2), absl::OkStatus());
  const v1::Lease other = coordinator_.Acquire("w");
  ASSERT_THAT(other.trials(), SizeIs(2)) << "both are leased again";
  EXPECT_THAT(Log(*coordinator_, name),
              ElementsAre("RUNNING", "out of memory", "QUEUED", "RUNNING"));
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_THAT(Log(*coordinator_, name),
              ElementsAre("RUNNING", "out of memory", "QUEUED", "RUNNING"));
  // The points of the first attempt are gone: they come again.
  for (const v1::Event& event : coordinator_.History(name)) {
    EXPECT_EQ(event.trial(), name);
    EXPECT_FALSE(event.has_training_points());
  }
  // The experiment's log has those of both, and passes over the rest once.
  EXPECT_THAT(Log(*coordinator_, experiment), SizeIs(5));
  const int64_t next = coordinator_->ReadLog(experiment, 0, 100)->next_position;
  EXPECT_EQ(next, coordinator_.History(experiment).back().position() + 1);
}

TEST_F(CoordinatorHousekeepingTest, AnAttemptWithoutMeasureInItsLogIsRefused) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  int64_t sequence = 0;
  std::vector<v1::Event> lines;
  for (int64_t i = 0; i < kMaxLogLines; ++i) lines.push_back(LogLine(lease, ++sequence, "line"));
  EXPECT_EQ(coordinator_.Send(lease, lines)->refusal(), 0);
  EXPECT_EQ(coordinator_.Send(lease, {PointsEvent(lease, 0, ++sequence, 1)})->refusal(), 0);
  const auto refused = coordinator_.Send(lease, {LogLine(lease, ++sequence, "one more")});
  EXPECT_EQ(refused->refusal(), v1::StreamEventsResponse::INVALID);
  EXPECT_THAT(refused->detail(), HasSubstr(absl::StrCat(kMaxLogLines, " log lines")));
  EXPECT_EQ(
      coordinator_.Send(lease, {LogLine(lease, sequence, std::string(1 << 20, 'x'))})->refusal(),
      v1::StreamEventsResponse::INVALID);
}

TEST_F(CoordinatorHousekeepingTest, ABackupMadeWhileEventsComeHasAllThatWasAcknowledgedBefore) {
  const std::string experiment = Create("weights", 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  std::atomic<int64_t> acknowledged = 3;
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    for (int64_t sequence = 4; !stop; ++sequence) {
      // A checkpoint now and then: the older ones are to be deleted while the backup is made.
      if (sequence % 10 == 0) {
        const std::string bytes = absl::StrCat("checkpoint at ", sequence);
        coordinator_.Upload(lease, 0, sequence, bytes).IgnoreError();
        coordinator_.Send(lease, {CheckpointEvent(lease, 0, sequence, sequence, bytes)})
            .IgnoreError();
      } else {
        coordinator_.Send(lease, {PointsEvent(lease, 0, sequence, sequence)}).IgnoreError();
      }
      acknowledged = sequence;
    }
  });
  while (acknowledged < 50) std::this_thread::yield();
  const int64_t before = acknowledged;
  // Who may call belongs to it: a restored server must not be open to everyone.
  ASSERT_EQ(platform::WriteFileAtomically(coordinator_.data_dir() + "/tokens", "tokens"),
            absl::OkStatus());
  v1::BackUpRequest request;
  request.set_name("b");
  std::vector<v1::BackUpResponse> told;
  ASSERT_EQ(coordinator_->BackUp(request,
                                 [&](const v1::BackUpResponse& response) {
                                   // The worker goes on in the middle of it.
                                   const int64_t now = acknowledged;
                                   while (acknowledged < now + 25) std::this_thread::yield();
                                   told.push_back(response);
                                   return true;
                                 }),
            absl::OkStatus());
  stop = true;
  worker.join();
  const std::string path = coordinator_.data_dir() + "/backups/b";
  EXPECT_TRUE(told.back().complete());
  EXPECT_EQ(told.back().path(), path);
  EXPECT_EQ(told.back().copied_bytes(), told.back().total_bytes());
  EXPECT_EQ(told.back().copied_bytes(), coordinator_->GetStorage()->backups(0).bytes());
  EXPECT_THAT(Artifacts(), SizeIs(2)) << "what waited to be deleted is gone";
  EXPECT_EQ(coordinator_->BackUp(request, [](const auto&) { return true; }).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(coordinator_->GetStorage()->backups_size(), 1);

  const std::string restored = NewDirectory("_restored");
  Coordinator::Options options;
  options.data_dir = restored;
  options.restore_from = path;
  CoordinatorImpl::Dependencies dependencies;
  dependencies.resolve = ResolveSimply;
  {
    auto opened = CoordinatorImpl::Open(options, dependencies);
    ASSERT_TRUE(opened.ok()) << opened.status();
  }
  EXPECT_EQ(platform::ReadFile(restored + "/tokens").value_or("none"), "tokens");
  EXPECT_EQ(std::filesystem::status(restored + "/tokens").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  TestCoordinator copy(restored);
  ASSERT_EQ(copy.Open(), absl::OkStatus());
  int64_t stored = 0;
  for (const v1::Event& event : copy.History(lease.trials(0).trial())) {
    if (event.sequence() > 0) {
      EXPECT_EQ(event.sequence(), ++stored);
    }
  }
  EXPECT_GE(stored, before);
  EXPECT_LT(stored, acknowledged) << "one moment, not the end";

  // The experiment goes on to its end, from a checkpoint.
  ASSERT_EQ(copy.Register("w2", 2), absl::OkStatus());
  copy.Advance(absl::Minutes(10));
  ASSERT_EQ(copy.Register("w2", 2), absl::OkStatus());
  for (v1::Lease next = copy.Acquire("w2"); next.trials_size() > 0; next = copy.Acquire("w2")) {
    EXPECT_GT(next.fencing_token(), lease.fencing_token() + 1'000'000);
    if (next.trials(0).trial() == lease.trials(0).trial()) {
      EXPECT_GE(next.trials(0).checkpoint_step(), 30);
      EXPECT_EQ(copy.Send(lease, {PointsEvent(lease, 0, stored + 1, 1)})->refusal(),
                v1::StreamEventsResponse::STALE_LEASE);
    }
    for (int trial = 0; trial < next.trials_size(); ++trial) {
      EXPECT_TRUE(copy.Complete(next, trial, 100, {1.0}));
    }
  }
  EXPECT_EQ(copy->GetExperiment(experiment)->trials().succeeded(), 2);
  // A watcher that was ahead of the backup misses nothing of what comes.
  EXPECT_GT(copy.History(experiment).back().position(),
            coordinator_.History(experiment).back().position());
}

TEST_F(CoordinatorHousekeepingTest, ABackupThatIsGivenUpLeavesNothing) {
  v1::BackUpRequest request;
  request.set_name("b");
  EXPECT_TRUE(absl::IsCancelled(
      coordinator_->BackUp(request, [](const v1::BackUpResponse&) { return false; })));
  EXPECT_TRUE(std::filesystem::is_empty(coordinator_.data_dir() + "/backups"));
  for (const char* name : {"../b", "B", ".b", "a/b", "-b"}) {
    request.set_name(name);
    EXPECT_TRUE(absl::IsInvalidArgument(
        coordinator_->BackUp(request, [](const v1::BackUpResponse&) { return true; })))
        << name;
  }
}

TEST_F(CoordinatorHousekeepingTest, OneBackupAtATime) {
  v1::BackUpRequest request;
  int asked = 0;
  EXPECT_EQ(coordinator_->BackUp(request,
                                 [&](const v1::BackUpResponse&) {
                                   v1::BackUpRequest another;
                                   another.set_name("another");
                                   if (++asked == 1) {
                                     EXPECT_TRUE(absl::IsAborted(coordinator_->BackUp(
                                         another, [](const auto&) { return true; })));
                                   }
                                   return true;
                                 }),
            absl::OkStatus());
  EXPECT_GE(asked, 1);
}

TEST_F(CoordinatorHousekeepingTest, ADamagedBackupIsRefusedByTheNameOfItsFileAndNothingIsMade) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  v1::BackUpRequest request;
  request.set_name("b");
  ASSERT_EQ(coordinator_->BackUp(request, [](const auto&) { return true; }), absl::OkStatus());
  const std::string backup = coordinator_.data_dir() + "/backups/b";
  const std::string artifact = absl::StrCat(backup, "/artifacts/sort-1/lr0-seed0/",
                                            platform::Sha256Hex("checkpoint 3"), ".safetensors");
  const auto restore = [&](const std::string& from, const std::string& to) {
    Coordinator::Options options;
    options.data_dir = to;
    options.restore_from = from;
    CoordinatorImpl::Dependencies dependencies;
    dependencies.resolve = ResolveSimply;
    return CoordinatorImpl::Open(options, dependencies).status();
  };
  const std::string target = NewDirectory("_restored");
  EXPECT_TRUE(absl::IsNotFound(restore(backup + "_none", target)));
  EXPECT_TRUE(absl::IsFailedPrecondition(restore(backup, coordinator_.data_dir())));

  // Each copy with another damage.
  const auto damaged = [&](const std::string& what,
                           const std::function<void(const std::string&)>& damage) {
    const std::string copy = NewDirectory("_" + what);
    std::filesystem::copy(backup, copy, std::filesystem::copy_options::recursive);
    const std::string file = what == "artifact" || what == "missing"
                                 ? copy + artifact.substr(backup.size())
                             : what == "database" ? copy + "/lengthwise.db"
                                                  : copy + "/manifest.json";
    damage(file);
    const absl::Status status = restore(copy, target);
    EXPECT_TRUE(absl::IsDataLoss(status)) << what << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    EXPECT_FALSE(std::filesystem::exists(target));
    EXPECT_FALSE(std::filesystem::exists(target + ".restoring"));
  };
  const auto overwrite = [](const std::string& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(8);
    stream << "X";
  };
  damaged("artifact", overwrite);
  damaged("database", overwrite);
  damaged("missing", [](const std::string& file) { std::filesystem::remove(file); });
  damaged("manifest", [](const std::string& file) { std::ofstream(file) << "{\"format\": 1}"; });
  damaged("escape", [](const std::string& file) {
    std::ifstream in(file);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    text.replace(text.find("\"sort-1\""), 8, "\"../../../x\"");
    std::ofstream(file) << text;
  });
  EXPECT_EQ(restore(backup, target), absl::OkStatus()) << "the undamaged one is good";
}

TEST_F(CoordinatorHousekeepingTest, WhatADeletedExperimentLeftIsDeletedAtTheNextStart) {
  const std::string artifacts = coordinator_.data_dir() + "/artifacts/";
  const std::string experiment = Create("weights");
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  // As if the server had died before it could delete them; and what is not of this database.
  for (const char* id : {"sort-1", "sort-2", "other-1"}) {
    std::filesystem::create_directories(artifacts + id + "/trial");
  }
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(artifacts + "sort-1"));
  EXPECT_TRUE(std::filesystem::exists(artifacts + "sort-2/trial"));
  EXPECT_TRUE(std::filesystem::exists(artifacts + "other-1/trial"));
}

// A server that dies after the commit of a trial's end deletes nothing: its files are put back.
TEST_F(CoordinatorHousekeepingTest,
       CheckpointsOfEndedTrialsThatShouldBeGoneAreDeletedAtTheNextStart) {
  for (const auto& [keep, kind, stays] :
       std::vector<std::tuple<std::string, v1::Outcome::Kind, std::vector<std::string>>>{
           {"weights", v1::Outcome::COMPLETED, {"checkpoint 3"}},
           {"all", v1::Outcome::COMPLETED, {"checkpoint 2", "checkpoint 3"}},
           {"weights", v1::Outcome::FAILED_PERMANENTLY, {"checkpoint 2", "checkpoint 3"}},
           {"nothing", v1::Outcome::COMPLETED, {}}}) {
    const std::string experiment = Create(keep, 2);
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    coordinator_.Upload(lease, 0, 40, "not told of").IgnoreError();
    const std::string artifacts = coordinator_.data_dir() + "/artifacts";
    const std::string copy = coordinator_.data_dir() + "/copy";
    std::filesystem::copy(artifacts, copy, std::filesystem::copy_options::recursive);
    End(lease, kind);
    const v1::Lease running = coordinator_.Acquire("w");
    coordinator_.Close();
    std::filesystem::remove_all(artifacts);
    std::filesystem::rename(copy, artifacts);
    EXPECT_THAT(Artifacts(), SizeIs(3));

    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_THAT(Artifacts(), testing::UnorderedElementsAreArray(stays)) << keep;
    // What a trial that runs has uploaded and not told of yet stays.
    ASSERT_EQ(coordinator_.Upload(running, 0, 10, "of the other"), absl::OkStatus());
    coordinator_.Close();
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_THAT(Artifacts(), SizeIs(stays.size() + 1));
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
    End(running, v1::Outcome::COMPLETED, 1);
    ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
    EXPECT_THAT(Artifacts(), IsEmpty());
  }
}

TEST_F(CoordinatorHousekeepingTest, WhatAnInterruptedBackupLeftIsDeletedAtTheNextStart) {
  const std::string left = coordinator_.data_dir() + "/backups/.unfinished-b";
  std::filesystem::create_directories(left);
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(left));
}

// What ReadModel gives: the bytes, or the error.
absl::StatusOr<std::string> Model(Coordinator& coordinator, const std::string& trial,
                                  int64_t* step = nullptr) {
  std::string bytes;
  const absl::Status status =
      coordinator.ReadModel(trial, [&](const v1::DownloadModelResponse& response) {
        if (response.has_checkpoint() && step != nullptr) *step = response.step();
        bytes += response.data();
        return true;
      });
  if (!status.ok()) return status;
  return bytes;
}

TEST_F(CoordinatorHousekeepingTest, TheNewestModelCanBeReadWhileTheTrialRunsAndAfterwards) {
  const std::string trial = Create("weights") + "/trials/lr0-seed0";
  absl::Status none = Model(*coordinator_, trial).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("it is QUEUED and has stored no checkpoint yet"));
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  int64_t step = 0;
  EXPECT_EQ(Model(*coordinator_, trial, &step).value(), "checkpoint 3");
  EXPECT_EQ(step, 30);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_EQ(Model(*coordinator_, trial).value(), "checkpoint 3");
  EXPECT_EQ(Model(*coordinator_, trial + "x").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CoordinatorHousekeepingTest, AModelThatWasNotKeptIsNotThere) {
  const std::string trial = Create("nothing") + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  const absl::Status status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("its specification keeps nothing"));
}

TEST_F(CoordinatorHousekeepingTest, ADamagedModelIsNotHandedOut) {
  const std::string trial = Create("weights") + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  const std::string path = coordinator_.data_dir() + "/artifacts/sort-1/lr0-seed0/" +
                           platform::Sha256Hex("checkpoint 3") + ".safetensors";
  ASSERT_TRUE(std::filesystem::exists(path));
  // Of the same size, as a bit that was flipped.
  std::ofstream(path) << "checkpoint 7";
  absl::Status status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("is damaged"));
  std::filesystem::remove(path);
  status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("is gone"));
}

}  // namespace
}  // namespace lengthwise::server
