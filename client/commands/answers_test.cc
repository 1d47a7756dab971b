#include <limits>
#include <nlohmann/json.hpp>

#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Answer AnswerTo(const std::string& input, const std::vector<std::string>& expected,
                    const std::vector<std::string>& given, const std::vector<int32_t>& wrong) {
  v1::Answer answer;
  answer.set_length(3);
  answer.set_input(input);
  answer.mutable_expected()->Assign(expected.begin(), expected.end());
  answer.mutable_given()->Assign(given.begin(), given.end());
  answer.mutable_wrong()->Assign(wrong.begin(), wrong.end());
  answer.set_separator(" ");
  return answer;
}

// Runs the trials of real experiments as a worker does.
class AnswersTest : public CommandsTest {
 protected:
  void Record(const std::string& trial, const std::vector<v1::Answer>& answers) {
    for (const v1::Answer& answer : answers) {
      v1::Event event;
      event.set_trial(trial);
      *event.mutable_answer() = answer;
      server_.real().Append(event);
    }
  }
  void Train(const std::vector<v1::Answer>& answers) {
    server_.real().LeaseTrials("experiments/e-1", 1);
    Record(server_.real().TrialsOf("experiments/e-1")[0], answers);
    server_.real().EndTrial(server_.real().TrialsOf("experiments/e-1")[0], v1::SUCCEEDED);
  }
  // Runs the evaluation that the next command submits: records the answers before it watches.
  void EvaluateWith(const std::vector<v1::Answer>& answers) {
    server_.AnswerBy<v1::WatchExperimentRequest>(
        "WatchExperiment",
        [this, answers](
            const v1::WatchExperimentRequest& request) -> std::optional<FaultyServer::Answer> {
          server_.real().LeaseTrials(request.name(), 1);
          const std::string trial = server_.real().TrialsOf(request.name())[0];
          Record(trial, answers);
          server_.real().EndTrial(trial, v1::SUCCEEDED);
          return std::nullopt;
        });
  }
  std::vector<v1::EvaluateTrialRequest> Evaluations() {
    return server_.Requests<v1::EvaluateTrialRequest>("EvaluateTrial");
  }
};

TEST_F(AnswersTest, ErrorsAreAskedOfAnEvaluation) {
  server_.real().Submit("e", {"none"});
  Train({});
  v1::Answer right = AnswerTo("0 1 2", {"2", "1", "0"}, {"2", "1", "0"}, {});
  v1::Answer wrong = AnswerTo("0 1 1", {"1", "1", "0"}, {"1", "0"}, {1, 2});
  wrong.set_sequence(4);
  EvaluateWith({right, wrong});
  EXPECT_EQ(Run({"errors", "e-1/0", "--length", "3", "--count", "7"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("5  0 1 1  1 1 0     1 [0] [_]\n"));
  EXPECT_EQ(out_.find("0 1 2"), std::string::npos);
  const auto requests = Evaluations();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].evaluation().lengths(), ElementsAre(3));
  EXPECT_EQ(requests[0].evaluation().answers(), 7);
  EXPECT_FALSE(requests[0].evaluation().has_sequences());
}

TEST_F(AnswersTest, RecordedErrorsNeedNoEvaluation) {
  server_.real().SubmitText(
      "name: e\ntasks: reverse_string\nencodings: none\nlearning_rates: 0.001\nseeds: 0\n"
      "training: {steps: 20, batch_size: 4, lengths: 1..3}\n"
      "evaluation: {lengths: 1..3, sequences: 8, answers: 20}\n");
  const v1::Answer wrong = AnswerTo("0 1 1", {"1", "1", "0"}, {"1", "1", "1"}, {2});
  v1::Answer shorter = wrong;
  shorter.set_length(2);
  Train({shorter, wrong, wrong});
  EXPECT_EQ(Run({"errors", "e-1/0", "--count", "1", "--output", "json"}), kSuccess) << err_;
  EXPECT_EQ(nlohmann::json::parse(out_),
            nlohmann::json::parse(R"([{"length": 3, "sequence": 1, "input": "0 1 1",
                                       "expected": "1 1 0", "given": "1 1 1", "wrong": [2]}])"));
  EXPECT_EQ(Run({"errors", "e-1/0", "--length", "1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has no answers of length 1"));
  EXPECT_TRUE(Evaluations().empty());
}

