// Made-up operations on a made-up clock: no device and no LibTorch.
#include "models/layers/kernel_selection.h"

#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

using ::testing::HasSubstr;
using Results = std::vector<std::vector<double>>;

const Results kResults = {{1, -2, 3}, {10, 0}};

// A device on which work takes its time between `run` and the end of `wait`.
class KernelSelectionTest : public ::testing::Test {
 protected:
  KernelCandidate Candidate(double pass_seconds, Results results = kResults) {
    return {.run = [this, pass_seconds] { queued_ += pass_seconds; },
            .results = [results = std::move(results)] { return results; }};
  }

  KernelDecision Decide(const KernelCandidate& fused, const KernelCandidate& plain) {
    return DecideKernel({.operation = FusedOperation::kFeedForward,
                         .fused = fused,
                         .plain = plain,
                         .wait = [this] { now_ += std::exchange(queued_, 0); },
                         .tolerance = 1e-3,
                         .is_out_of_memory =
                             [](const std::exception& error) {
                               return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
                             },
                         .is_device_lost =
                             [](const std::exception& error) {
                               return std::string(error.what()) == "illegal access";
                             }},
                        [this] { return now_; });
  }

 private:
  double queued_ = 0;
  double now_ = 100;
};

TEST_F(KernelSelectionTest, TakesTheFasterOne) {
  const KernelDecision kernel = Decide(Candidate(0.002), Candidate(0.006));
  EXPECT_TRUE(kernel.fused);
  EXPECT_EQ(kernel.reason, "the kernel takes 2 ms, LibTorch's operators 6 ms");
  EXPECT_EQ(kernel.summary, "fused 3.00x");
  const KernelDecision operators = Decide(Candidate(0.006), Candidate(0.003));
  EXPECT_FALSE(operators.fused);
  EXPECT_EQ(operators.reason, "the kernel takes 6 ms, LibTorch's operators 3 ms");
  EXPECT_EQ(operators.summary, "plain: slower 0.50x");
}

TEST_F(KernelSelectionTest, NearlyEqualTimesKeepTheKernel) {
  EXPECT_TRUE(Decide(Candidate(0.0100), Candidate(0.0095)).fused);
  EXPECT_TRUE(Decide(Candidate(0), Candidate(0)).fused) << "a clock that stands still";
}

TEST_F(KernelSelectionTest, AFasterKernelThatDisagreesIsNotTaken) {
  const KernelDecision value = Decide(Candidate(0.001, {{1, -2, 3.1}, {10, 0}}), Candidate(0.9));
  EXPECT_FALSE(value.fused);
  EXPECT_THAT(value.reason, HasSubstr("result 1 of 2 differs from LibTorch's operators by 0.033"));
  EXPECT_EQ(value.summary, "plain: disagrees");
  const KernelDecision gradient = Decide(Candidate(0.001, {{1, -2, 3}, {10, 0.1}}), Candidate(0.9));
  EXPECT_FALSE(gradient.fused);
  EXPECT_THAT(gradient.reason, HasSubstr("result 2 of 2 differs"));
}

TEST_F(KernelSelectionTest, ToleranceIsAShareOfTheLargestNumber) {
  EXPECT_TRUE(Decide(Candidate(0.001, {{1, -2, 3.0029}, {10, 0.009}}), Candidate(0.9)).fused);
  EXPECT_FALSE(Decide(Candidate(0.001, {{1, -2, 3.0031}, {10, 0}}), Candidate(0.9)).fused);
}

TEST_F(KernelSelectionTest, NumbersThatAreNotFiniteDisagree) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {nan, infinity, -infinity}) {
    EXPECT_FALSE(Decide(Candidate(0.001, {{1, -2, wrong}, {10, 0}}), Candidate(0.9)).fused);
    EXPECT_FALSE(Decide(Candidate(0.001), Candidate(0.9, {{1, -2, wrong}, {10, 0}})).fused);
    const Results both = {{1, -2, wrong}, {10, 0}};
    EXPECT_TRUE(Decide(Candidate(0.001, both), Candidate(0.9, both)).fused);
  }
}

TEST_F(KernelSelectionTest, MissingNumbersDisagree) {
  EXPECT_FALSE(Decide(Candidate(0.001, {{1, -2, 3}}), Candidate(0.9)).fused);
  EXPECT_FALSE(Decide(Candidate(0.001, {{1, -2, 3}, {10}}), Candidate(0.9)).fused);
  EXPECT_FALSE(Decide(Candidate(0.001, {{0, 0, 1e-9}}), Candidate(0.9, {{0, 0, 0}})).fused);
}

