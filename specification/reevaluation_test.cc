#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/expand.h"
#include "specification/resolve.h"

namespace lengthwise::specification {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kTrial[] = "experiments/sort-1/trials/t";

class ReevaluationTest : public testing::Test {
 protected:
  ReevaluationTest() {
    v1::SpecificationText text;
    text.set_format(v1::SpecificationText::YAML);
    text.set_text(R"yaml(
name: sort
priority: 3
tasks: bucket_sort
encodings: [none, {name: sin_cos, randomized: true, max_position: 512, label: drawn}]
learning_rates: [0.001, 0.0003]
weight_seeds: [3, 4]
data_seeds: 5
training: {steps: 100, lengths: 1..8, checkpoint_every_steps: 50}
evaluation:
  lengths: 1..20
  sequences: 10
  every_steps: 25
  interval_lengths: [4, 16]
  attention_lengths: [4, 8]
)yaml");
    grid_ = Resolve(text, Limits()).value();
    source_ = grid_.trials.back().Specification();
  }

  absl::StatusOr<Grid> Reevaluate(const v1::Evaluation& changes) {
    absl::StatusOr<Grid> grid =
        Resolve(ReevaluationSpecification(grid_.specification, source_, changes), Limits());
    if (grid.ok()) MakeReevaluation(source_, kTrial, *grid);
    return grid;
  }

  Grid grid_;
  v1::TrialSpecification source_;
};

TEST_F(ReevaluationTest, ChangesOnlyTheEvaluation) {
  v1::Evaluation changes;
  for (const int32_t length : {40, 30}) changes.add_lengths(length);
  changes.set_sequences(7);
  const absl::StatusOr<Grid> grid = Reevaluate(changes);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->specification.name(), "sort_evaluation");
  EXPECT_EQ(grid->specification.priority(), 3);
  EXPECT_EQ(grid->specification.evaluated_trial(), kTrial);
  ASSERT_EQ(grid->trials.size(), 1u);
  EXPECT_EQ(grid->trials[0].id, grid_.trials.back().id);
  EXPECT_THAT(grid->trials[0].id, HasSubstr("drawn-lr0.0003-weights4-data5"));
  v1::TrialSpecification expected = source_;
  expected.mutable_evaluation()->clear_lengths();
  expected.mutable_evaluation()->add_lengths(30);
  expected.mutable_evaluation()->add_lengths(40);
  expected.mutable_evaluation()->set_sequences(7);
  expected.mutable_evaluation()->clear_attention_lengths();
  expected.mutable_evaluation()->clear_attention_sequences();
  expected.set_evaluated_trial(kTrial);
  EXPECT_EQ(grid->trials[0].Specification().DebugString(), expected.DebugString());
  EXPECT_NE(grid->trials[0].pack->key, grid_.trials.back().pack->key);
}

TEST_F(ReevaluationTest, NoChangesKeepTheTrialsEvaluation) {
  const absl::StatusOr<Grid> grid = Reevaluate({});
  ASSERT_TRUE(grid.ok()) << grid.status();
  v1::Evaluation expected = source_.evaluation();
  expected.clear_attention_lengths();
  expected.clear_attention_sequences();
  EXPECT_EQ(grid->trials[0].pack->specification.evaluation().DebugString(), expected.DebugString());
}

// Sequences that chose it may be longer than those that are asked for now.
TEST_F(ReevaluationTest, ValidationIsNotRepeated) {
  v1::Validation& own = *source_.mutable_evaluation()->mutable_validation();
  own.add_lengths(20);
  v1::Evaluation changes;
  changes.add_lengths(3);
  const absl::StatusOr<Grid> grid = Reevaluate(changes);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_FALSE(grid->trials[0].pack->specification.evaluation().has_validation());
  changes.mutable_validation()->add_lengths(5);
  EXPECT_TRUE(Reevaluate(changes)->trials[0].pack->specification.evaluation().has_validation());
}

