#include "worker/data/trial_checkpoint.h"

#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/parameters/safetensors.h"
#include "proto/digest.h"

namespace lengthwise::worker::checkpoints {
namespace {

using models::ReadSafetensors;
using models::TensorFile;
using models::TensorView;
using models::WriteSafetensors;

using ::testing::HasSubstr;

models::ParameterLayout SmallLayout() {
  models::ParameterLayout layout;
  layout.Add("embedding", {3, 4}, {});
  layout.Add("bias", {5}, {});
  return layout;
}

template <typename T>
struct Rows {
  explicit Rows(const models::ParameterLayout& layout, T start = 0)
      : parameters(layout.row_size()), first(layout.row_size()), second(layout.row_size()) {
    if (start == 0) return;
    // Different in every element, but zero in the padding, as in an arena.
    for (std::vector<T>* row : {&parameters, &first, &second}) {
      for (const auto& slot : layout.slots()) {
        std::iota(row->begin() + slot.offset, row->begin() + slot.offset + slot.size, start);
        start += 100;
      }
    }
  }
  TrialRows Bytes() {
    const auto bytes = [](std::vector<T>& row) {
      return absl::MakeSpan(reinterpret_cast<char*>(row.data()), sizeof(T) * row.size());
    };
    return {sizeof(T) == 8 ? models::DataType::kFloat64 : models::DataType::kFloat32,
            bytes(parameters), bytes(first), bytes(second)};
  }
  bool operator==(const Rows&) const = default;

