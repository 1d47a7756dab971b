// Submissions with the real resolver: extensions and evaluations are resolved again, and must
// change nothing else.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/messages.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/sqlite_connection.h"
#include "specification/resolve.h"

namespace lengthwise::server {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kSpecification[] = R"yaml(
name: sort
protocol: randomized_positional_encodings
tasks: [bucket_sort, even_pairs]
encodings:
  - sin_cos
  - {name: sin_cos, randomized: true, max_position: 512}
learning_rates: 0.001
weight_seeds: [1, 2]
data_seeds: 5
training: {steps: 100, lengths: 1..8}
evaluation: {lengths: 1..20, sequences: 10}
)yaml";

class CoreResolvingTest : public testing::Test {
 protected:
  CoreResolvingTest() : coordinator_(NewDirectory(), 0, Resolve) {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
    v1::CreateExperimentRequest request;
    request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
    request.mutable_specification_text()->set_text(kSpecification);
    const auto created = coordinator_.TryCreate(request);
    EXPECT_TRUE(created.ok()) << created.status();
    created_ = created->experiment();
  }

  static absl::StatusOr<specification::Grid> Resolve(const v1::CreateExperimentRequest& request) {
    const specification::Limits limits = {.max_trials = 16};
    return request.has_specification_text()
               ? specification::Resolve(request.specification_text(), limits)
               : specification::Resolve(request.specification(), limits);
  }

  std::vector<v1::Trial> Trials() {
    v1::ListTrialsRequest request;
    request.set_parent(created_.name());
    const auto listed = coordinator_->reads().ListTrials(request);
    return {listed->trials().begin(), listed->trials().end()};
  }

  TestCoordinator coordinator_;
  v1::Experiment created_;
};

TEST_F(CoreResolvingTest, LengthsAreStoredOnce) {
  v1::ExtendExperimentRequest request;
  request.set_name(created_.name());
  request.add_data_seeds(6);
  ASSERT_TRUE(coordinator_.Extend(request).ok());
  const auto grid = specification::Resolve(created_.specification(), {.max_trials = 16});
  ASSERT_TRUE(grid.ok()) << grid.status();
  const std::vector<v1::Trial> trials = Trials();
  for (size_t i = 0; i < grid->trials.size(); ++i) {
    EXPECT_EQ(trials[i].specification().DebugString(),
              grid->trials[i].Specification().DebugString());
  }
  const auto database =
      SqliteConnection::Open(coordinator_.data_dir() + "/lengthwise.db", /*read_only=*/true);
  ASSERT_TRUE(database.ok()) << database.status();
  SqliteStatement packs = (*database)->Query(
      "SELECT p.specification, s.specification FROM packs p JOIN shared s ON s.key = p.shared");
  std::set<std::string> shared;
  int count = 0;
  for (; packs.Step(); ++count) {
    v1::TrialSpecification own;
    ASSERT_TRUE(own.ParseFromString(packs.String(0)));
    EXPECT_FALSE(own.has_training() || own.has_evaluation()) << own.DebugString();
    shared.insert(packs.String(1));
  }
  EXPECT_EQ(count, 4);
  EXPECT_THAT(shared, SizeIs(1));
}

TEST(PackTest, LengthsOfAGridAreKeptAndCountedOnce) {
  specification::GridPack a, b;
  for (int i = 0; i < 10'000; ++i) a.specification.mutable_evaluation()->add_lengths(1000 + i);
  b.specification = a.specification;
  a.key = "a";
  b.key = "b";
  const auto first = std::make_shared<const specification::GridPack>(a);
  const std::vector<NewTrial> trials =
      ToNewTrials({{.id = "0", .pack = first},
                   {.id = "1", .pack = first},
                   {.id = "2", .pack = std::make_shared<const specification::GridPack>(b)}});
  EXPECT_EQ(trials[0].pack, trials[1].pack);
  EXPECT_EQ(trials[0].pack->shared, trials[2].pack->shared);
  const auto lengths = static_cast<int64_t>(trials[0].pack->shared->size());
  EXPECT_GT(BytesOf(trials), lengths);
  EXPECT_LT(BytesOf(trials), 2 * lengths);
}

TEST(PackTest, IsStoredWithAllFields) {
  specification::GridPack pack;
  v1::TrialSpecification& whole = pack.specification;
  const google::protobuf::Descriptor& type = *whole.GetDescriptor();
  const google::protobuf::Reflection& reflection = *whole.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE:
        reflection.MutableMessage(&whole, field)->ParseFromString("");
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(&whole, field, field->name());
        break;
      default:  // a trial's own
        EXPECT_THAT(field->name(), AnyOf("learning_rate", "weight_seed", "data_seed"));
    }
  }
  whole.mutable_evaluation()->add_lengths(7);
  const std::vector<NewTrial> trials =
      ToNewTrials({{.pack = std::make_shared<specification::GridPack>(pack)}});
  const NewPack& made = *trials[0].pack;
  v1::TrialSpecification stored;
  ASSERT_TRUE(stored.ParseFromString(*made.shared + made.record.specification));
  EXPECT_EQ(stored.DebugString(), whole.DebugString());
}

