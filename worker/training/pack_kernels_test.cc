#include "worker/training/pack_kernels.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/kernel_choice.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/device.h"
#include "worker/training/pack_run.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker::training {
namespace {

using models::FusedOperation;
using models::KernelChoice;
using models::KernelDecision;
using ::testing::HasSubstr;

Blueprint TinyBlueprint(const std::string& precision = "float32") {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_training()->set_precision(precision);
  return MakeBlueprint(trial).value();
}

// Fakes a GPU that runs the kernels, with slow attention.
class PackKernelsTest : public ::testing::Test {
 protected:
  PackKernelsTest() {
    device_.cuda = true;
    options_.why_none = [](const Device&) { return ""; };
    options_.measure = [this](const KernelProblem& problem, const Device&) {
      measured_.push_back(problem.members);
      return std::vector<KernelDecision>{
          {.operation = FusedOperation::kAttention,
           .fused = false,
           .summary = "plain: slower 0.5x"},
          {.operation = FusedOperation::kAdam, .fused = true, .summary = "fused 2.00x"}};
    };
  }

  Device device_;
  PackKernels::Options options_;
  std::vector<int64_t> measured_;
};

TEST_F(PackKernelsTest, EachShapeIsMeasuredOnce) {
  PackKernels kernels(device_, options_);
  EXPECT_EQ(kernels.summary(), "auto");
  const Blueprint blueprint = TinyBlueprint();
  for (int repetition = 0; repetition < 2; ++repetition) {
    const PackKernels::Chosen chosen = kernels.Choose(blueprint, 3);
    EXPECT_FALSE(chosen.choice.fused(FusedOperation::kAttention));
    EXPECT_TRUE(chosen.choice.fused(FusedOperation::kAdam));
    EXPECT_EQ(chosen.summary, "attention plain: slower 0.5x, Adam fused 2.00x");
    EXPECT_EQ(kernels.summary(), chosen.summary);
  }
  EXPECT_THAT(measured_, testing::ElementsAre(3));
  kernels.Choose(blueprint, 4);
  kernels.Choose(TinyBlueprint("bfloat16"), 3);
  EXPECT_THAT(measured_, testing::ElementsAre(3, 4, 3));
}

TEST_F(PackKernelsTest, LogNamesTheSequencesThatWereMeasured) {
  PackKernels kernels(device_, options_);
  Blueprint blueprint = TinyBlueprint();
  blueprint.training.set_batch_size(128);
  testing::internal::CaptureStderr();
  kernels.Choose(blueprint, 30);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("packs of 30, 128 sequences of "));
}

TEST(KernelProblemTest, IsTheBatchOfAStepIfMemoryAllows) {
  Blueprint blueprint = TinyBlueprint();
  blueprint.training.set_batch_size(128);
  EXPECT_EQ(ProblemOf(blueprint, 30).sequences, 128);
  blueprint.training.mutable_lengths()->set_max(500);
  const KernelProblem large = ProblemOf(blueprint, 30);
  EXPECT_LT(large.sequences, 128);
  EXPECT_GE(large.sequences, 1);
  // LibTorch's logits of float32: 2 GiB.
  EXPECT_LE(large.members * large.sequences * large.heads * large.tokens * large.tokens * 4,
            int64_t{2} << 30);
}

// Without attention its kernel is not measured, so the decision is of no use for others.
TEST_F(PackKernelsTest, NetworkWithoutAttentionIsMeasuredApart) {
  PackKernels kernels(device_, options_);
  Blueprint blueprint = TinyBlueprint();
  kernels.Choose(blueprint, 3);
  blueprint.size.as_vectors = true;
  kernels.Choose(blueprint, 3);
  EXPECT_THAT(measured_, testing::ElementsAre(3, 3));
}

TEST_F(PackKernelsTest, DecisionWithoutMemoryIsForgotten) {
  bool exhausted = true;
  options_.measure = [&](const KernelProblem& problem, const Device&) {
    measured_.push_back(problem.members);
    return std::vector<KernelDecision>{
        {.operation = FusedOperation::kAttention, .fused = true, .summary = "fused 2.00x"},
        {.operation = FusedOperation::kAdam,
         .fused = !exhausted,
         .summary = exhausted ? "plain: fails" : "fused 2.00x",
         .out_of_memory = exhausted}};
  };
  PackKernels kernels(device_, options_);
  const Blueprint blueprint = TinyBlueprint();
  const PackKernels::Chosen without_memory = kernels.Choose(blueprint, 3);
  EXPECT_FALSE(without_memory.choice.fused(FusedOperation::kAdam));
  EXPECT_EQ(without_memory.summary, "attention fused 2.00x, Adam plain: fails");
  exhausted = false;
  for (int repetition = 0; repetition < 2; ++repetition) {
    EXPECT_TRUE(kernels.Choose(blueprint, 3).choice.fused(FusedOperation::kAdam));
    EXPECT_EQ(kernels.summary(), "attention fused 2.00x, Adam fused 2.00x");
  }
  EXPECT_THAT(measured_, testing::ElementsAre(3, 3)) << "measured again once, then remembered";
}

