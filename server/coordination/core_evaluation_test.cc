// Evaluations of stored models.
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoreEvaluationTest : public testing::Test {
 protected:
  explicit CoreEvaluationTest(int64_t max_database_bytes = 0)
      : coordinator_(NewDirectory(), max_database_bytes) {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
    v1::CreateExperimentRequest request;
    request.mutable_specification()->set_name("sort");
    request.mutable_specification()->add_learning_rates(0.001);
    request.mutable_specification()->add_seeds(3);
    request.mutable_specification()->mutable_training()->set_steps(30);
    request.mutable_specification()->mutable_evaluation()->add_lengths(7);
    request.mutable_specification()->mutable_evaluation()->set_sequences(500);
    source_ = coordinator_.TryCreate(request)->experiment().name() + "/trials/lr0-seed3";
    request_.set_trial(source_);
    request_.mutable_evaluation()->add_lengths(9);
  }

  // Path of a trial's model.
  std::string ModelOf(const std::string& trial) {
    std::string path = trial.substr(std::string("experiments/").size());
    path.replace(path.find("/trials"), 7, "");
    return absl::StrCat(coordinator_.data_dir(), "/artifacts/", path, "/",
                        platform::Sha256Hex("model of " + source_), ".safetensors");
  }
  std::string Evaluated(const absl::StatusOr<v1::CreateExperimentResponse>& response) {
    EXPECT_TRUE(response.ok()) << response.status();
    return response->experiment().name() + "/trials/" + response->trial_ids(0);
  }
  bool Train() { return coordinator_.Complete(coordinator_.Acquire("w"), 0, 30, {1}); }
  Submission Prepare() { return *coordinator_->submissions().PrepareEvaluation(request_); }
  // One of a submission's two transactions.
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> Create(Submission& submission) {
    using Response = std::optional<v1::CreateExperimentResponse>;
    std::promise<absl::StatusOr<Response>> created;
    coordinator_->loop().Post<Response>(
        [&] { return coordinator_->submissions().Create(submission); },
        [&](absl::StatusOr<Response> response) { created.set_value(std::move(response)); });
    return created.get_future().get();
  }
  void Copy(Submission& submission) {
    submission.copied = coordinator_->submissions().CopyFiles(submission);
  }

  TestCoordinator coordinator_;
  std::string source_;
  v1::EvaluateTrialRequest request_;
};