TEST_F(KernelSelectionTest, AKernelThatThrowsIsNotTaken) {
  const auto fail = []() -> Results {
    throw std::runtime_error("no kernel image\nException raised from ...");
  };
  KernelCandidate failing = Candidate(0.001);
  failing.results = fail;
  const KernelDecision at_once = Decide(failing, Candidate(0.9));
  EXPECT_FALSE(at_once.fused);
  EXPECT_EQ(at_once.reason, "the kernel failed: no kernel image");
  EXPECT_EQ(at_once.summary, "plain: fails");
  failing = Candidate(0.001);
  failing.run = [&] { fail(); };
  EXPECT_FALSE(Decide(failing, Candidate(0.9)).fused) << "while it is timed";
}

TEST_F(KernelSelectionTest, OperatorsThatThrowLeaveTheKernel) {
  KernelCandidate failing = Candidate(0.001);
  failing.results = []() -> Results { throw std::runtime_error("CUDA out of memory"); };
  const KernelDecision decision = Decide(Candidate(0.9), failing);
  EXPECT_TRUE(decision.fused);
  EXPECT_EQ(decision.reason, "not checked: LibTorch's operators failed: CUDA out of memory");
  failing = Candidate(0.001);
  failing.run = [] { throw std::runtime_error("CUDA out of memory"); };
  const KernelDecision checked = Decide(Candidate(0.9), failing);
  EXPECT_TRUE(checked.fused);
  EXPECT_EQ(checked.reason, "agrees, not timed: LibTorch's operators failed: CUDA out of memory");
  EXPECT_FALSE(Decide(Candidate(0.9, {{1, -2, 3}, {10, 0.1}}), failing).fused) << "disagrees";
}

TEST_F(KernelSelectionTest, DecisionSaysThatMemoryRanOut) {
  const auto exhaust = []() -> Results { throw std::bad_alloc(); };
  const auto fail = []() -> Results { throw std::runtime_error("no kernel image"); };
  KernelCandidate exhausted = Candidate(0.001), failing = Candidate(0.001);
  exhausted.results = exhaust;
  failing.results = fail;
  EXPECT_TRUE(Decide(exhausted, Candidate(0.9)).out_of_memory);
  EXPECT_TRUE(Decide(Candidate(0.9), exhausted).out_of_memory);
  EXPECT_FALSE(Decide(failing, Candidate(0.9)).out_of_memory);
  EXPECT_FALSE(Decide(Candidate(0.9), failing).out_of_memory);
  EXPECT_FALSE(Decide(Candidate(0.9), Candidate(0.9)).out_of_memory);
  exhausted = Candidate(0.001);
  exhausted.run = [&] { exhaust(); };
  EXPECT_TRUE(Decide(exhausted, Candidate(0.9)).out_of_memory) << "while it is timed";
}

TEST_F(KernelSelectionTest, LostDeviceEndsTheComparison) {
  const auto fault = []() -> Results { throw std::runtime_error("illegal access"); };
  KernelCandidate faulty = Candidate(0.001);
  faulty.results = fault;
  EXPECT_THROW(Decide(faulty, Candidate(0.9)), std::runtime_error);
  EXPECT_THROW(Decide(Candidate(0.9), faulty), std::runtime_error);
}

TEST(KernelDecisionsTest, BecomeAChoiceAndASummary) {
  const std::vector<KernelDecision> decisions = {
      {.operation = FusedOperation::kAttention, .fused = true, .summary = "fused 3.05x"},
      {.operation = FusedOperation::kAddLayerNorm, .fused = false, .summary = "plain: disagrees"}};
  const KernelChoice choice = ChoiceOf(decisions);
  for (const FusedOperation operation : kFusedOperations) {
    EXPECT_EQ(choice.fused(operation), operation != FusedOperation::kAddLayerNorm);
  }
  EXPECT_EQ(SummaryOf(decisions), "attention fused 3.05x, layer norm plain: disagrees");
}

TEST(KernelChoiceTest, DescriptionNamesWhatIsPlain) {
  EXPECT_EQ(DescribeChoice(KernelChoice::Fused()), "fused");
  EXPECT_EQ(DescribeChoice(KernelChoice::Plain()), "plain");
  KernelChoice mixed;
  mixed.Set(FusedOperation::kAttention, false);
  mixed.Set(FusedOperation::kAdam, false);
  EXPECT_EQ(DescribeChoice(mixed), "attention plain, Adam plain");
}

TEST(KernelChoiceTest, ScopesNest) {
  EXPECT_EQ(CurrentKernels(), KernelChoice::Fused());
  {
    const KernelScope plain(KernelChoice::Plain());
    for (const FusedOperation operation : kFusedOperations) {
      EXPECT_FALSE(UsesFusedKernel(operation)) << NameOf(operation);
    }
    {
      const KernelScope fused(KernelChoice::Fused());
      EXPECT_TRUE(UsesFusedKernel(FusedOperation::kAdam));
    }
    EXPECT_FALSE(UsesFusedKernel(FusedOperation::kAdam));
  }
  EXPECT_EQ(CurrentKernels(), KernelChoice::Fused());
}

}  // namespace
}  // namespace lengthwise::models
