#include "worker/connection/server_calls.h"

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/status.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;

constexpr Backoff::Options kFast = {.initial = absl::Milliseconds(1),
                                    .maximum = absl::Milliseconds(1)};

class RetryTest : public testing::Test {
 protected:
  // Fails with the first error, then retries `connect`.
  absl::Status Retry(const std::function<absl::Status()>& connect, TimePoint end = kNever) {
    return RetryWhileUnavailable(unknown_, connect, kFast, reachability_, end,
                                 stop_.get_future().share());
  }

  const absl::Status unknown_ = absl::UnavailableError("none of the hosts of a:1,b:2 is known");
  std::vector<std::string> log_;
  Reachability reachability_{
      "server a:1,b:2", absl::Now,
      [this](platform::LogLevel, absl::string_view text) { log_.emplace_back(text); }};
  std::promise<void> stop_;
};

TEST_F(RetryTest, UnknownHostsAreLookedUpAgain) {
  int calls = 0;
  EXPECT_TRUE(Retry([&] { return ++calls < 3 ? unknown_ : absl::OkStatus(); }).ok());
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(log_, ElementsAre("server a:1,b:2 unreachable (none of the hosts of a:1,b:2 is "
                                "known); retrying"));
}

TEST_F(RetryTest, OtherErrorsAreFinal) {
  EXPECT_EQ(Retry([] { return absl::NotFoundError("no file ca.pem"); }),
            absl::NotFoundError("no file ca.pem"));
}

TEST_F(RetryTest, StopsOnRequest) {
  const auto connect = [this] {
    stop_.set_value();
    return unknown_;
  };
  EXPECT_TRUE(absl::IsCancelled(Retry(connect)));
}

TEST_F(RetryTest, EndsAtTheDeadline) {
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(Retry([this] { return unknown_; }, After(absl::Milliseconds(20)))));
}

TEST(TransientTest, FullServerThatNamesATimeIsAskedAgain) {
  const auto received = [](const absl::Status& status) {
    return ToStatus(rpc::ToGrpcStatus(status));
  };
  EXPECT_TRUE(IsTransient(received(rpc::ExhaustedFor(absl::Seconds(1), "no room for answers"))));
  EXPECT_FALSE(IsTransient(received(absl::ResourceExhaustedError("the quota is used up"))));
}

}  // namespace
}  // namespace lengthwise::worker