  std::vector<T> parameters, first, second;
};

const CheckpointHeader kHeader = {.step = 1234, .program_version = "0.1", .fingerprint = "f00"};

template <typename T>
class TrialCheckpointTest : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TrialCheckpointTest, Precisions);

TYPED_TEST(TrialCheckpointTest, ReadsBackEveryNumberAndTheHeader) {
  const models::ParameterLayout layout = SmallLayout();
  Rows<TypeParam> saved(layout, 0.5);
  const std::string bytes = WriteTrialCheckpoint(layout, kHeader, saved.Bytes());

  Rows<TypeParam> loaded(layout);
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", loaded.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->step, 1234);
  EXPECT_EQ(header->program_version, "0.1");
  EXPECT_EQ(loaded, saved);
}

TYPED_TEST(TrialCheckpointTest, StoresTrainingSecondsAndStopReason) {
  const models::ParameterLayout layout = SmallLayout();
  CheckpointHeader stopped = kHeader;
  stopped.training_seconds = 1.0 / 3;
  stopped.stop_reason = "it was \"enough\"";
  Rows<TypeParam> saved(layout, 1);
  Rows<TypeParam> loaded(layout);
  const auto header = ReadTrialCheckpoint(WriteTrialCheckpoint(layout, stopped, saved.Bytes()),
                                          layout, "f00", loaded.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->training_seconds, 1.0 / 3);
  EXPECT_EQ(header->stop_reason, "it was \"enough\"");
}

TYPED_TEST(TrialCheckpointTest, WithoutOptimizerStateOnlyParametersRemain) {
  const models::ParameterLayout layout = SmallLayout();
  CheckpointHeader ended = kHeader;
  ended.has_optimizer_state = false;
  Rows<TypeParam> saved(layout, 1);
  const std::string bytes = WriteTrialCheckpoint(layout, ended, saved.Bytes());
  const auto file = ReadSafetensors(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> names;
  for (const TensorView& tensor : file->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ::testing::ElementsAre("parameters/embedding", "parameters/bias"));
  Rows<TypeParam> loaded(layout, 7);
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", loaded.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_FALSE(header->has_optimizer_state);
  EXPECT_EQ(loaded.parameters, saved.parameters);
  const std::vector<TypeParam> zeros(layout.row_size());
  EXPECT_EQ(loaded.first, zeros);
  EXPECT_EQ(loaded.second, zeros);
  // A checkpoint that lacks moments without saying so is damaged.
  TensorFile silent = ReadSafetensors(bytes).value();
  silent.metadata.erase("optimizer_state");
  EXPECT_EQ(
      ReadTrialCheckpoint(WriteSafetensors(silent), layout, "f00", loaded.Bytes()).status().code(),
      absl::StatusCode::kDataLoss);
}

TYPED_TEST(TrialCheckpointTest, StoresThatAnEvaluationIsDue) {
  const models::ParameterLayout layout = SmallLayout();
  CheckpointHeader interrupted = kHeader;
  interrupted.evaluation_due = true;
  Rows<TypeParam> rows(layout, 1);
  const std::string bytes = WriteTrialCheckpoint(layout, interrupted, rows.Bytes());
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", rows.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(header->evaluation_due);
  TensorFile other = ReadSafetensors(bytes).value();
  other.metadata["evaluation"] = "made";
  EXPECT_EQ(
      ReadTrialCheckpoint(WriteSafetensors(other), layout, "f00", rows.Bytes()).status().code(),
      absl::StatusCode::kDataLoss);
}

TYPED_TEST(TrialCheckpointTest, StoresTheLossesSinceTheNewestPoint) {
  const models::ParameterLayout layout = SmallLayout();
  CheckpointHeader between = kHeader;
  between.loss_sum = 0.1 + 0.2;
  between.losses = 2;
  Rows<TypeParam> rows(layout, 1);
  const std::string bytes = WriteTrialCheckpoint(layout, between, rows.Bytes());
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", rows.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->loss_sum, 0.1 + 0.2);
  EXPECT_EQ(header->losses, 2);
  for (const char* damaged : {"", "1", "nan 2", "1 0", "1 1235"}) {
    TensorFile other = ReadSafetensors(bytes).value();
    other.metadata["losses_since_point"] = damaged;
    EXPECT_EQ(
        ReadTrialCheckpoint(WriteSafetensors(other), layout, "f00", rows.Bytes()).status().code(),
        absl::StatusCode::kDataLoss)
        << damaged;
  }
}

TEST(TrialCheckpointTest, KeepDoesNotChangeTheFingerprint) {
  v1::TrialSpecification trial;
  trial.set_learning_rate(0.1);
  const std::string before = Fingerprint(trial);
  trial.set_keep("weights");
  EXPECT_EQ(Fingerprint(trial), before);
}

// Same as checkpoints from before these keys existed, and of trials without a time limit.
TYPED_TEST(TrialCheckpointTest, UnsetFieldsHaveNoKeys) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes = WriteTrialCheckpoint(layout, kHeader, Rows<TypeParam>(layout).Bytes());
  const auto file = ReadSafetensors(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> keys;
  for (const auto& [key, value] : file->metadata) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("format", "program_version", "specification", "step"));
  Rows<TypeParam> loaded(layout);
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", loaded.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->training_seconds, 0);
  EXPECT_EQ(header->stop_reason, "");
}

TYPED_TEST(TrialCheckpointTest, StoresTheKernelsOfEachStep) {
  const models::ParameterLayout layout = SmallLayout();
  CheckpointHeader moved = kHeader;
  moved.kernels = {{400, "attention plain, Adam plain"}, {1234, "fused"}};
  Rows<TypeParam> rows(layout, 1);
  const std::string bytes = WriteTrialCheckpoint(layout, moved, rows.Bytes());
  const auto header = ReadTrialCheckpoint(bytes, layout, "f00", rows.Bytes());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->kernels, moved.kernels);
  for (const char* const kernels :
       {"", "fused", "400", "400 ", "0 fused", "1235 fused", "400 fused;", "400 fused;400 plain"}) {
    TensorFile file = ReadSafetensors(bytes).value();
    file.metadata["kernels"] = kernels;
    EXPECT_EQ(
        ReadTrialCheckpoint(WriteSafetensors(file), layout, "f00", rows.Bytes()).status().code(),
        absl::StatusCode::kDataLoss)
        << kernels;
  }
}

TEST(TrialCheckpointTest, InvalidSecondsAreDataLoss) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes = WriteTrialCheckpoint(layout, kHeader, Rows<float>(layout).Bytes());
  for (const char* const seconds : {"", "-1", "nan", "inf", "soon"}) {
    TensorFile file = ReadSafetensors(bytes).value();
    file.metadata["training_seconds"] = seconds;
    Rows<float> loaded(layout);
    EXPECT_EQ(
        ReadTrialCheckpoint(WriteSafetensors(file), layout, "f00", loaded.Bytes()).status().code(),
        absl::StatusCode::kDataLoss)
        << seconds;
  }
}

