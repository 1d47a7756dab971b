// Work on a finished experiment with the real programs: re-evaluating a stored model, looking at
// attention and activations, adding seeds, and summarizing.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSpecification[] = R"yaml(
name: tiny
tasks: reverse_string
networks: {name: encoder, blocks: 2, heads: 2, d_model: 16}
encodings: ENCODING
learning_rates: 0.003
seeds: 0
training: {steps: 30, batch_size: 8, lengths: 1..6, report_every_steps: 10}
evaluation:
  lengths: [4, 6, 9]
  sequences: 40
  attention_lengths: 5
  projection: {lengths: [6, 9], sequences: 4}
)yaml";

struct Encoding {
  const char* name;
  const char* specification;
};

constexpr Encoding kEncodings[] = {
    {"built_in", "{name: relative, randomized: true, max_position: 64}"},
    {"formula",
     "{name: formula, randomized: true, max_position: 64, label: mine, "
     "logits: '-softplus(a) * log1p(b * abs(q - k)) / (h + 1)', angle: 'g * p * 100^(-2 * i / d)', "
     "a: {per: head, initial: 1}, b: {per: layer, initial: [0.5, 2]}, g: {initial: 1, fixed: "
     "true}}"}};

std::string NameOf(const testing::TestParamInfo<Encoding>& encoding) { return encoding.param.name; }

class AfterwardsTest : public testing::TestWithParam<Encoding> {
 protected:
  AfterwardsTest()
      : directory_(absl::StrCat(
            testing::TempDir(), "/",
            absl::StrReplaceAll(testing::UnitTest::GetInstance()->current_test_info()->name(),
                                {{"/", "_"}}))),
        server_(directory_, absl::Seconds(10)) {
    server_.Start();
    worker_ = StartWorker(server_, directory_);
    experiment_ = Submit(
        server_, absl::StrReplaceAll(kSpecification, {{"ENCODING", GetParam().specification}}));
    Watcher(server_, experiment_).WatchUntil([](const v1::Event&) { return false; });
  }

  // Waits for the experiment's end and returns its trials.
  std::vector<v1::Trial> EndedTrials(const std::string& experiment) {
    Watcher(server_, experiment).WatchUntil([](const v1::Event&) { return false; });
    v1::ListTrialsRequest request;
    request.set_parent(experiment);
    v1::ListTrialsResponse response;
    grpc::ClientContext context;
    const grpc::Status status = server_.experiments().ListTrials(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.trials().begin(), response.trials().end()};
  }

  // Final accuracies and losses of an experiment's trials, by trial id.
  std::map<std::string, v1::LengthAccuracies> FinalAccuracies(const std::string& experiment) {
    v1::QueryLengthAccuraciesRequest request;
    request.set_name(experiment);
    v1::QueryLengthAccuraciesResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        server_.experiments().QueryLengthAccuracies(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::map<std::string, v1::LengthAccuracies> accuracies;
    for (const auto& evaluation : response.evaluations()) {
      accuracies[evaluation.trial().substr(evaluation.trial().rfind('/') + 1)] =
          evaluation.accuracies();
    }
    return accuracies;
  }

  std::string Evaluate(const std::string& trial, const v1::Evaluation& evaluation) {
    v1::EvaluateTrialRequest request;
    request.set_trial(trial);
    *request.mutable_evaluation() = evaluation;
    v1::CreateExperimentResponse response;
    grpc::ClientContext context;
    const grpc::Status status = server_.experiments().EvaluateTrial(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.experiment().name();
  }

  // Runs the command line to its end and returns its output.
  std::string Client(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kClient);
    arguments.push_back("--server=" + server_.address());
    const std::string output = directory_ + "/client" + std::to_string(++calls_) + ".out";
    const Result result = RunProgram(std::move(arguments), output);
    EXPECT_EQ(result.code, 0) << result.output;
    return result.output;
  }

  const std::string directory_;
  Server server_;
  std::unique_ptr<platform::ChildProcess> worker_;
  std::string experiment_;
  int calls_ = 0;
};

TEST_P(AfterwardsTest, StoredModelScoresAsAfterTraining) {
  const std::vector<v1::Trial> trials = EndedTrials(experiment_);
  ASSERT_EQ(trials.size(), 1u);
  const std::string evaluated = Evaluate(trials[0].name(), {});
  const std::vector<v1::Trial> again = EndedTrials(evaluated);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].state(), v1::SUCCEEDED) << again[0].reason();
  EXPECT_EQ(again[0].specification().evaluated_trial(), trials[0].name());
  const auto first = FinalAccuracies(experiment_).begin()->second;
  const auto second = FinalAccuracies(evaluated).begin()->second;
  EXPECT_THAT(first.lengths(), ElementsAre(4, 6, 9));
  ASSERT_EQ(second.losses_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first.accuracies(i), second.accuracies(i));
    EXPECT_EQ(first.losses(i), second.losses(i));
  }
  EXPECT_EQ(again[0].outcome().unseen_accuracy(), trials[0].outcome().unseen_accuracy());

  // Evaluates other lengths after the first experiment was deleted.
  v1::DeleteExperimentRequest deletion;
  deletion.set_name(experiment_);
  v1::DeleteExperimentResponse deleted;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.experiments().DeleteExperiment(&context, deletion, &deleted).ok());
  v1::Evaluation longer;
  longer.add_lengths(20);
  longer.set_sequences(3);
  const std::string third = Evaluate(again[0].name(), longer);
  EXPECT_EQ(EndedTrials(third)[0].state(), v1::SUCCEEDED) << EndedTrials(third)[0].reason();
  EXPECT_THAT(FinalAccuracies(third).begin()->second.lengths(), ElementsAre(20));
}