TEST_F(PackKernelsTest, NamedKernelsAreNotMeasured) {
  options_.mode = "fused";
  PackKernels fused(device_, options_);
  EXPECT_EQ(fused.Choose(TinyBlueprint(), 3).choice, KernelChoice::Fused());
  EXPECT_EQ(fused.summary(), "fused");
  options_.mode = "plain";
  PackKernels plain(device_, options_);
  EXPECT_EQ(plain.Choose(TinyBlueprint(), 3).choice, KernelChoice::Plain());
  EXPECT_EQ(plain.summary(), "plain");
  EXPECT_TRUE(measured_.empty());
}

TEST_F(PackKernelsTest, DeviceWithoutKernelsUsesOperators) {
  options_.why_none = [](const Device&) { return "compute capability 7.5 is below 8.0"; };
  for (const char* mode : {"auto", "fused"}) {
    options_.mode = mode;
    PackKernels kernels(device_, options_);
    const PackKernels::Chosen chosen = kernels.Choose(TinyBlueprint(), 3);
    EXPECT_EQ(chosen.choice, KernelChoice::Plain());
    EXPECT_EQ(chosen.summary, "plain: compute capability 7.5 is below 8.0");
  }
  options_.why_none = [](const Device&) { return ""; };
  EXPECT_EQ(PackKernels(device_, options_).Choose(TinyBlueprint("float64"), 3).summary,
            "plain: float64");
  EXPECT_TRUE(measured_.empty());
}

TEST_F(PackKernelsTest, CpuAlwaysUsesItsKernels) {
  device_.cuda = false;
  for (const char* mode : {"auto", "fused", "plain"}) {
    options_.mode = mode;
    PackKernels kernels(device_, options_);
    EXPECT_EQ(kernels.Choose(TinyBlueprint(), 3).choice, KernelChoice::Fused());
    EXPECT_EQ(kernels.summary(), "");
  }
  EXPECT_TRUE(measured_.empty());
}

// The pack runs on a CPU, whose layers heed the choice as a GPU's do.
class KernelProvenanceTest : public PackKernelsTest {
 protected:
  // Runs the lease until the session drains it or to the end. Null kernels: a CPU's.
  void Run(const v1::Lease& lease, PackKernels* kernels) {
    const Device cpu = OpenDevice("cpu", 1).value();
    PrepareThread(cpu);
    std::vector<int64_t> trials;
    for (int i = 0; i < lease.trials_size(); ++i) trials.push_back(i);
    EXPECT_TRUE(PackRun(lease, trials, cpu, session_, /*sharing=*/nullptr, kernels).Run().ok());
  }
  void DrainAfter(int64_t steps) {
    session_.directive = [this, until = session_.asked() + steps](int64_t, int64_t asked) {
      return asked < until ? PackSession::Directive::kContinue : PackSession::Directive::kDrain;
    };
  }
  std::string Provenance(int64_t trial) { return session_.OutcomeOf(trial).provenance().kernels(); }

  RecordingSession session_;
};

TEST_F(KernelProvenanceTest, NamesTheKernelsOfEveryAttempt) {
  PackKernels measured(device_, options_);
  options_.mode = "plain";
  PackKernels plain(device_, options_);
  v1::Lease lease = LeaseOf({TinyTrial()});
  DrainAfter(7);
  Run(lease, &plain);
  session_.Rewind(lease);
  EXPECT_EQ(lease.trials(0).checkpoint_step(), 7);
  DrainAfter(5);
  Run(lease, &measured);
  session_.Rewind(lease);
  session_.directive = nullptr;
  Run(lease, &measured);
  EXPECT_EQ(session_.OutcomeOf(0).kind(), v1::Outcome::COMPLETED);
  EXPECT_EQ(Provenance(0),
            "steps 1 to 7: plain; steps 8 to 40: attention plain: slower 0.5x, Adam fused 2.00x");
}

TEST_F(KernelProvenanceTest, SplitPackNamesTheWholePacksKernels) {
  PackKernels measured(device_, options_);
  options_.mode = "fused";
  PackKernels fused(device_, options_);
  v1::Lease pack = LeaseOf({TinyTrial(1), TinyTrial(2)});
  DrainAfter(2 * 7);
  Run(pack, &measured);
  session_.Rewind(pack);
  session_.directive = nullptr;
  v1::Lease half = pack;
  half.mutable_trials()->RemoveLast();
  Run(half, &fused);
  EXPECT_EQ(Provenance(0), "steps 1 to 7: attention plain; steps 8 to 40: fused");
}

