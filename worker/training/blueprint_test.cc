#include "worker/training/blueprint.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const v1::TrialSpecification& specification) {
  const auto blueprint = MakeBlueprint(specification);
  EXPECT_EQ(blueprint.status().code(), absl::StatusCode::kInvalidArgument) << blueprint.status();
  return std::string(blueprint.status().message());
}

TEST(BlueprintTest, ResolvesComponentsAgainstTheCatalogues) {
  const auto blueprint = MakeBlueprint(TinyTrial());
  ASSERT_TRUE(blueprint.ok()) << blueprint.status();
  EXPECT_EQ(blueprint->examples->input_columns(), 3);
  EXPECT_EQ(blueprint->network.parameters.Int("d_model"), 16);
  EXPECT_EQ(blueprint->network.parameters.Int("blocks"), 1);
  EXPECT_TRUE(blueprint->encoding.parameters.Bool("randomized"));
  EXPECT_EQ(blueprint->size.heads, 2);
  EXPECT_EQ(blueprint->size.d_model, 16);
  // Evaluation has length 9 and as many outputs.
  EXPECT_EQ(blueprint->size.longest_sequence, 18);
}

TEST(BlueprintTest, RefusalsNameEveryField) {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_task()->set_name("reverse_strin");
  trial.mutable_training()->set_precision("float16");
  (*trial.mutable_encoding()->mutable_parameters())["maximum"].set_number_value(5);
  const std::string refusal = RefusalOf(trial);
  EXPECT_THAT(refusal, HasSubstr("reverse_string"));
  EXPECT_THAT(refusal, HasSubstr("float64"));
  EXPECT_THAT(refusal, HasSubstr("encoding.maximum"));
}

TEST(BlueprintTest, PositionsMustCoverTheLongestSequence) {
  v1::TrialSpecification trial = TinyTrial();
  (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(17);
  EXPECT_THAT(RefusalOf(trial), HasSubstr("max_position"));
  (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(18);
  EXPECT_TRUE(MakeBlueprint(trial).ok());
}

// Custom inputs and projections count, too; inputs that the task does not accept do not.
TEST(BlueprintTest, LongestSequenceIncludesAnalyses) {
  v1::TrialSpecification trial = TinyTrial();
  v1::TokenSequence& given = *trial.mutable_evaluation()->add_attention_inputs();
  for (int i = 0; i < 12; ++i) given.add_tokens(i % 2);
  EXPECT_EQ(MakeBlueprint(trial)->size.longest_sequence, 24);
  for (int i = 0; i < 12; ++i) given.add_tokens(7);
  EXPECT_EQ(MakeBlueprint(trial)->size.longest_sequence, 18);
  v1::ProjectionSettings& projection = *trial.mutable_evaluation()->mutable_projection();
  projection.set_fitted_length(10);
  projection.set_sequences(3);
  EXPECT_EQ(MakeBlueprint(trial)->size.longest_sequence, 18);
  projection.add_lengths(15);
  EXPECT_EQ(MakeBlueprint(trial)->size.longest_sequence, 30);
}

}  // namespace
}  // namespace lengthwise::worker::training
