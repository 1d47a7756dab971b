#include "specification/expand.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::specification {
namespace {

v1::TrialSpecification Trial(bool reversed) {
  v1::TrialSpecification trial;
  trial.mutable_task()->set_name("t");
  auto& parameters = *trial.mutable_encoding()->mutable_parameters();
  for (int i = 0; i < 20; ++i) {
    const int number = reversed ? 19 - i : i;
    parameters["parameter" + std::to_string(number)].set_number_value(number);
  }
  trial.set_learning_rate(0.1);
  trial.set_weight_seed(1);
  trial.set_data_seed(2);
  trial.mutable_training()->set_steps(7);
  return trial;
}

TEST(PackKeyTest, IgnoresTheOrderOfParameters) {
  EXPECT_EQ(PackKey(Trial(false)), PackKey(Trial(true)));
}

TEST(PackKeyTest, IgnoresOnlySeedsAndLearningRate) {
  v1::TrialSpecification other = Trial(false);
  other.set_learning_rate(3);
  other.set_weight_seed(3);
  other.set_data_seed(3);
  EXPECT_EQ(PackKey(other), PackKey(Trial(false)));
  other.mutable_training()->set_schedule_seed(1);
  EXPECT_NE(PackKey(other), PackKey(Trial(false)));
}

TEST(PackKeyTest, DistinguishesEvaluations) {
  v1::TrialSpecification evaluated = Trial(false);
  evaluated.set_evaluated_trial("experiments/e/trials/1");
  EXPECT_NE(PackKey(evaluated), PackKey(Trial(false)));
  v1::TrialSpecification other = evaluated;
  other.mutable_evaluation()->set_sequences(17);
  EXPECT_NE(PackKey(evaluated), PackKey(other));
}

TEST(PackKeyTest, IsTheSha256OfTheSerializedTrial) {
  // printf '\x0a\x03\x0a\x01t' | sha256sum
  v1::TrialSpecification trial;
  trial.mutable_task()->set_name("t");
  trial.set_weight_seed(5);
  EXPECT_EQ(PackKey(trial), "4925ce8563ba1c53c53e192fe93f99f092ea8453a8bbec8292ebe96c4a34dc74");
}

TEST(ExpandTest, LastAxisChangesFastest) {
  v1::ExperimentSpecification specification;
  for (const char* label : {"a", "b"}) specification.add_tasks()->set_label(label);
  specification.add_networks()->set_label("n");
  specification.add_encodings()->set_label("e");
  for (const double rate : {0.1, 1.0 / 3, 1e-7, 20.0}) specification.add_learning_rates(rate);
  for (const uint64_t seed : {1, 2}) specification.add_weight_seeds(seed);
  specification.add_data_seeds(18446744073709551615u);
  const std::vector<GridTrial> trials = Expand(specification);
  ASSERT_EQ(trials.size(), 16u);
  EXPECT_EQ(trials[0].id, "a-n-e-lr0.1-weights1-data18446744073709551615");
  EXPECT_EQ(trials[1].id, "a-n-e-lr0.1-weights2-data18446744073709551615");
  EXPECT_EQ(trials[2].id, "a-n-e-lr0.3333333333333333-weights1-data18446744073709551615");
  EXPECT_EQ(trials[4].id, "a-n-e-lr1e-07-weights1-data18446744073709551615");
  EXPECT_EQ(trials[15].id, "b-n-e-lr20-weights2-data18446744073709551615");
  EXPECT_EQ(trials[15].learning_rate, 20);
  EXPECT_EQ(trials[15].data_seed, 18446744073709551615u);
}

}  // namespace
}  // namespace lengthwise::specification