TEST_F(ReevaluationTest, ProjectionKeepsUnsetFields) {
  v1::ProjectionSettings& own = *source_.mutable_evaluation()->mutable_projection();
  own.set_fitted_length(6);
  own.set_sequences(9);
  own.add_lengths(6);
  EXPECT_FALSE(Reevaluate({})->trials[0].pack->specification.evaluation().has_projection());
  v1::Evaluation changes;
  changes.mutable_projection()->add_lengths(20);
  const absl::StatusOr<Grid> grid = Reevaluate(changes);
  ASSERT_TRUE(grid.ok()) << grid.status();
  const auto& projection = grid->trials[0].pack->specification.evaluation().projection();
  EXPECT_EQ(projection.fitted_length(), 6);
  EXPECT_EQ(projection.sequences(), 9);
  EXPECT_THAT(projection.lengths(), ElementsAre(20));
}

TEST_F(ReevaluationTest, MakesOnlyRequestedAnalyses) {
  v1::Evaluation& own = *source_.mutable_evaluation();
  own.set_attention_sequences(9);
  own.set_sequence_scores(true);
  own.add_embedding_noise(0.5);
  v1::Evaluation resolved = Reevaluate({})->trials[0].pack->specification.evaluation();
  EXPECT_FALSE(resolved.has_attention_sequences());
  EXPECT_FALSE(resolved.sequence_scores());
  EXPECT_THAT(resolved.embedding_noise(), IsEmpty());
  v1::Evaluation changes;
  changes.set_sequence_scores(true);
  changes.add_attention_lengths(4);
  changes.set_attention_sequences(3);
  for (const double deviation : {0.02, 0.1}) changes.add_embedding_noise(deviation);
  const absl::StatusOr<Grid> grid = Reevaluate(changes);
  ASSERT_TRUE(grid.ok()) << grid.status();
  resolved = grid->trials[0].pack->specification.evaluation();
  EXPECT_TRUE(resolved.sequence_scores());
  EXPECT_EQ(resolved.attention_sequences(), 3);
  EXPECT_THAT(resolved.embedding_noise(), ElementsAre(0.02, 0.1));
  // The trial has no data set.
  changes.set_training_examples(10);
  EXPECT_THAT(std::string(Reevaluate(changes).status().message()),
              HasSubstr("evaluation.training_examples: needs a data set"));
}

TEST_F(ReevaluationTest, IgnoresEvaluationsDuringTraining) {
  v1::Evaluation changes;
  changes.set_every_steps(1);
  changes.add_interval_lengths(2);
  changes.set_interval_sequences(3);
  const absl::StatusOr<Grid> grid = Reevaluate(changes);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->trials[0].pack->specification.evaluation().every_steps(), 25);
  EXPECT_THAT(grid->trials[0].pack->specification.evaluation().interval_lengths(),
              ElementsAre(4, 16));
}

TEST_F(ReevaluationTest, MistakesAreThoseOfASubmission) {
  v1::Evaluation changes;
  changes.add_lengths(0);
  changes.set_sequences(-1);
  const std::string message(Reevaluate(changes).status().message());
  EXPECT_THAT(message, HasSubstr("evaluation.lengths: got 0"));
  EXPECT_THAT(message, HasSubstr("evaluation.sequences: got -1"));
  // Longer than the encoding has positions.
  changes.Clear();
  changes.add_lengths(513);
  EXPECT_THAT(std::string(Reevaluate(changes).status().message()), HasSubstr("encodings[0]"));
}

TEST_F(ReevaluationTest, LaterDefaultsDoNotChangeTheStoredTrial) {
  // As an older release would have resolved it.
  source_.mutable_training()->clear_schedule();
  const absl::StatusOr<Grid> grid = Reevaluate({});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_FALSE(grid->trials[0].pack->specification.training().has_schedule());
}

TEST_F(ReevaluationTest, LongNameIsTruncated) {
  grid_.specification.set_name(std::string(38, 'n'));
  grid_.specification.clear_weight_seeds();
  source_.set_data_seed(4);
  const v1::ExperimentSpecification specification =
      ReevaluationSpecification(grid_.specification, source_, {});
  EXPECT_EQ(specification.name(), std::string(29, 'n') + "_evaluation");
  EXPECT_THAT(specification.seeds(), ElementsAre(4));
  EXPECT_THAT(specification.weight_seeds(), IsEmpty());
  EXPECT_TRUE(Resolve(specification, Limits()).ok());
}

}  // namespace
}  // namespace lengthwise::specification
