// Tests the outbox with a spool: during an outage training continues within the limits, and
// afterwards everything is delivered once and in order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "worker/connection/outbox.h"

namespace lengthwise::worker {
namespace {

std::string NewDirectory() {
  const std::string path = testing::TempDir() + "/outbox_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(path);
  return path;
}

v1::Lease LeaseWith(int trials) {
  v1::Lease lease;
  lease.set_lease_id("lease");
  lease.set_fencing_token(7);
  for (int i = 0; i < trials; ++i) {
    v1::LeasedTrial& trial = *lease.add_trials();
    trial.set_trial(absl::StrCat("trial", i));
    trial.set_attempt(1);
  }
  return lease;
}

v1::Event Points(int64_t step, size_t count) {
  v1::Event event;
  event.set_step(step);
  for (size_t i = 0; i < count; ++i) event.mutable_training_points()->add_losses(1.0f);
  return event;
}

v1::Event Outcome() {
  v1::Event event;
  event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  return event;
}

// Fake server state: stores items like the real server.
class Store {
 public:
  v1::StreamEventsResponse Take(const v1::StreamEventsRequest& batch) {
    v1::StreamEventsResponse response;
    v1::StreamEventsResponse* answer = nullptr;
    for (const v1::Event& event : batch.events()) {
      if (answer == nullptr || event.trial() != answer->trial()) {
        answer = answer == nullptr ? &response : response.add_others();
        answer->set_trial(event.trial());
      }
      std::vector<v1::Event>& log = logs_[event.trial()];
      const auto next = static_cast<int64_t>(log.size()) + 1;
      if (answer->refusal() != v1::StreamEventsResponse::REFUSAL_UNSPECIFIED) continue;
      if (event.sequence() > next) answer->set_refusal(v1::StreamEventsResponse::SEQUENCE_GAP);
      if (event.sequence() == next) {
        const std::string& sha256 = event.checkpoint().sha256();
        const auto artifact = batch.artifacts().find(sha256);
        // Loses some.
        if (artifact != batch.artifacts().end() && artifact->second.size() % 3 != 0) Keep(sha256);
        if (event.has_checkpoint() && !artifacts_.contains(sha256)) {
          answer->set_refusal(v1::StreamEventsResponse::NOT_STORED);
        } else {
          log.push_back(event);
        }
      }
      answer->set_acknowledged_sequence(static_cast<int64_t>(log.size()));
    }
    response.set_lease_id(batch.lease_id());
    return response;
  }
  void Keep(const std::string& sha256) { artifacts_.insert(sha256); }
  const std::vector<v1::Event>& log(int trial) { return logs_[absl::StrCat("trial", trial)]; }