TEST_F(CoreEvaluationTest, LeasesTheModelWithTheChangedEvaluation) {
  ASSERT_TRUE(Train());
  request_.set_owner("me");
  const auto created = coordinator_.Evaluate(request_);
  const std::string name = Evaluated(created);
  EXPECT_EQ(name, "experiments/sort_evaluation-1/trials/lr0-seed3");
  EXPECT_EQ(created->trial_count(), 1);
  EXPECT_EQ(created->experiment().owner(), "me");
  EXPECT_EQ(created->experiment().trials().queued(), 1);
  EXPECT_EQ(created->experiment().specification().evaluated_trial(), source_);

  const v1::Trial source = *coordinator_->reads().GetTrial(source_);
  v1::TrialSpecification expected = source.specification();
  expected.set_evaluated_trial(source_);
  expected.mutable_evaluation()->set_lengths(0, 9);
  const v1::Trial trial = *coordinator_->reads().GetTrial(name);
  EXPECT_EQ(trial.specification().DebugString(), expected.DebugString());
  EXPECT_EQ(trial.checkpoint_step(), 30);

  // The copy is independent of its source: every attempt starts from it, and it stays.
  ASSERT_EQ(coordinator_.Delete("experiments/sort-1"), absl::OkStatus());
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const v1::Lease lease = coordinator_.Acquire("w");
    ASSERT_THAT(lease.trials(), SizeIs(1));
    EXPECT_EQ(lease.trials(0).trial(), name);
    EXPECT_EQ(lease.trials(0).attempt(), attempt);
    EXPECT_EQ(lease.trials(0).checkpoint_step(), 30);
    EXPECT_EQ(lease.trials(0).checkpoint().sha256(), platform::Sha256Hex("model of " + source_));
    EXPECT_EQ(coordinator_.Download(lease, 0, lease.trials(0).checkpoint().sha256()).value_or(""),
              "model of " + source_);
    coordinator_.Send(lease, {AccuraciesEvent(lease, 0, 1, 30, {0.1 * attempt})}).IgnoreError();
    if (attempt == 1) coordinator_.Release("w", lease);
    if (attempt == 2) {
      coordinator_.Close();
      ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
      ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
      coordinator_.Advance(absl::Seconds(31));
    }
    if (attempt < 3) continue;
    coordinator_.Send(lease, {OutcomeEvent(lease, 0, 2, 30, v1::Outcome::COMPLETED)}).IgnoreError();
  }
  EXPECT_EQ(coordinator_->reads().GetTrial(name)->state(), v1::SUCCEEDED);
  EXPECT_TRUE(std::filesystem::exists(ModelOf(name)));
  std::vector<double> accuracies;
  for (const v1::Event& event : coordinator_.History("experiments/sort_evaluation-1")) {
    if (event.has_length_accuracies())
      accuracies.push_back(event.length_accuracies().accuracies(0));
  }
  EXPECT_THAT(accuracies, ElementsAre(0.1 * 3));

  // An evaluation can be evaluated again.
  request_.set_trial(name);
  EXPECT_EQ(Evaluated(coordinator_.Evaluate(request_)),
            "experiments/sort_evaluation_evaluation-1/trials/lr0-seed3");
  EXPECT_EQ(coordinator_.Extend("experiments/sort_evaluation-1", {1}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoreEvaluationTest, OnlySucceededTrialsCanBeEvaluated) {
  EXPECT_EQ(coordinator_.Evaluate(request_).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Train());
  EXPECT_TRUE(coordinator_.Evaluate(request_).ok());
  request_.mutable_evaluation()->set_lengths(0, 0);
  EXPECT_EQ(coordinator_.Evaluate(request_).status().code(), absl::StatusCode::kInvalidArgument);
  request_.set_trial("experiments/sort-1/trials/lr0-seed4");
  EXPECT_EQ(coordinator_.Evaluate(request_).status().code(), absl::StatusCode::kNotFound);

  v1::CreateExperimentRequest empty;
  empty.mutable_specification()->set_name("empty");
  empty.mutable_specification()->add_learning_rates(0.1);
  empty.mutable_specification()->add_seeds(0);
  empty.mutable_specification()->set_keep("nothing");
  const std::string without_model =
      coordinator_.TryCreate(empty)->experiment().name() + "/trials/lr0-seed0";
  ASSERT_TRUE(coordinator_.Cancel("experiments/sort_evaluation-1").ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {0.5}));
  request_ = v1::EvaluateTrialRequest();
  request_.set_trial(without_model);
  const absl::Status status = coordinator_.Evaluate(request_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stored no model"));
}

TEST_F(CoreEvaluationTest, DamagedModelIsRefusedAndLeavesNoFiles) {
  ASSERT_TRUE(Train());
  for (const bool damaged : {true, false}) {
    if (damaged) {
      std::ofstream(ModelOf(source_)) << "something else";
    } else {
      std::filesystem::remove(ModelOf(source_));
    }
    EXPECT_EQ(coordinator_.Evaluate(request_).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), SizeIs(1));
    EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  }
  EXPECT_THAT(std::vector<std::filesystem::path>(
                  std::filesystem::directory_iterator(coordinator_.data_dir() + "/artifacts"),
                  std::filesystem::directory_iterator()),
              SizeIs(1));
}

// The copies come before the commit that names them.
TEST_F(CoreEvaluationTest, CopiesStayUntilTheirSubmissionEnds) {
  ASSERT_TRUE(Train());
  auto submission = std::make_unique<Submission>(Prepare());
  EXPECT_FALSE(Create(*submission)->has_value());
  Copy(*submission);
  EXPECT_EQ(submission->copied, absl::OkStatus());
  const std::string copies = coordinator_.data_dir() + "/artifacts/sort_evaluation-1";
  coordinator_->sweeper().Flush();
  EXPECT_TRUE(std::filesystem::exists(copies));
  submission.reset();  // it failed
  coordinator_->sweeper().Flush();
  EXPECT_FALSE(std::filesystem::exists(copies));
}

