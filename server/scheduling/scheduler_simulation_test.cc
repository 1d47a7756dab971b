// Plays random histories against the scheduler and checks its promises after every step. A failure
// names the seed that replays it.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {
namespace {

// What a store keeps: enough to rebuild a scheduler.
struct StoredTrial {
  v1::TrialState state = v1::QUEUED;
  ScheduledTrial data;
  Token token = 0;
};

// A lease as its worker sees it; late and repeated messages come from remembered ones.
struct WorkersLease {
  std::string worker;
  Token token = 0;
  std::vector<TrialKey> trials;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), scheduler_(NewScheduler(1)) {}

  // Returns what is broken, or "".
  std::string Step() {
    const int dice = Below(100);
    if (dice < 8) {
      Submit();
    } else if (dice < 30) {
      Acquire();
    } else if (dice < 50) {
      SendHeartbeat();
    } else if (dice < 75) {
      SendOutcome();
    } else if (dice < 82) {
      SendCheckpoint();
    } else if (dice < 85) {
      SendRelease();
    } else if (dice < 87) {
      Record(scheduler_->Cancel(AnyTrial(), "a user"));
    } else if (dice < 88) {
      Restart();
    } else {
      now_ += absl::Milliseconds(Below(Below(20) == 0 ? 60'000 : 500));
      Record(scheduler_->Tick(now_));
    }
    return Check();
  }

  // Workers that work on until the queue is empty. Returns what is broken, or "".
  std::string RunToTheEnd() {
    for (int i = 0; i < 1'000'000 && unended_ > 0; ++i) {
      Record(scheduler_->Tick(now_));
      scheduler_->Register("last", 4, now_);
      WorkersLease lease = Grant("last");
      if (lease.trials.empty()) {
        const absl::Time deadline = scheduler_->NextDeadline();
        if (deadline == absl::InfiniteFuture()) return "nothing is in sight, but trials wait";
        now_ = std::max(now_, deadline);
      }
      for (const TrialKey trial : lease.trials) Finish(trial, lease.token, v1::Outcome::COMPLETED);
      if (!problem_.empty()) return problem_;
    }
    return unended_ == 0 ? Check() : "trials never end";
  }

  int64_t trials() const { return static_cast<int64_t>(store_.size()); }

 private:
  static constexpr int kWorkers = 6;

  static std::unique_ptr<Scheduler> NewScheduler(Token next_token) {
    return std::make_unique<Scheduler>(Scheduler::Options(), next_token);
  }

  int Below(int bound) { return static_cast<int>(random_() % bound); }
  std::string AnyWorker() { return absl::StrCat("w", Below(kWorkers)); }
  // Mostly recent ones.
  TrialKey AnyTrial() { return std::max(1, static_cast<int>(store_.size()) - Below(60)); }

  void Submit() {
    if (unended_ > 60) return;
    const int32_t priority = Below(3);
    const int64_t pack = ++last_pack_;
    for (int i = Below(5); i >= 0; --i) {
      StoredTrial trial;
      trial.data.key = static_cast<TrialKey>(store_.size()) + 1;
      trial.data.pack = pack;
      trial.data.priority = priority;
      store_[trial.data.key] = trial;
      scheduler_->Add(trial.data);
      ++unended_;
    }
  }

  WorkersLease Grant(const std::string& worker) {
    WorkersLease lease;
    lease.worker = worker;
    const bool runnable = scheduler_->HasRunnable(now_);
    const auto decisions = scheduler_->Grant(worker, now_);
    if (!decisions.ok()) return lease;
    if (runnable == decisions->trials.empty()) problem_ = "a worker asked in vain";
    for (const TrialChange& change : decisions->trials) {
      if (change.token <= last_token_) problem_ = "tokens do not ascend";
      lease.token = change.token;
      lease.trials.push_back(change.trial);
    }
    last_token_ = std::max(last_token_, lease.token);
    Record(*decisions);
    return lease;
  }

  void Acquire() {
    const std::string worker = AnyWorker();
    if (!scheduler_->IsRegistered(worker)) scheduler_->Register(worker, 1 + Below(4), now_);
    const WorkersLease lease = Grant(worker);
    // Sometimes the answer is lost: the worker never hears of its lease.
    if (!lease.trials.empty() && Below(10) > 0) remembered_.push_back(lease);
    if (remembered_.size() > 40) remembered_.erase(remembered_.begin());
  }

  void SendHeartbeat() {
    if (remembered_.empty()) return;
    const WorkersLease& lease = remembered_[Below(remembered_.size())];
    const auto directives = scheduler_->Heartbeat(lease.worker, {lease.token}, now_);
    if (!directives.ok()) return;
    if ((*directives)[0].lost != !live_leases_.contains(lease.token)) {
      problem_ = "a heartbeat was told wrong";
    }
  }

  void Finish(TrialKey trial, Token token, v1::Outcome::Kind kind) {
    const StoredTrial& stored = store_.at(trial);
    const bool valid = stored.state == v1::RUNNING && stored.token == token;
    const auto decisions = scheduler_->Finish(trial, token, kind, "an outcome", now_);
    if (decisions.ok() != valid) problem_ = "an outcome was taken or refused wrongly";
    if (decisions.ok()) Record(*decisions);
  }

  void SendOutcome() {
    if (remembered_.empty()) return;
    const WorkersLease& lease = remembered_[Below(remembered_.size())];
    const auto kind = static_cast<v1::Outcome::Kind>(1 + (Below(4) == 0 ? Below(3) : 0));
    Finish(lease.trials[Below(lease.trials.size())], lease.token, kind);
  }

  void SendCheckpoint() {
    if (remembered_.empty()) return;
    const WorkersLease& lease = remembered_[Below(remembered_.size())];
    const TrialKey trial = lease.trials[Below(lease.trials.size())];
    StoredTrial& stored = store_.at(trial);
    if (stored.state != v1::RUNNING || stored.token != lease.token) return;
    stored.data.checkpoint_step += 100;
    scheduler_->SetCheckpoint(trial, stored.data.checkpoint_step);
  }

  void SendRelease() {
    if (remembered_.empty()) return;
    const WorkersLease& lease = remembered_[Below(remembered_.size())];
    Record(scheduler_->Release(lease.worker, lease.token, "drained", now_));
  }

  void Restart() {
    scheduler_ = NewScheduler(last_token_ + 1);
    std::map<Token, std::vector<ScheduledTrial>> running;
    std::map<Token, std::vector<TrialKey>> cancelled;
    for (const auto& [key, trial] : store_) {
      if (trial.state == v1::QUEUED) scheduler_->Add(trial.data);
      if (trial.state == v1::RUNNING) running[trial.token].push_back(trial.data);
      if (trial.state == v1::CANCELLED) cancelled[trial.token].push_back(key);
    }
    for (const auto& [token, worker] : live_leases_) {
      scheduler_->RestoreLease(token, worker, running[token], cancelled[token], now_);
    }
  }

  void Record(const Decisions& decisions) {
    for (const LeaseChange& change : decisions.leases) {
      if (change.granted) {
        live_leases_[change.token] = change.worker;
      } else if (live_leases_.erase(change.token) == 0) {
        problem_ = "a lease ended twice";
      }
    }
    for (const TrialChange& change : decisions.trials) {
      StoredTrial& trial = store_.at(change.trial);
      if (trial.state != change.from) problem_ = "a change from a state that was not";
      if (trial.state != v1::QUEUED && trial.state != v1::RUNNING) {
        problem_ = "a trial changed after its end";
      }
      if (change.reason.empty()) problem_ = "a change without a reason";
      trial.state = change.to;
      trial.data.attempt = change.attempt;
      trial.data.failures = change.failures;
      trial.data.not_before = change.not_before;
      if (change.to == v1::RUNNING) {
        trial.token = change.token;
        if (change.resumed_from_step != trial.data.checkpoint_step) {
          problem_ = "an attempt goes on from a wrong step";
        }
      }
      if (change.to != v1::QUEUED && change.to != v1::RUNNING) --unended_;
    }
  }

  std::string Check() {
    if (!problem_.empty()) return problem_;
    const absl::Status status = scheduler_->CheckInvariants();
    if (!status.ok()) return std::string(status.message());
    if (scheduler_->queued() + scheduler_->running() != unended_) {
      return "the scheduler lost or invented a trial";
    }
    return "";
  }

  std::mt19937_64 random_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<Scheduler> scheduler_;
  std::map<TrialKey, StoredTrial> store_;
  std::map<Token, std::string> live_leases_;
  std::vector<WorkersLease> remembered_;
  Token last_token_ = 0;
  int64_t last_pack_ = 0;
  int64_t unended_ = 0;
  std::string problem_;
};

TEST(SchedulerSimulationTest, KeepsItsPromisesInRandomHistories) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulation simulation(seed);
    for (int step = 0; step < 20'000; ++step) {
      const std::string problem = simulation.Step();
      ASSERT_EQ(problem, "") << "seed " << seed << ", step " << step;
    }
    EXPECT_GT(simulation.trials(), 500);
    ASSERT_EQ(simulation.RunToTheEnd(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace lengthwise::server
