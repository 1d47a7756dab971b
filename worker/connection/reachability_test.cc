#include "worker/connection/reachability.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReachabilityTest : public testing::Test {
 protected:
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<std::string> lines_;
  Reachability reachability_{
      "server 127.0.0.1:7070", [this] { return now_; },
      [this](platform::LogLevel, absl::string_view text) { lines_.emplace_back(text); }};
  const absl::Status refused_ = absl::UnavailableError(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7070: Failed to "
      "connect to remote host: Connection refused");
};

TEST_F(ReachabilityTest, LogsNothingWhileReachable) {
  reachability_.Succeeded();
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(ReachabilityTest, LogsBeginAndEndOfAnOutage) {
  for (int i = 0; i < 5; ++i) reachability_.Failed(refused_);
  for (int i = 0; i < 5; ++i) reachability_.Succeeded();
  EXPECT_THAT(lines_,
              ElementsAre("server 127.0.0.1:7070 unreachable (connection refused); retrying",
                          "server 127.0.0.1:7070 reached again"));
}

TEST_F(ReachabilityTest, LogsWholeExplanations) {
  reachability_.Failed(absl::UnavailableError("the certificate of h is not accepted: it is over"));
  EXPECT_THAT(lines_, ElementsAre("server 127.0.0.1:7070 unreachable (the certificate of h is not "
                                  "accepted: it is over); retrying"));
}

TEST_F(ReachabilityTest, RepeatsOncePerMinute) {
  // 150 s with a failure each second: at 0, 60 and 120 s.
  for (int i = 0; i < 150; ++i, now_ += absl::Seconds(1)) reachability_.Failed(refused_);
  EXPECT_THAT(lines_, SizeIs(3));
}

TEST_F(ReachabilityTest, LogsErrorsOfTheServer) {
  reachability_.Failed(absl::InternalError("disk: full"));
  EXPECT_THAT(lines_, ElementsAre("server 127.0.0.1:7070 answers INTERNAL: disk: full; retrying"));
}

TEST_F(ReachabilityTest, LogsWhatAnUnavailableServerAnswers) {
  reachability_.Failed(absl::UnavailableError("nothing was stored: disk full: /data"),
                       /*answered=*/true);
  EXPECT_THAT(lines_, ElementsAre("server 127.0.0.1:7070 answers UNAVAILABLE: nothing was stored: "
                                  "disk full: /data; retrying"));
}

}  // namespace
}  // namespace lengthwise::worker
