#include "server/self_check.h"

#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(SelfCheck, GivesUpAfterThreeFailuresInARow) {
  const absl::Status failed = absl::UnavailableError("nothing answers");
  const std::vector<absl::Status> answers = {failed, failed, absl::OkStatus(),
                                             failed, failed, failed};
  size_t asked = 0;
  absl::Notification given_up;
  absl::Status reason;
  {
    SelfCheck check(
        absl::Milliseconds(1), [&] { return answers.at(asked++); },
        [&](const absl::Status& status) {
          reason = status;
          given_up.Notify();
        });
    ASSERT_TRUE(given_up.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_EQ(asked, answers.size());
  EXPECT_EQ(reason, failed);
}

}  // namespace
}  // namespace lengthwise::server
