#include "server/api/answer_budget.h"

#include <string>
#include <utility>
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

TEST(AnswerBudget, ManySmallAnswersCountToo) {
  AnswerBudget budget(kMebibyte);
  std::vector<AnswerBudget::Share> shares;
  while (shares.size() < 1000) {
    absl::StatusOr<AnswerBudget::Share> share = budget.Take("ada", Answer(10));
    if (!share.ok()) break;
    shares.push_back(*std::move(share));
  }
  // Half of the budget, with 16 KiB for each call.
  EXPECT_EQ(shares.size(), 31);
  shares.clear();
  EXPECT_TRUE(budget.Take("ada", v1::Event()).ok());
}

}  // namespace
}  // namespace lengthwise::server
