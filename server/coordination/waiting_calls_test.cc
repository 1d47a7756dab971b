#include "server/coordination/waiting_calls.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Call = WaitingCall<int>;

class WaitingCallsTest : public testing::Test {
 protected:
  void Add(const std::string& worker, int seconds) {
    Call call;
    call.worker = worker;
    call.deadline = At(seconds);
    call.done = [this, worker](absl::StatusOr<int> answer) {
      heard_.push_back(absl::StrCat(
          worker, " ", answer.ok() ? absl::StrCat(*answer) : answer.status().message()));
    };
    calls_.Add(std::move(call));
  }
  static absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

  // Commits, and returns the answers that calls received since the last commit.
  std::vector<std::string> Commit() {
    calls_.Committed();
    for (const auto& answer : answers_) answer();
    answers_.clear();
    return std::exchange(heard_, {});
  }
  std::vector<std::string> Fail() {
    calls_.CommitFailed(absl::UnavailableError("failed"));
    answers_.clear();
    return std::exchange(heard_, {});
  }

  static std::optional<absl::StatusOr<int>> One(const Call&) { return 1; }

  WaitingCalls<int> calls_;
  std::vector<std::function<void()>> answers_;
  std::vector<std::string> heard_;
};

TEST_F(WaitingCallsTest, CallsAreAnsweredInTimeAndOnce) {
  Add("a", 20);
  Add("b", 10);
  EXPECT_EQ(calls_.NextDeadline(), At(10));
  calls_.DecideDue(At(10), One, answers_);
  EXPECT_THAT(heard_, IsEmpty()) << "not before the commit";
  EXPECT_THAT(Commit(), ElementsAre("b 1"));
  calls_.DecideFor("b", One, answers_);
  calls_.DecideAll([](const Call&) { return std::nullopt; }, answers_);
  EXPECT_THAT(Commit(), IsEmpty());
  calls_.DecideFor("a", One, answers_);
  EXPECT_THAT(Commit(), ElementsAre("a 1"));
  EXPECT_EQ(calls_.size(), 0);
  EXPECT_EQ(calls_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(WaitingCallsTest, NewerCallOfAWorkerSupersedes) {
  Add("a", 20);
  Add("b", 20);
  Add("a", 30);
  std::vector<bool> superseded;
  calls_.DecideDue(
      At(0),
      [&](const Call& call) {
        superseded.push_back(call.superseded);
        return One(call);
      },
      answers_);
  EXPECT_THAT(superseded, ElementsAre(true));
  EXPECT_THAT(Commit(), ElementsAre("a 1"));
  calls_.DecideFor("a", One, answers_);
  EXPECT_THAT(Commit(), ElementsAre("a 1")) << "the newer one";
  EXPECT_EQ(calls_.size(), 1);
}

// Calls that were added in the failed transaction are answered by their commands.
TEST_F(WaitingCallsTest, FailedCommitTellsTheAnsweredAndForgetsTheNew) {
  Add("waits", 20);
  Add("answered", 20);
  Commit();
  Add("new", 20);
  calls_.DecideFor("answered", One, answers_);
  EXPECT_THAT(Fail(), ElementsAre("answered failed"));
  EXPECT_EQ(calls_.size(), 1);
  Add("new", 30);
  calls_.DecideAll(One, answers_);
  EXPECT_THAT(Commit(), ElementsAre("waits 1", "new 1")) << "in the order of their coming";
}

TEST_F(WaitingCallsTest, RefusalTellsAll) {
  Add("a", 20);
  Add("b", 20);
  calls_.RefuseAll(absl::UnavailableError("stopping"));
  EXPECT_THAT(heard_, ElementsAre("a stopping", "b stopping"));
  EXPECT_EQ(calls_.size(), 0);
}

}  // namespace
}  // namespace lengthwise::server
