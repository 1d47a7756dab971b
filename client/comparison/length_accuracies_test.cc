#include "client/comparison/length_accuracies.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

class LengthAccuraciesTest : public testing::Test {
 protected:
  LengthAccuraciesTest() {
    table_.columns = {{.key = "fire", .label = "FIRE", .length = 100}};
    for (const char* encoding : {"fire", "none"}) {
      auto& cell = *summary_.add_cells();
      cell.set_task("addition");
      cell.set_network("small");
      cell.set_encoding(encoding);
      cell.set_learning_rate(1e-3);
    }
  }

  // A trial with an evaluation at 50 and at 100.
  void Add(const std::string& id, const std::string& encoding, double at_100, bool is_final = true,
           v1::TrialState state = v1::SUCCEEDED) {
    v1::Trial trial;
    trial.set_name(id);
    trial.set_state(state);
    v1::TrialSpecification& specification = *trial.mutable_specification();
    specification.mutable_task()->set_name("decimal_addition");
    specification.mutable_task()->set_label("addition");
    specification.mutable_network()->set_label("small");
    specification.mutable_encoding()->set_name(encoding);
    specification.set_learning_rate(1e-3);
    trials_.push_back(trial);
    auto& evaluation = *accuracies_.add_evaluations();
    evaluation.set_trial(id);
    evaluation.mutable_accuracies()->set_final(is_final);
    evaluation.mutable_accuracies()->add_lengths(50);
    evaluation.mutable_accuracies()->add_accuracies(1);
    evaluation.mutable_accuracies()->add_lengths(100);
    evaluation.mutable_accuracies()->add_accuracies(at_100);
  }

  LengthAccuracyStatistics SumUp() const {
    return SumUpLengthAccuracies(table_, summary_, trials_, accuracies_);
  }

  PublishedTable table_;
  v1::SummarizeExperimentResponse summary_;
  std::vector<v1::Trial> trials_;
  v1::QueryLengthAccuraciesResponse accuracies_;
};

TEST_F(LengthAccuraciesTest, SumsUpTheTrialsOfEachCellAtTheTablesLengths) {
  Add("1", "fire", 0.2);
  Add("2", "fire", 0.98);
  Add("3", "none", 0);
  const LengthAccuracyStatistics statistics = SumUp();
  ASSERT_EQ(statistics.size(), 2u) << "nothing of length 50";
  const SeedStatistic& fire = statistics.at({0, 100});
  EXPECT_EQ(fire.trials(), 2);
  EXPECT_DOUBLE_EQ(fire.mean(), 0.59);
  EXPECT_DOUBLE_EQ(fire.min(), 0.2);
  EXPECT_DOUBLE_EQ(fire.max(), 0.98);
  EXPECT_DOUBLE_EQ(fire.deviation(), 0.78 / std::sqrt(2));
  EXPECT_EQ(statistics.at({1, 100}).trials(), 1);
  EXPECT_EQ(statistics.at({1, 100}).deviation(), 0);
}

TEST_F(LengthAccuraciesTest, OnlyFinalEvaluationsOfSucceededTrialsCount) {
  Add("1", "fire", 0.2, /*is_final=*/false);
  Add("2", "fire", 0.3, /*is_final=*/true, v1::RUNNING);
  Add("3", "rope", 0.4);
  EXPECT_TRUE(SumUp().empty());
}

}  // namespace
}  // namespace lengthwise::client