TEST_F(CoreEvaluationTest, SourceIsLookedUpAgainAfterTheCopy) {
  ASSERT_TRUE(Train());
  Submission replaced = Prepare();
  EXPECT_FALSE(Create(replaced)->has_value());
  Copy(replaced);
  replaced.model->artifact.sha256 = platform::Sha256Hex("another model");
  EXPECT_EQ(Create(replaced).status().code(), absl::StatusCode::kAborted);

  Submission deleted = Prepare();
  EXPECT_FALSE(Create(deleted)->has_value());
  ASSERT_EQ(coordinator_.Delete("experiments/sort-1"), absl::OkStatus());
  coordinator_->sweeper().Flush();
  Copy(deleted);
  EXPECT_EQ(deleted.copied.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Create(deleted).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CoreEvaluationTest, CallsRepeatedDuringTheCopyCreateOneExperiment) {
  ASSERT_TRUE(Train());
  request_.set_request_id("id");
  Submission first = Prepare();
  Submission second = Prepare();
  for (Submission* submission : {&first, &second}) {
    EXPECT_FALSE(Create(*submission)->has_value());
    Copy(*submission);
  }
  second.copied = absl::UnavailableError("the store is away");
  const auto created = Create(first);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ((*created)->experiment().name(), "experiments/sort_evaluation-1");
  const auto repeated = Create(second);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ((*repeated)->experiment().name(), "experiments/sort_evaluation-1");
}

TEST_F(CoreEvaluationTest, RepeatedRequestNeedsNoTrial) {
  ASSERT_TRUE(Train());
  request_.set_request_id("id");
  const std::string name = Evaluated(coordinator_.Evaluate(request_));
  EXPECT_EQ(Evaluated(coordinator_.Evaluate(request_)), name);
  v1::EvaluateTrialRequest other = request_;
  other.mutable_evaluation()->add_lengths(10);
  EXPECT_EQ(coordinator_.Evaluate(other).status().code(), absl::StatusCode::kAlreadyExists);
  v1::CreateExperimentRequest create;
  create.set_request_id("id");
  create.mutable_specification()->set_name("sort");
  EXPECT_EQ(coordinator_.TryCreate(create).status().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(coordinator_.Delete("experiments/sort-1"), absl::OkStatus());
  EXPECT_EQ(Evaluated(coordinator_.Evaluate(request_)), name);
  EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), SizeIs(1));
}

TEST_F(CoreEvaluationTest, TrialWithADamagedCopyFails) {
  ASSERT_TRUE(Train());
  const std::string name = Evaluated(coordinator_.Evaluate(request_));
  coordinator_.Close();
  std::filesystem::remove(ModelOf(name));
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  const v1::Trial trial = *coordinator_->reads().GetTrial(name);
  EXPECT_EQ(trial.state(), v1::FAILED);
  EXPECT_THAT(trial.reason(), HasSubstr("evaluate " + source_ + " again"));
  // The file's other name is not affected.
  EXPECT_TRUE(std::filesystem::exists(ModelOf(source_)));
}

TEST_F(CoreEvaluationTest, TrialWaitsForAnUnreadableCopy) {
  ASSERT_TRUE(Train());
  const std::string name = Evaluated(coordinator_.Evaluate(request_));
  const std::string model = ModelOf(name);
  std::filesystem::rename(model, model + "_aside");
  std::filesystem::create_symlink(model, model);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  EXPECT_EQ(coordinator_->reads().GetTrial(name)->state(), v1::QUEUED);
  EXPECT_THAT(coordinator_->reads().GetTrial(name)->reason(), HasSubstr("cannot be read now"));
  std::filesystem::rename(model + "_aside", model);
  coordinator_.Advance(absl::Seconds(6));
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(1));
}

class SmallStoreEvaluationTest : public CoreEvaluationTest {
 protected:
  SmallStoreEvaluationTest() : CoreEvaluationTest(400'000) {}
};

TEST_F(SmallStoreEvaluationTest, FailedCommitDeletesTheCopy) {
  ASSERT_TRUE(Train());
  // The lengths are stored with the experiment and its pack.
  int refused = 0;
  std::string name;
  for (int32_t most = 200'000; name.empty(); most -= 5'000) {
    v1::EvaluateTrialRequest large = request_;
    large.mutable_evaluation()->clear_lengths();
    for (int32_t length = 1; length <= most; ++length) {
      large.mutable_evaluation()->add_lengths(length);
    }
    const auto created = coordinator_.Evaluate(large);
    if (created.ok()) {
      name = Evaluated(created);
      break;
    }
    ++refused;
    EXPECT_EQ(created.status().code(), absl::StatusCode::kUnavailable);
    coordinator_->sweeper().Flush();
    EXPECT_EQ(*platform::ListDirectory(coordinator_.data_dir() + "/artifacts"),
              std::vector<std::string>{"sort-1"});
    EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  }
  EXPECT_GT(refused, 10);
  coordinator_->sweeper().Flush();
  EXPECT_TRUE(std::filesystem::exists(ModelOf(name)));
  EXPECT_EQ(coordinator_.Acquire("w").trials(0).trial(), name);
}

}  // namespace
}  // namespace lengthwise::server
