#include "server/api/answer_budget.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "rpc/status.h"

namespace lengthwise::server {
namespace {

// A message of about `bytes` bytes.
v1::Event Answer(int64_t bytes) {
  v1::Event event;
  event.mutable_log_line()->set_text(std::string(bytes, 'x'));
  return event;
}

constexpr int64_t kMebibyte = 1 << 20;

TEST(AnswerBudget, ClientHoldsNoMoreThanStaysFree) {
  AnswerBudget budget(24 * kMebibyte);
  std::vector<AnswerBudget::Share> shares;
  // Each answer counts twice. Of 24 MiB, one client may hold half.
  for (int i = 0; i < 5; ++i) {
    shares.push_back(budget.Take("ada", Answer(kMebibyte)).value());
    EXPECT_NE(shares.back(), nullptr);
  }
  const absl::Status refused = budget.Take("ada", Answer(kMebibyte)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(refused), absl::ZeroDuration());
  // There is room for others.
  for (int i = 0; i < 3; ++i) {
    shares.push_back(budget.Take("grace", Answer(kMebibyte)).value());
  }
  EXPECT_FALSE(budget.Take("grace", Answer(kMebibyte)).ok());
  EXPECT_TRUE(budget.Take("linus", Answer(kMebibyte)).ok());
}

TEST(AnswerBudget, ReadAnswersAreGivenBack) {
  AnswerBudget budget(5 * kMebibyte);
  AnswerBudget::Share share = budget.Take("ada", Answer(kMebibyte)).value();
  EXPECT_FALSE(budget.Take("ada", Answer(kMebibyte)).ok());
  share.reset();
  EXPECT_TRUE(budget.Take("ada", Answer(kMebibyte)).ok());
}

TEST(AnswerBudget, SmallAnswersDoNotCount) {
  AnswerBudget budget(0);
  EXPECT_TRUE(budget.Take("ada", Answer(1000)).ok());
  EXPECT_FALSE(budget.Take("ada", Answer(kMebibyte)).ok());
}

}  // namespace
}  // namespace lengthwise::server