TEST_P(AfterwardsTest, ExtensionTrainsOnlyNewSeeds) {
  const auto before = FinalAccuracies(experiment_);
  const std::vector<v1::Trial> old = EndedTrials(experiment_);
  EXPECT_THAT(Client({"extend", "tiny", "--seeds", "0..2"}), HasSubstr("Added 2 trials to tiny-1"));
  const std::vector<v1::Trial> trials = EndedTrials(experiment_);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].attempt(), old[0].attempt());
  EXPECT_EQ(trials[0].end_time().nanos(), old[0].end_time().nanos());
  std::vector<uint64_t> seeds;
  for (const v1::Trial& trial : trials) {
    EXPECT_EQ(trial.state(), v1::SUCCEEDED) << trial.reason();
    seeds.push_back(trial.specification().data_seed());
  }
  EXPECT_THAT(seeds, ElementsAre(0, 1, 2));
  const auto after = FinalAccuracies(experiment_);
  EXPECT_EQ(after.size(), 3u);
  EXPECT_EQ(after.at(before.begin()->first).losses(0), before.begin()->second.losses(0));
}

TEST_P(AfterwardsTest, SummaryIsTheMeanOfTheTrials) {
  Client({"extend", "tiny", "--seeds", "1..2", "--watch"});
  v1::SummarizeExperimentRequest request;
  request.set_name(experiment_);
  v1::SummarizeExperimentResponse summary;
  grpc::ClientContext context;
  const grpc::Status status =
      server_.experiments().SummarizeExperiment(&context, request, &summary);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(summary.cells_size(), 1);
  double unseen = 0;
  double best = 0;
  double at_length_9 = 0;
  for (const v1::Trial& trial : EndedTrials(experiment_)) {
    unseen += trial.outcome().unseen_accuracy() / 3;
    best = std::max(best, trial.outcome().unseen_accuracy());
  }
  for (const auto& [trial, accuracies] : FinalAccuracies(experiment_)) {
    at_length_9 += accuracies.accuracies(2) / 3;
  }
  const auto& cell = summary.cells(0);
  EXPECT_EQ(cell.trials().succeeded(), 3);
  EXPECT_NEAR(cell.unseen_accuracy().mean(), unseen, 1e-12);
  EXPECT_EQ(cell.unseen_accuracy().max(), best);
  EXPECT_THAT(cell.lengths(), ElementsAre(4, 6, 9));
  EXPECT_NEAR(cell.mean_accuracies(2), at_length_9, 1e-9);
  EXPECT_GT(cell.training_seconds().mean(), 0);
}

TEST_P(AfterwardsTest, ShowsAttentionOfAnyInput) {
  const nlohmann::json recorded =
      nlohmann::json::parse(Client({"attention", "tiny/0", "--output=json"}));
  ASSERT_EQ(recorded["maps"].size(), 1u);
  const nlohmann::json& map = recorded["maps"][0];
  EXPECT_EQ(map["length"], 5);
  EXPECT_EQ(map["tokens"].size(), 10u);
  EXPECT_EQ(map["probabilities"].size(), 2u);
  // The recorded input, given explicitly, has the same map: positions are drawn for a length, not
  // an input.
  std::string input;
  for (int i = 0; i < 5; ++i) {
    input += (i > 0 ? "," : "") + std::to_string(map["tokens"][i].get<int>());
  }
  const nlohmann::json given =
      nlohmann::json::parse(Client({"attention", "tiny/0", "--input", input, "--output=json"}));
  ASSERT_EQ(given["maps"].size(), 1u);
  EXPECT_EQ(given["maps"][0]["probabilities"], map["probabilities"]);
}

TEST_P(AfterwardsTest, ProjectionsAreRecordedForEveryLength) {
  v1::QueryProjectionsRequest request;
  request.set_name(EndedTrials(experiment_)[0].name());
  grpc::ClientContext context;
  const auto reader = server_.experiments().QueryProjections(&context, request);
  std::vector<int32_t> lengths;
  for (v1::Projection projection; reader->Read(&projection);) {
    lengths.push_back(projection.length());
    EXPECT_EQ(projection.fitted_length(), 6);
    EXPECT_EQ(projection.depths(), 3);
    EXPECT_EQ(projection.coordinates().size(), 3u * 4 * projection.length() * 2 * sizeof(float));
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_THAT(lengths, ElementsAre(6, 9));
}

INSTANTIATE_TEST_SUITE_P(Encodings, AfterwardsTest, testing::ValuesIn(kEncodings), NameOf);

}  // namespace
}  // namespace lengthwise::end_to_end
