#include <nlohmann/json.hpp>

#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

// Runs the trials of real experiments as a worker does.
class AttentionTest : public CommandsTest {
 protected:
  // Records a map of a running trial.
  void Record(const std::string& trial, const v1::AttentionMap& map) {
    v1::Event event;
    event.set_trial(trial);
    *event.mutable_attention_map() = map;
    server_.real().Append(event);
  }
  // Runs the evaluation that the next command submits: records the maps before it watches.
  void EvaluateWith(const std::vector<v1::AttentionMap>& maps) {
    server_.AnswerBy<v1::WatchExperimentRequest>(
        "WatchExperiment",
        [this,
         maps](const v1::WatchExperimentRequest& request) -> std::optional<FaultyServer::Answer> {
          server_.real().LeaseTrials(request.name(), 1);
          const std::string trial = server_.real().TrialsOf(request.name())[0];
          for (const v1::AttentionMap& map : maps) Record(trial, map);
          server_.real().EndTrial(trial, v1::SUCCEEDED);
          return std::nullopt;
        });
  }
};

v1::AttentionMap TwoTokens(int input_number) {
  v1::AttentionMap map;
  map.set_length(1);
  map.set_input_number(input_number);
  map.set_layers(1);
  map.set_heads(1);
  map.add_tokens(3);
  map.add_tokens(5);
  map.add_positions(0);
  map.add_positions(1);
  const float values[] = {1, 0, 0.25, 0.75};
  map.set_probabilities(values, sizeof(values));
  return map;
}

TEST_F(AttentionTest, ShowsRecordedAttention) {
  server_.real().Submit("e", {"none"});
  server_.real().LeaseTrials("experiments/e-1", 1);
  EXPECT_EQ(Run({"attention", "e-1/0"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has no attention maps; record them with"));
  Record(kTrial, TwoTokens(0));
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("│██  │\n├░░▓▓┤\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\n1,1,0,1,1,1,0,0.25\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["maps"][0]["probabilities"][0][0][1][1], 0.75);
  EXPECT_EQ(Run({"attention", "e-1/0", "--layer", "2"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--layer: got 2, the network has 1 layer\n"));
}

TEST_F(AttentionTest, ShowsFirstSequenceByDefault) {
  server_.real().Submit("e", {"none"});
  server_.real().LeaseTrials("experiments/e-1", 1);
  for (int sequence = 0; sequence < 3; ++sequence) {
    v1::AttentionMap map = TwoTokens(0);
    map.set_sequence(sequence);
    map.set_tokens(0, sequence);
    Record(kTrial, map);
  }
  const auto tokens = [&] {
    std::vector<int> first;
    const nlohmann::json written = nlohmann::json::parse(out_);
    for (const auto& map : written["maps"]) {
      EXPECT_EQ(map["sequence"], map["tokens"][0].get<int>() + 1);
      first.push_back(map["tokens"][0]);
    }
    return first;
  };
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "json"}), kSuccess);
  EXPECT_THAT(tokens(), testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "json", "--sequence", "3"}), kSuccess);
  EXPECT_THAT(tokens(), testing::ElementsAre(2));
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  const std::string first = out_;
  EXPECT_EQ(Run({"attention", "e-1/0", "--sequence", "1"}), kSuccess);
  EXPECT_EQ(out_, first);
  EXPECT_EQ(Run({"attention", "e-1/0", "--sequence", "4"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("no attention maps of sequence 4"));
}

TEST_F(AttentionTest, ShowsAttentionForTheUsersOwnInput) {
  server_.real().Submit("e", {"none"});
  server_.real().LeaseTrials("experiments/e-1", 1);
  server_.real().EndTrial(kTrial, v1::SUCCEEDED);
  // The evaluation also records a sampled sequence.
  EvaluateWith({TwoTokens(0), TwoTokens(1)});
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "[3]", "--output", "json"}), kSuccess);
  const nlohmann::json maps = nlohmann::json::parse(out_)["maps"];
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0]["tokens"], nlohmann::json::parse("[3, 5]"));
  const auto requests = server_.Requests<v1::EvaluateTrialRequest>("EvaluateTrial");
  ASSERT_EQ(requests.size(), 1u);
  ASSERT_EQ(requests[0].evaluation().attention_inputs_size(), 1);
  EXPECT_THAT(requests[0].evaluation().attention_inputs(0).tokens(), testing::ElementsAre(3));
  EXPECT_THAT(requests[0].evaluation().lengths(), testing::ElementsAre(1));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "1.5"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got \"1.5\", expected tokens such as 0,1,1\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "[]"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got nothing, expected tokens or numbers"));
}

TEST_F(AttentionTest, NumericTaskAcceptsNumbersAsInput) {
  server_.real().SubmitText(
      "name: e\ntasks: cumulative_sum\n"
      "networks: {name: positional_attention, blocks: 1, heads: 2, d_model: 16}\n"
      "encodings: one_hot\nlearning_rates: 0.001\nseeds: 0\n"
      "training: {steps: 200, batch_size: 4, lengths: 1, examples: 100}\n"
      "evaluation: {lengths: 1, sequences: 8}\n");
  server_.real().LeaseTrials("experiments/e-1", 1);
  const std::string trial = server_.real().TrialsOf("experiments/e-1")[0];
  v1::AttentionMap map = TwoTokens(1);
  map.set_tokens(0, -1);
  map.set_tokens(1, -1);
  map.add_numbers(-0.25);
  map.add_numbers(0);
  // A map that the specification requested.
  Record(trial, map);
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("input 1: 2 tokens"));
  server_.real().EndTrial(trial, v1::SUCCEEDED);

  EvaluateWith({map});
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "-0.25, 0", "--output", "json"}), kSuccess)
      << err_;
  const nlohmann::json maps = nlohmann::json::parse(out_)["maps"];
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0]["numbers"], nlohmann::json::parse("[-0.25, 0.0]"));
  EXPECT_EQ(maps[0]["input"], 1);
  const auto requests = server_.Requests<v1::EvaluateTrialRequest>("EvaluateTrial");
  ASSERT_EQ(requests.size(), 1u);
  const v1::Evaluation& asked = requests[0].evaluation();
  EXPECT_THAT(asked.attention_inputs(0).numbers(), testing::ElementsAre(-0.25, 0));
  EXPECT_TRUE(asked.attention_inputs(0).tokens().empty());
  EXPECT_THAT(asked.lengths(), testing::ElementsAre(1));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "1.5,many"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got \"many\", expected finite numbers such as 1.75,-0.25"));
}

}  // namespace
}  // namespace lengthwise::client