TEST_F(CoreResolvingTest, ExtensionChangesSeedsOnly) {
  const std::vector<v1::Trial> before = Trials();
  ASSERT_THAT(before, SizeIs(8));
  v1::ExtendExperimentRequest request;
  request.set_name(created_.name());
  request.add_data_seeds(6);
  const auto extended = coordinator_.Extend(request);
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->added_trials(), 8);
  v1::ExperimentSpecification expected = created_.specification();
  expected.add_data_seeds(6);
  EXPECT_EQ(extended->experiment().specification().DebugString(), expected.DebugString());
  const std::vector<v1::Trial> after = Trials();
  ASSERT_THAT(after, SizeIs(16));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].name(), before[i].name());
    EXPECT_EQ(after[i + 8].index(), static_cast<int32_t>(i + 8));
    v1::TrialSpecification same = after[i + 8].specification();
    same.set_data_seed(5);
    EXPECT_EQ(same.DebugString(), before[i].specification().DebugString());
  }
  EXPECT_THAT(after[9].name(), HasSubstr("bucket_sort-encoder-sin_cos-lr0.001-weights2-data6"));
}

TEST_F(CoreResolvingTest, ExtensionHasTheLimitsOfASubmission) {
  v1::ExtendExperimentRequest request;
  request.set_name(created_.name());
  request.add_seeds(3);
  absl::Status status = coordinator_.Extend(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("seeds: cannot be combined with weight_seeds"));
  EXPECT_TRUE(status.GetPayload(specification::kBadRequestTypeUrl).has_value());
  request.clear_seeds();
  for (const uint64_t seed : {6, 7}) request.add_data_seeds(seed);
  status = coordinator_.Extend(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("= 24 trials; at most 16"));
  EXPECT_THAT(Trials(), SizeIs(8));
}

TEST_F(CoreResolvingTest, EvaluationChangesOnlyTheEvaluation) {
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 100, {1}));
  v1::EvaluateTrialRequest request;
  request.set_trial(lease.trials(0).trial());
  request.mutable_evaluation()->add_lengths(1'000'000);
  request.mutable_evaluation()->set_sequences(0);
  const absl::Status status = coordinator_.Evaluate(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluation.lengths: got 1000000"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluation.sequences: got 0"));

  request.mutable_evaluation()->Clear();
  request.mutable_evaluation()->add_lengths(30);
  request.mutable_evaluation()->add_attention_lengths(4);
  const auto created = coordinator_.Evaluate(request);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->experiment().name(), "experiments/sort_evaluation-1");
  EXPECT_THAT(created->trial_ids(),
              ElementsAre("bucket_sort-encoder-sin_cos-lr0.001-weights1-data5"));
  v1::TrialSpecification expected = lease.trials(0).specification();
  expected.set_evaluated_trial(request.trial());
  expected.mutable_evaluation()->clear_lengths();
  expected.mutable_evaluation()->add_lengths(30);
  expected.mutable_evaluation()->clear_attention_lengths();
  expected.mutable_evaluation()->add_attention_lengths(4);
  expected.mutable_evaluation()->set_attention_sequences(1);
  const auto trial = coordinator_->reads().GetTrial(created->experiment().name() + "/trials/" +
                                                    created->trial_ids(0));
  EXPECT_EQ(trial->specification().DebugString(), expected.DebugString());
}

}  // namespace
}  // namespace lengthwise::server