TYPED_TEST(TrialCheckpointTest, TensorsHaveTheNamesAndShapesOfTheLayout) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes = WriteTrialCheckpoint(layout, kHeader, Rows<TypeParam>(layout).Bytes());
  const auto file = ReadSafetensors(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> names;
  for (const TensorView& tensor : file->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("parameters/embedding", "parameters/bias",
                                     "adam/first_moment/embedding", "adam/first_moment/bias",
                                     "adam/second_moment/embedding", "adam/second_moment/bias"));
  EXPECT_THAT(file->tensors[0].shape, ::testing::ElementsAre(3, 4));
}

TYPED_TEST(TrialCheckpointTest, AnotherTrialsCheckpointIsRefused) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes =
      WriteTrialCheckpoint(layout, kHeader, Rows<TypeParam>(layout, 1).Bytes());
  Rows<TypeParam> loaded(layout);
  const auto header = ReadTrialCheckpoint(bytes, layout, "bar", loaded.Bytes());
  EXPECT_EQ(header.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(header.status().message(), HasSubstr("another specification"));
  EXPECT_EQ(loaded, Rows<TypeParam>(layout));
}

TYPED_TEST(TrialCheckpointTest, TruncationIsDataLossAndChangesNoRow) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes =
      WriteTrialCheckpoint(layout, kHeader, Rows<TypeParam>(layout, 1).Bytes());
  Rows<TypeParam> loaded(layout);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto header = ReadTrialCheckpoint(bytes.substr(0, size), layout, "f00", loaded.Bytes());
    ASSERT_EQ(header.status().code(), absl::StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(loaded, Rows<TypeParam>(layout));
}

TYPED_TEST(TrialCheckpointTest, OtherNetworksCheckpointIsDataLoss) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes =
      WriteTrialCheckpoint(layout, kHeader, Rows<TypeParam>(layout, 1).Bytes());

  models::ParameterLayout transposed;
  transposed.Add("embedding", {4, 3}, {});
  transposed.Add("bias", {5}, {});
  Rows<TypeParam> rows(transposed);
  EXPECT_THAT(ReadTrialCheckpoint(bytes, transposed, "f00", rows.Bytes()).status().message(),
              HasSubstr("parameters/embedding"));

  models::ParameterLayout smaller;
  smaller.Add("embedding", {3, 4}, {});
  Rows<TypeParam> smaller_rows(smaller);
  EXPECT_EQ(ReadTrialCheckpoint(bytes, smaller, "f00", smaller_rows.Bytes()).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(TrialCheckpointTest, PrecisionsAreNotMixed) {
  const models::ParameterLayout layout = SmallLayout();
  const std::string bytes = WriteTrialCheckpoint(layout, kHeader, Rows<float>(layout, 1).Bytes());
  Rows<double> rows(layout);
  EXPECT_EQ(ReadTrialCheckpoint(bytes, layout, "f00", rows.Bytes()).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(FingerprintTest, IsTheSha256OfTheSpecification) {
  // SHA-256 of the empty string.
  EXPECT_EQ(Fingerprint({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(FingerprintTest, DependsOnTrainingButNotOnParameterOrder) {
  v1::TrialSpecification a;
  (*a.mutable_task()->mutable_parameters())["x"].set_number_value(1);
  (*a.mutable_task()->mutable_parameters())["y"].set_number_value(2);
  v1::TrialSpecification b;
  (*b.mutable_task()->mutable_parameters())["y"].set_number_value(2);
  (*b.mutable_task()->mutable_parameters())["x"].set_number_value(1);
  EXPECT_EQ(Fingerprint(a), Fingerprint(b));
  b.set_data_seed(1);
  EXPECT_NE(Fingerprint(a), Fingerprint(b));
  b = a;
  b.mutable_training()->set_stop_after_seconds(60);
  EXPECT_NE(Fingerprint(a), Fingerprint(b));
}

TEST(FingerprintTest, DoesNotDependOnHowTheModelIsEvaluated) {
  v1::TrialSpecification trained;
  trained.set_weight_seed(3);
  trained.mutable_evaluation()->add_lengths(40);
  v1::TrialSpecification evaluated = trained;
  evaluated.mutable_evaluation()->add_lengths(500);
  evaluated.set_evaluated_trial("experiments/e/trials/t");
  EXPECT_EQ(Fingerprint(trained), Fingerprint(evaluated));
  EXPECT_NE(Digest(trained), Digest(evaluated));
}

}  // namespace
}  // namespace lengthwise::worker::checkpoints