TEST_F(KernelProvenanceTest, NamesOtherDevicesAndLaterEvaluations) {
  options_.mode = "plain";
  PackKernels plain(device_, options_);
  v1::Lease lease = LeaseOf({TinyTrial()});
  DrainAfter(7);
  Run(lease, nullptr);
  EXPECT_EQ(session_.checkpoints(0).at(7).find("\"kernels\""), std::string::npos)
      << "a CPU's checkpoint stays as it was";
  session_.Rewind(lease);
  DrainAfter(5);
  Run(lease, &plain);
  session_.Rewind(lease);
  session_.directive = nullptr;
  Run(lease, nullptr);
  EXPECT_EQ(Provenance(0),
            "steps 1 to 7: not recorded; steps 8 to 12: plain; steps 13 to 40: on a CPU");
  session_.Rewind(lease);
  ASSERT_EQ(lease.trials(0).checkpoint_step(), 40);
  Run(lease, &plain);
  EXPECT_EQ(Provenance(0),
            "steps 1 to 7: not recorded; steps 8 to 12: plain; steps 13 to 40: on a CPU; "
            "evaluation: plain");
}

// Compares the CPU's kernels with LibTorch's operators, by the code that compares a GPU's.
TEST(MeasureKernelsTest, EveryKernelOfTheCpuAgrees) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  for (const char* encoding :
       {"none", "sin_cos", "learned", "rope", "alibi", "relative", "t5", "shaw", "fire"}) {
    for (const int64_t members : {1, 2}) {
      v1::TrialSpecification trial = TinyTrial();
      trial.mutable_encoding()->Clear();
      SetEncoding(encoding, trial);
      const Blueprint blueprint = MakeBlueprint(trial).value();
      const std::vector<KernelDecision> decisions =
          MeasureKernels(ProblemOf(blueprint, members), device);
      ASSERT_EQ(decisions.size(), models::kFusedOperations.size());
      for (size_t i = 0; i < decisions.size(); ++i) {
        EXPECT_EQ(decisions[i].operation, models::kFusedOperations[i]);
        EXPECT_THAT(decisions[i].reason, HasSubstr("the kernel takes"))
            << encoding << ", " << models::NameOf(decisions[i].operation);
      }
    }
  }
}

TEST(MeasureKernelsTest, CausalAttentionAgrees) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  const std::vector<KernelDecision> decisions =
      MeasureKernels(ProblemOf(MakeBlueprint(TinyTextTrial()).value(), 1), device);
  ASSERT_EQ(decisions[0].operation, FusedOperation::kAttention);
  EXPECT_THAT(decisions[0].reason, HasSubstr("the kernel takes"));
}

TEST(MeasureKernelsTest, OnlyTheTrialsOptimizerIsMeasured) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  const auto measures_adam = [&](const std::string& optimizer) {
    v1::TrialSpecification trial = TinyTrial();
    v1::Training& training = *trial.mutable_training();
    training.mutable_optimizer()->Clear();
    training.mutable_optimizer()->set_name(optimizer);
    const std::vector<KernelDecision> decisions =
        MeasureKernels(ProblemOf(MakeBlueprint(trial).value(), 1), device);
    return decisions.back().operation == FusedOperation::kAdam;
  };
  EXPECT_TRUE(measures_adam("adam"));
  EXPECT_TRUE(measures_adam("adamw"));
  EXPECT_FALSE(measures_adam("sgd"));
}

TEST(MeasureKernelsTest, UnbuildableKernelIsNotChecked) {
  const Device device = OpenDevice("cpu", 1).value();
  KernelProblem problem = ProblemOf(TinyBlueprint(), 1);
  problem.encoding.name = "no_such_encoding";
  const KernelDecision attention = MeasureKernels(problem, device)[0];
  EXPECT_TRUE(attention.fused);
  EXPECT_EQ(attention.summary, "fused: not checked");
  EXPECT_THAT(attention.reason, HasSubstr("no_such_encoding"));
}

TEST(MeasureKernelsTest, DecisionsSayThatMemoryRanOut) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  KernelProblem problem = ProblemOf(TinyBlueprint(), 1);
  for (const KernelDecision& decision : MeasureKernels(problem, device)) {
    EXPECT_FALSE(decision.out_of_memory) << decision.reason;
  }
  problem.sequences = int64_t{1} << 44;  // beyond the address space
  for (const KernelDecision& decision : MeasureKernels(problem, device)) {
    const bool has_sequences = decision.operation != FusedOperation::kAdam;
    EXPECT_EQ(decision.out_of_memory, has_sequences) << decision.reason;
  }
}

TEST(KernelFlagTest, DoesNotChangeResultsOnACpu) {
  std::vector<std::vector<std::string>> histories;
  for (const char* mode : {"auto", "fused", "plain"}) {
    const auto runner = CreatePackRunner({.device = "cpu", .threads = 1, .kernels = mode}).value();
    RecordingSession session;
    ASSERT_TRUE(runner->Run(LeaseOf({TinyTrial()}), session).ok());
    EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED);
    EXPECT_EQ(session.OutcomeOf(0).provenance().kernels(), "");
    histories.push_back(session.History(0));
  }
  EXPECT_EQ(histories[0], histories[1]);
  EXPECT_EQ(histories[0], histories[2]);
}

}  // namespace
}  // namespace lengthwise::worker::training