 private:
  std::map<std::string, std::vector<v1::Event>> logs_;
  std::set<std::string> artifacts_;
};

void SendUpload(Outbox& outbox, Store& store, const Outbox::Upload& upload) {
  v1::Checkpoint checkpoint;
  checkpoint.set_sha256(platform::Sha256Hex(*upload.bytes));
  store.Keep(checkpoint.sha256());
  outbox.UploadStored(upload, checkpoint);
}

// Tries to send one item. Returns false if there was none.
bool SendOne(Outbox& outbox, Store& store) {
  const Outbox::Work work = outbox.Next(std::chrono::steady_clock::now(), /*with_artifacts=*/false);
  if (const auto* upload = std::get_if<Outbox::Upload>(&work)) {
    SendUpload(outbox, store, *upload);
  } else if (const auto* batch = std::get_if<v1::StreamEventsRequest>(&work)) {
    outbox.Acknowledge(store.Take(*batch));
  } else {
    return false;
  }
  return true;
}

TEST(OutboxSpool, TrainingContinuesDuringAnOutage) {
  Spool spool({.directory = NewDirectory(), .file_bytes = 100'000});
  Outbox outbox(LeaseWith(1), {.max_bytes = 200'000, .spool = &spool});
  // Six times the memory limit: without a spool, Put would block forever.
  for (int64_t step = 1; step <= 200; ++step) {
    outbox.Put(0, Points(step, 1000));
    if (step % 50 == 0) outbox.PutCheckpoint(0, step, std::string(100'000, 'a' + step % 26));
  }
  outbox.Put(0, Outcome());
  EXPECT_GT(spool.bytes(), 900'000);
  EXPECT_GE(outbox.unsent_bytes(), spool.bytes());
  EXPECT_EQ(outbox.unsent_events(), 205);

  Store store;
  while (SendOne(outbox, store)) {
  }
  const std::vector<v1::Event>& log = store.log(0);
  ASSERT_EQ(log.size(), 205u);
  int64_t step = 0;
  for (size_t i = 0; i < 204; ++i) {
    if (log[i].has_checkpoint()) {
      EXPECT_EQ(log[i].step(), step);
      EXPECT_EQ(log[i].checkpoint().sha256(),
                platform::Sha256Hex(std::string(100'000, 'a' + step % 26)));
    } else {
      EXPECT_EQ(log[i].step(), ++step);
      EXPECT_EQ(log[i].training_points().losses_size(), 1000);
      EXPECT_TRUE(log[i].has_time());
    }
  }
  EXPECT_EQ(step, 200);
  EXPECT_TRUE(log[204].has_outcome());
  EXPECT_TRUE(outbox.finished(0));
  EXPECT_TRUE(outbox.Flush());
  EXPECT_EQ(outbox.unsent_bytes(), 0);
  EXPECT_EQ(spool.bytes(), 0) << "the disk's space is free again";
}

TEST(OutboxSpool, TrainingBlocksOnceTheSpoolIsFull) {
  Spool spool({.directory = NewDirectory(), .max_bytes = 20'000, .file_bytes = 5'000});
  Outbox outbox(LeaseWith(1), {.max_bytes = 10'000, .spool = &spool});
  std::atomic<int> put = 0;
  auto producer = std::async(std::launch::async, [&] {
    for (int64_t step = 1; step <= 20; ++step, ++put) outbox.Put(0, Points(step, 1000));
  });
  // Seven events of 4,000 bytes exceed memory and spool together.
  Store store;
  while (store.log(0).size() < 20) {
    EXPECT_LE(spool.bytes(), 20'000);
    EXPECT_LE(put - static_cast<int>(store.log(0).size()), 8);
    SendOne(outbox, store);
  }
  producer.get();
  EXPECT_EQ(spool.bytes(), 0);
}

TEST(OutboxSpool, UnwritableSpoolBlocksLikeNone) {
  Spool spool({.directory = "/proc/none/spool"});
  Outbox outbox(LeaseWith(1), {.max_bytes = 10'000, .spool = &spool});
  auto producer = std::async(std::launch::async, [&] {
    for (int64_t step = 1; step <= 20; ++step) outbox.Put(0, Points(step, 1000));
  });
  Store store;
  while (store.log(0).size() < 20) {
    EXPECT_LE(outbox.unsent_bytes(), 12'500);
    SendOne(outbox, store);
  }
  producer.get();
}

TEST(OutboxSpool, ClosingATrialFreesItsSpace) {
  Spool spool({.directory = NewDirectory(), .max_bytes = 20'000});
  Outbox outbox(LeaseWith(2), {.max_bytes = 5'000, .spool = &spool});
  outbox.Put(1, Points(1, 1000));
  auto producer = std::async(std::launch::async, [&] {
    for (int64_t step = 1; step <= 20; ++step) outbox.Put(0, Points(step, 1000));
  });
  while (spool.bytes() < 16'000) std::this_thread::yield();
  outbox.CloseTrial(0);
  ASSERT_EQ(producer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  Store store;
  SendOne(outbox, store);
  EXPECT_EQ(store.log(1).size(), 1u);
  EXPECT_EQ(spool.bytes(), 0);
}

// Invariant under random outages, partial acknowledgements and broken streams: the server's log of
// each trial has every item once and in order, and the limits hold.
TEST(OutboxSpool, AnyScheduleDeliversOnceAndInOrder) {
  constexpr int kTrials = 3;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Spool spool({.directory = NewDirectory(), .max_bytes = 300'000, .file_bytes = 20'000});
    Outbox outbox(
        LeaseWith(kTrials),
        {.max_bytes = 30'000, .spool = &spool, .max_batch_bytes = 10'000, .max_batch_events = 7});
    std::vector<std::vector<std::string>> expected(kTrials);
    std::thread producer([&] {
      std::mt19937 random(seed);
      for (int64_t step = 1; step <= 150; ++step) {
        const int trial = static_cast<int>(random() % kTrials);
        if (random() % 10 == 0) {
          const std::string bytes(random() % 40'000 + 1, static_cast<char>('a' + random() % 26));
          expected[trial].push_back(platform::Sha256Hex(bytes));
          outbox.PutCheckpoint(trial, step, bytes);
        } else {
          expected[trial].push_back(absl::StrCat(step));
          outbox.Put(trial, Points(step, random() % 500));
        }
      }
      for (int trial = 0; trial < kTrials; ++trial) outbox.Put(trial, Outcome());
    });
    std::mt19937 random(seed + 1000);
    Store store;
    bool finished = false;
    while (!finished) {
      EXPECT_LE(spool.bytes(), 300'000);
      if (random() % 8 == 0) {
        outbox.Resend();  // a broken stream
        continue;
      }
      const Outbox::Work work = outbox.Next(std::chrono::steady_clock::now(), random() % 2 == 0);
      if (const auto* upload = std::get_if<Outbox::Upload>(&work)) {
        if (random() % 3 == 0) continue;  // failed: Next returns it again
        SendUpload(outbox, store, *upload);
      } else if (const auto* batch = std::get_if<v1::StreamEventsRequest>(&work)) {
        switch (random() % 4) {
          case 0:  // lost in transit
            outbox.Resend();
            break;
          case 1:  // stored, but the acknowledgement is lost
            store.Take(*batch);
            outbox.Resend();
            break;
          default:
            outbox.Acknowledge(store.Take(*batch));
        }
      }
      finished = true;
      for (int trial = 0; trial < kTrials; ++trial) finished &= outbox.finished(trial);
    }
    producer.join();
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<std::string> stored;
      for (const v1::Event& event : store.log(trial)) {
        if (event.has_outcome()) continue;
        stored.push_back(event.has_checkpoint() ? event.checkpoint().sha256()
                                                : absl::StrCat(event.step()));
      }
      EXPECT_EQ(stored, expected[trial]);
    }
    EXPECT_EQ(spool.bytes(), 0);
    EXPECT_EQ(outbox.unsent_bytes(), 0);
  }
}

// Overwrites every byte spooled in directories named so. The files have no name themselves, so it
// goes through the open descriptors.
void DamageSpool(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || !absl::StrContains(target, directory)) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const std::string zeros(static_cast<size_t>(file.tellg()), '\0');
    file.seekp(0);
    file << zeros;
  }
}

// A disk that changes spooled data must not invent results: the trial runs again elsewhere.
TEST(OutboxSpool, DamagedSpoolFailsItsTrialsForARetry) {
  for (const bool checkpoint : {false, true}) {
    const std::string directory = NewDirectory();
    Spool spool({.directory = directory});
    Outbox outbox(LeaseWith(1), {.max_bytes = 200'000, .spool = &spool});
    outbox.Put(0, Points(1, 10));
    if (checkpoint) outbox.PutCheckpoint(0, 2, std::string(300'000, 'm'));
    for (int64_t step = 3; step <= 100; ++step) outbox.Put(0, Points(step, 1000));
    ASSERT_GT(spool.bytes(), 0);
    DamageSpool(std::filesystem::path(directory).filename().string());
    Store store;
    while (SendOne(outbox, store)) {
    }
    ASSERT_FALSE(store.log(0).empty());
    const v1::Event& last = store.log(0).back();
    EXPECT_EQ(last.outcome().kind(), v1::Outcome::FAILED_TEMPORARILY);
    EXPECT_THAT(last.outcome().reason(),
                testing::AllOf(testing::HasSubstr(checkpoint ? "the worker lost a checkpoint"
                                                             : "the worker lost events"),
                               testing::HasSubstr("was changed on the disk")));
  }
}

// Regression: a gap made events before a checkpoint unsent during its upload, and full memory then
// spooled them. The upload was no longer found and was repeated.
TEST(OutboxSpool, RegressionAnUploadIsFoundBehindASpooledBlock) {
  Spool spool({.directory = NewDirectory()});
  Outbox outbox(LeaseWith(1), {.max_bytes = 200'000, .spool = &spool});
  const std::string model(1000, 'm');
  for (int64_t step = 1; step <= 5; ++step) outbox.Put(0, Points(step, 1000));
  outbox.PutCheckpoint(0, 5, model);
  const auto now = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      std::holds_alternative<v1::StreamEventsRequest>(outbox.Next(now, /*with_artifacts=*/false)));
  const Outbox::Work upload = outbox.Next(now, /*with_artifacts=*/false);
  ASSERT_TRUE(std::holds_alternative<Outbox::Upload>(upload));

  v1::StreamEventsResponse gap;
  gap.set_lease_id("lease");
  gap.set_trial("trial0");
  gap.set_refusal(v1::StreamEventsResponse::SEQUENCE_GAP);
  outbox.Acknowledge(gap);
  outbox.PutCheckpoint(0, 6, std::string(150'000, 'n'));
  outbox.Put(0, Points(7, 10'000));
  ASSERT_GT(spool.bytes(), 0) << "the five events are still in memory";
  Store store;
  SendUpload(outbox, store, std::get<Outbox::Upload>(upload));

  while (true) {
    const Outbox::Work work =
        outbox.Next(std::chrono::steady_clock::now(), /*with_artifacts=*/false);
    if (const auto* next = std::get_if<Outbox::Upload>(&work)) {
      EXPECT_EQ(next->step, 6);
      SendUpload(outbox, store, *next);
    } else if (const auto* batch = std::get_if<v1::StreamEventsRequest>(&work)) {
      outbox.Acknowledge(store.Take(*batch));
    } else {
      break;
    }
  }
  ASSERT_EQ(store.log(0).size(), 8U);
  EXPECT_EQ(store.log(0)[5].checkpoint().sha256(), platform::Sha256Hex(model));
}

}  // namespace
}  // namespace lengthwise::worker
