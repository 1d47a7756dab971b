#include "platform/status_macros.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace lengthwise {
namespace {

absl::Status Error() { return absl::NotFoundError("there is none"); }

absl::Status ReturnIf(const absl::Status& status, int& calls) {
  RETURN_IF_ERROR((++calls, status));
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, ReturnsErrorsAndEvaluatesOnce) {
  int calls = 0;
  EXPECT_EQ(ReturnIf(absl::OkStatus(), calls), absl::OkStatus());
  EXPECT_EQ(ReturnIf(Error(), calls), Error());
  EXPECT_EQ(calls, 2);
}

TEST(ReturnIfErrorTest, PayloadsSurvive) {
  absl::Status status = Error();
  status.SetPayload("type", absl::Cord("details"));
  int calls = 0;
  EXPECT_EQ(ReturnIf(status, calls).GetPayload("type"), absl::Cord("details"));
}

absl::StatusOr<int> ReturnIfInStatusOr(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  return 1;
}

TEST(ReturnIfErrorTest, FunctionMayReturnStatusOr) {
  EXPECT_EQ(ReturnIfInStatusOr(absl::OkStatus()).value(), 1);
  EXPECT_EQ(ReturnIfInStatusOr(Error()).status(), Error());
}

absl::Status ReturnIfWithElse(bool condition) {
  if (condition)
    RETURN_IF_ERROR(absl::OkStatus());
  else
    return Error();
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, ElseBelongsToTheConditionBeforeTheMacro) {
  EXPECT_EQ(ReturnIfWithElse(true), absl::OkStatus());
  EXPECT_EQ(ReturnIfWithElse(false), Error());
}

absl::StatusOr<std::string> Assign(absl::StatusOr<std::unique_ptr<std::string>> text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<std::string> moved, std::move(text));
  return *moved;
}

TEST(AssignOrReturnTest, MovesTheValueOrReturnsTheError) {
  EXPECT_EQ(Assign(std::make_unique<std::string>("text")).value(), "text");
  EXPECT_EQ(Assign(Error()).status(), Error());
}

absl::Status AssignTo(absl::StatusOr<int> number, int& left, int& calls) {
  ASSIGN_OR_RETURN(left, (++calls, std::move(number)));
  return absl::OkStatus();
}

TEST(AssignOrReturnTest, AssignsToLvaluesAndKeepsThemOnErrors) {
  int left = 0;
  int calls = 0;
  EXPECT_EQ(AssignTo(7, left, calls), absl::OkStatus());
  EXPECT_EQ(left, 7);
  EXPECT_EQ(AssignTo(Error(), left, calls), Error());
  EXPECT_EQ(left, 7);
  EXPECT_EQ(calls, 2);
}

absl::StatusOr<int> AssignSeveral(absl::StatusOr<std::pair<int, int>> pair,
                                  absl::StatusOr<std::map<int, int>> map) {
  ASSIGN_OR_RETURN((const auto [first, second]), pair);
  ASSIGN_OR_RETURN((const std::map<int, int> more), std::move(map));
  return first + second + more.at(1);
}

TEST(AssignOrReturnTest, DeclarationsWithCommasStandInParentheses) {
  EXPECT_EQ(AssignSeveral(std::pair(1, 2), std::map<int, int>{{1, 3}}).value(), 6);
  EXPECT_EQ(AssignSeveral(Error(), std::map<int, int>()).status(), Error());
}

absl::Status Explained(absl::StatusOr<int> number) {
  ASSIGN_OR_RETURN([[maybe_unused]] const int found, std::move(number),
                   absl::UnavailableError(std::string(_.message()) + " today"));
  return absl::OkStatus();
}

TEST(AssignOrReturnTest, ThirdArgumentReplacesTheError) {
  EXPECT_EQ(Explained(1), absl::OkStatus());
  EXPECT_EQ(Explained(Error()), absl::UnavailableError("there is none today"));
}

}  // namespace
}  // namespace lengthwise
