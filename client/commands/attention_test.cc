#include <nlohmann/json.hpp>

#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

v1::AttentionMap TwoTokens(int input_number) {
  v1::AttentionMap map;
  map.set_length(1);
  map.set_input_number(input_number);
  map.set_layers(1);
  map.set_heads(1);
  map.add_tokens(3);
  map.add_tokens(5);
  const float values[] = {1, 0, 0.25, 0.75};
  map.set_probabilities(values, sizeof(values));
  return map;
}

TEST_F(CommandsTest, ShowsRecordedAttention) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"attention", "e-1/0"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has no attention maps; record them with"));
  server_.AddAttentionMap("experiments/e-1/trials/bucket_sort-none", TwoTokens(0));
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("│██  │\n├░░▓▓┤\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\n1,1,0,1,1,1,0,0.25\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["maps"][0]["probabilities"][0][0][1][1], 0.75);
  EXPECT_EQ(Run({"attention", "e-1/0", "--layer", "2"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--layer: got 2, the network has 1 layer\n"));
}

TEST_F(CommandsTest, ShowsFirstSequenceByDefault) {
  server_.AddExperiment("e-1", {"none"});
  for (int sequence = 0; sequence < 3; ++sequence) {
    v1::AttentionMap map = TwoTokens(0);
    map.set_sequence(sequence);
    map.set_tokens(0, sequence);
    server_.AddAttentionMap("experiments/e-1/trials/bucket_sort-none", map);
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

TEST_F(CommandsTest, ShowsAttentionForTheUsersOwnInput) {
  server_.AddExperiment("e-1", {"none"});
  server_.AddExperiment("e_evaluation-1", {"none"});
  // The evaluation also records a sampled sequence.
  server_.AddAttentionMap("experiments/e_evaluation-1/trials/bucket_sort-none", TwoTokens(0));
  server_.AddAttentionMap("experiments/e_evaluation-1/trials/bucket_sort-none", TwoTokens(1));
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "[3]", "--output", "json"}), kSuccess);
  const nlohmann::json maps = nlohmann::json::parse(out_)["maps"];
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0]["tokens"], nlohmann::json::parse("[3, 5]"));
  const auto requests = server_.evaluate_requests();
  ASSERT_EQ(requests.size(), 1u);
  ASSERT_EQ(requests[0].evaluation().attention_inputs_size(), 1);
  EXPECT_THAT(requests[0].evaluation().attention_inputs(0).tokens(), testing::ElementsAre(3));
  EXPECT_THAT(requests[0].evaluation().lengths(), testing::ElementsAre(1));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "1.5"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got \"1.5\", expected numbers and ranges"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "[]"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got nothing, expected tokens or numbers"));
}

TEST_F(CommandsTest, NumericTaskAcceptsNumbersAsInput) {
  server_.AddExperiment("e-1", {"none"});
  v1::TrialSpecification specification;
  specification.mutable_task()->set_name("cumulative_sum");
  server_.SetSpecification("experiments/e-1/trials/bucket_sort-none", specification);
  server_.AddExperiment("e_evaluation-1", {"none"});
  v1::AttentionMap map = TwoTokens(1);
  map.set_tokens(0, -1);
  map.set_tokens(1, -1);
  map.add_numbers(-0.25);
  map.add_numbers(0);
  server_.AddAttentionMap("experiments/e_evaluation-1/trials/bucket_sort-none", map);
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "-0.25, 0", "--output", "json"}), kSuccess)
      << err_;
  const nlohmann::json maps = nlohmann::json::parse(out_)["maps"];
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0]["numbers"], nlohmann::json::parse("[-0.25, 0.0]"));
  EXPECT_EQ(maps[0]["input"], 1);
  const auto requests = server_.evaluate_requests();
  ASSERT_EQ(requests.size(), 1u);
  const v1::Evaluation& asked = requests[0].evaluation();
  EXPECT_THAT(asked.attention_inputs(0).numbers(), testing::ElementsAre(-0.25, 0));
  EXPECT_TRUE(asked.attention_inputs(0).tokens().empty());
  EXPECT_THAT(asked.lengths(), testing::ElementsAre(1));
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "1.5,many"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got \"many\", expected finite numbers such as 1.75,-0.25"));
  // A map that the specification requested.
  server_.AddAttentionMap("experiments/e-1/trials/bucket_sort-none", map);
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("input 1: 2 tokens"));
}

}  // namespace
}  // namespace lengthwise::client