TEST_F(AnswersTest, DamagedPlacesTakeNoMemory) {
  server_.real().Submit("e", {"none"});
  Train({});
  EvaluateWith({AnswerTo("0 1", {"1", "0"}, {"0"}, {0, 1})});
  server_.Edit<v1::Event>("QueryAnalyses", [](v1::Event& event) {
    if (!event.has_answer()) return;
    event.mutable_answer()->clear_wrong();
    for (const int32_t place : {-1, 0, 100'000'000, std::numeric_limits<int32_t>::max()}) {
      event.mutable_answer()->add_wrong(place);
    }
  });
  EXPECT_EQ(Run({"errors", "e-1/0", "--length", "3"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("1 0       [0] _\n"));
}

TEST_F(AnswersTest, NoMistakeIsToldInASentence) {
  server_.real().Submit("e", {"none"});
  Train({});
  EvaluateWith({AnswerTo("0", {"0"}, {"0"}, {})});
  EXPECT_EQ(Run({"errors", "e-1/0", "--length", "3"}), kSuccess) << err_;
  EXPECT_EQ(out_, "Every evaluated sequence of length 3 is answered without a mistake.\n");
}

TEST_F(AnswersTest, PredictsTheAnswerToTheUsersInput) {
  server_.real().Submit("e", {"none"});
  Train({});
  v1::Answer own = AnswerTo("0 1 1", {}, {"1", "1", "0"}, {});
  own.set_input_number(1);
  EvaluateWith({AnswerTo("2", {"2"}, {"2"}, {}), own});
  EXPECT_EQ(Run({"predict", "e-1/0", "--input", "0,1,1"}), kSuccess) << err_;
  EXPECT_EQ(out_, "1 1 0\n");
  const auto requests = Evaluations();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].evaluation().attention_inputs(0).tokens(), ElementsAre(0, 1, 1));
  EXPECT_EQ(requests[0].evaluation().sequences(), 1);
  EXPECT_EQ(Run({"predict", "e-1/0"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input"));
}

TEST_F(AnswersTest, PredictReadsInputsAsErrorsPrintsThem) {
  server_.real().Submit("e", {"none"});
  Train({});
  v1::Answer own = AnswerTo("0 1 1", {}, {"1", "1", "0"}, {});
  own.set_input_number(1);
  EvaluateWith({own});
  EXPECT_EQ(Run({"predict", "e-1/0", "--input", " 0 1  1 "}), kSuccess) << err_;
  ASSERT_EQ(Evaluations().size(), 1u);
  EXPECT_THAT(Evaluations()[0].evaluation().attention_inputs(0).tokens(), ElementsAre(0, 1, 1));
  EXPECT_EQ(Run({"predict", "e-1/0", "--input", "0 many"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got \"many\", expected tokens such as 0,1,1\n"));
}

TEST_F(AnswersTest, RefusedInputsAreNamedByTheOption) {
  server_.real().Submit("e", {"none"});
  Train({});
  EXPECT_EQ(Run({"predict", "e-1/0", "--input", "1000,1"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--input: got 1000, "));
  EXPECT_THAT(err_, Not(HasSubstr("attention_inputs")));
}

TEST_F(AnswersTest, TextTasksReadText) {
  server_.real().SubmitText(
      "name: e\ntasks: {name: decimal_addition, index_hints: false}\nencodings: none\n"
      "learning_rates: 0.001\nseeds: 0\nnetworks: causal_decoder\n"
      "training: {steps: 20, batch_size: 4, lengths: 1..3, packing: {tokens: 64}}\n"
      "evaluation: {lengths: 1..3, sequences: 8}\n");
  Train({});
  v1::Answer own = AnswerTo("012+007=", {}, {"0", "1", "9"}, {});
  own.set_input_number(1);
  own.set_separator("");
  EvaluateWith({own});
  EXPECT_EQ(Run({"predict", "e-1/0", "--input", "012+007=", "--output", "csv"}), kSuccess) << err_;
  EXPECT_EQ(out_, "input,given\n012+007=,019\n");
  EXPECT_EQ(Evaluations()[0].evaluation().attention_inputs(0).text(), "012+007=");
  EXPECT_NE(Run({"predict", "e-1/0", "--input", "12*7="}), kSuccess);
  EXPECT_THAT(err_, HasSubstr("it has \"*\"; additions have digits"));
}

}  // namespace
}  // namespace lengthwise::client
