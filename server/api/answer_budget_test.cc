#include "server/api/answer_budget.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"
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
constexpr char kMethod[] = "ListTrials";

TEST(AnswerBudget, ClientHoldsNoMoreThanStaysFree) {
  AnswerBudget budget(24 * kMebibyte);
  std::vector<AnswerBudget::Share> shares;
  // Each answer counts twice. Of 24 MiB, one client may hold half.
  for (int i = 0; i < 5; ++i) {
    shares.push_back(budget.Take("ada", kMethod, Answer(kMebibyte)).value());
    EXPECT_NE(shares.back(), nullptr);
  }
  const absl::Status refused = budget.Take("ada", kMethod, Answer(kMebibyte)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(refused), absl::ZeroDuration());
  // There is room for others.
  for (int i = 0; i < 3; ++i) {
    shares.push_back(budget.Take("grace", kMethod, Answer(kMebibyte)).value());
  }
  EXPECT_FALSE(budget.Take("grace", kMethod, Answer(kMebibyte)).ok());
  EXPECT_TRUE(budget.Take("linus", kMethod, Answer(kMebibyte)).ok());
}

TEST(AnswerBudget, RequestCountsTheMemoryOfItsSmallestFields) {
  AnswerBudget budget(24 * kMebibyte);
  v1::StreamEventsRequest request;
  for (int i = 0; i < 200'000; ++i) request.add_events();
  EXPECT_EQ(request.ByteSizeLong(), 400'000);
  EXPECT_FALSE(budget.Take("ada", /*method=*/"", request).ok());
}

TEST(AnswerBudget, ReadAnswersAreGivenBack) {
  AnswerBudget budget(5 * kMebibyte);
  AnswerBudget::Share share = budget.Take("ada", kMethod, Answer(kMebibyte)).value();
  EXPECT_FALSE(budget.Take("ada", kMethod, Answer(kMebibyte)).ok());
  share.reset();
  EXPECT_TRUE(budget.Take("ada", kMethod, Answer(kMebibyte)).ok());
}

// Reading the store again and again for answers that are refused would delay everyone.
TEST(AnswerBudget, RefusedMethodWaits) {
  AnswerBudget budget(8 * kMebibyte, absl::Hours(1));
  AnswerBudget::Share one = budget.Take("ada", kMethod, Answer(kMebibyte)).value();
  AnswerBudget::Share other = budget.Take("ada", kMethod, Answer(10)).value();
  ASSERT_FALSE(budget.Take("ada", /*method=*/"", Answer(kMebibyte)).ok());
  EXPECT_TRUE(budget.CheckRoom("ada", kMethod).ok()) << "a request was refused";
  ASSERT_FALSE(budget.Take("ada", kMethod, Answer(kMebibyte)).ok());
  // The end of the refused call is no room for the next.
  other.reset();
  const absl::Status refused = budget.CheckRoom("ada", kMethod);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(refused), absl::ZeroDuration());
  EXPECT_TRUE(budget.CheckRoom("ada", "GetTrial").ok()) << "its answers may be small";
  EXPECT_TRUE(budget.CheckRoom("grace", kMethod).ok());
  one.reset();
  EXPECT_TRUE(budget.CheckRoom("ada", kMethod).ok());
}

TEST(AnswerBudget, RefusedMethodMayBeCalledAgainLater) {
  AnswerBudget budget(8 * kMebibyte, absl::ZeroDuration());
  AnswerBudget::Share one = budget.Take("ada", kMethod, Answer(kMebibyte)).value();
  ASSERT_FALSE(budget.Take("ada", kMethod, Answer(kMebibyte)).ok());
  EXPECT_TRUE(budget.CheckRoom("ada", kMethod).ok());
}

TEST(AnswerBudget, ManySmallAnswersCountToo) {
  AnswerBudget budget(kMebibyte);
  std::vector<AnswerBudget::Share> shares;
  while (shares.size() < 1000) {
    absl::StatusOr<AnswerBudget::Share> share = budget.Take("ada", kMethod, Answer(10));
    if (!share.ok()) break;
    shares.push_back(*std::move(share));
  }
  // Half of the budget, with 16 KiB for each call.
  EXPECT_EQ(shares.size(), 31);
  shares.clear();
  EXPECT_TRUE(budget.Take("ada", kMethod, v1::Event()).ok());
}

}  // namespace
}  // namespace lengthwise::server
