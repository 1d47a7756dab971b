#include "worker/data/file_examples.h"

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "tasks/examples/contents.h"
#include "worker/data/batch_schedule.h"
#include "worker/tiny_trials.h"
#include "worker/training/pack_runner_fixture.h"
#include "worker/training/recording_session.h"

namespace lengthwise::worker::training {
namespace {

using data::Batch;
using data::BatchSchedule;
using data::FileExamples;
using data::RowsFrom;
using data::Targets;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

// Reversals of lists of 3 symbols: 40 training examples of each length from 1 to 6, and 40 test
// examples of each from 1 to 9.
std::string Reversals(int longest, int shift) {
  std::string text;
  for (int length = 1; length <= longest; ++length) {
    for (int i = 0; i < 40; ++i) {
      std::vector<int> input;
      for (int place = 0; place < length; ++place) {
        input.push_back((i * (place + 3) + place * shift) % 3);
      }
      const auto list = [](auto begin, auto end) {
        std::string joined;
        for (; begin != end; ++begin) absl::StrAppend(&joined, joined.empty() ? "" : ", ", *begin);
        return joined;
      };
      absl::StrAppend(&text, "{\"input\": [", list(input.begin(), input.end()), "], \"target\": [",
                      list(input.rbegin(), input.rend()), "]}\n");
    }
  }
  return text;
}

class Files {
 public:
  Files(const std::string& train, const std::string& test) {
    for (const std::string& text : {train, test}) {
      if (text.empty()) continue;
      const std::string path =
          absl::StrCat(::testing::TempDir(), "/", platform::Sha256Hex(text), ".jsonl");
      std::ofstream(path, std::ios::binary) << text;
      paths_[platform::Sha256Hex(text)] = path;
    }
    parameters_["train"] = "train.jsonl";
    parameters_["train_sha256"] = platform::Sha256Hex(train);
    parameters_["test"] = test.empty() ? "" : "test.jsonl";
    parameters_["test_sha256"] = test.empty() ? "" : platform::Sha256Hex(test);
    tasks::examples::Problems problems;
    const auto loaded = tasks::examples::Load(
        {paths_[parameters_["train_sha256"]], "train.jsonl"},
        {test.empty() ? "" : paths_[parameters_["test_sha256"]], "test.jsonl"}, {}, problems);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    parameters_["contents"] = tasks::examples::ToText(tasks::examples::ContentsOf(*loaded));
    set_ = loaded->set;
  }

  FileExamples Examples() const { return FileExamples(set_); }

  absl::StatusOr<std::string> Path(absl::string_view sha256) const {
    const auto found = paths_.find(std::string(sha256));
    if (found == paths_.end()) return absl::NotFoundError("no such file");
    return found->second;
  }

  v1::TrialSpecification Trial(uint64_t seed = 0) const { return Of("examples", TinyTrial(seed)); }
  // The task for a causal language model.
  v1::TrialSpecification TextTrial(uint64_t seed = 0) const {
    return Of("examples_text", TinyTextTrial(seed));
  }

 private:
  v1::TrialSpecification Of(const std::string& task, v1::TrialSpecification trial) const {
    *trial.mutable_task() = {};
    trial.mutable_task()->set_name(task);
    for (const auto& [name, value] : parameters_) {
      (*trial.mutable_task()->mutable_parameters())[name].set_string_value(value);
    }
    return trial;
  }

  std::map<std::string, std::string> paths_;
  std::map<std::string, std::string> parameters_;
  std::shared_ptr<const tasks::examples::ExampleSet> set_;
};

// A session that stores data files on disk.
class FileSession : public RecordingSession {
 public:
  explicit FileSession(const Files& files) : files_(files) {}
  absl::StatusOr<std::string> FetchData(int64_t trial, absl::string_view sha256,
                                        int64_t /*bytes*/) override {
    if (trial == refused_) return absl::PermissionDeniedError("the trial was cancelled");
    if (!available_) return absl::UnavailableError("the server is away");
    return files_.Path(sha256);
  }
  void SetAvailable(bool available) { available_ = available; }
  // The server refuses this trial's downloads.
  void SetRefused(int64_t trial) { refused_ = trial; }

 private:
  const Files& files_;
  bool available_ = true;
  int64_t refused_ = -1;
};

const Files& ReversalFiles() {
  static const auto& files = *new Files(Reversals(6, 1), Reversals(9, 2));
  return files;
}

TEST(FileExamplesTest, AppendsAnEmptyTokenPerTarget) {
  const Files files("{\"input\": [2, 0], \"target\": [1], \"mask\": [0]}\n",
                    "{\"input\": [1, 1], \"target\": [1]}\n");
  Batch batch;
  files.Examples().AppendTraining({.seed = 1, .step = 1, .rows = {0, 1}}, 2, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(2, 0, 3, 2, 0, 3));
  EXPECT_THAT(batch.targets, ElementsAre(1, 1));
  EXPECT_THAT(batch.mask, ElementsAre(0, 0));
  EXPECT_EQ(batch.tokens_per_row, 3);
  EXPECT_EQ(batch.outputs_per_row, 1);
  EXPECT_EQ(files.Examples().input_columns(), 4);
  EXPECT_EQ(files.Examples().output_columns(), 2);
}

TEST(FileExamplesTest, NumbersOfEqualLengthAnswerInPlace) {
  const Files in_place("{\"input\": [0.5, 2], \"target\": [2.5, 2]}\n",
                       "{\"input\": [0.5, 3], \"target\": [2.5, 2]}\n");
  Batch batch;
  in_place.Examples().AppendTraining({.rows = {0}}, 2, batch);
  EXPECT_THAT(batch.numbers, ElementsAre(0.5, 2));
  EXPECT_THAT(batch.number_targets, ElementsAre(2.5, 2));
  const Files behind("{\"input\": [0.5, 2], \"target\": [2.5]}\n",
                     "{\"input\": [0.5, 3], \"target\": [3.5]}\n");
  Batch other;
  behind.Examples().AppendTraining({.rows = {0}}, 2, other);
  EXPECT_THAT(other.numbers, ElementsAre(0.5, 2, 0));
  EXPECT_THAT(other.number_targets, ElementsAre(2.5));
  EXPECT_EQ(behind.Examples().targets(), Targets::kNumbers);
}

// A step's shape must not depend on the data seed, or the members of a pack could not share it.
TEST(FileExamplesTest, StepHasOneShapeForAllSeeds) {
  std::string train;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&train, "{\"input\": \"", std::string(static_cast<size_t>(1 + i % 3), 'a'),
                    "\", \"target\": \"b\", \"length\": 4}\n");
  }
  const Files files(train, train);
  const FileExamples examples = files.Examples();
  std::set<int64_t> shapes;
  int different = 0;
  for (uint64_t step = 1; step <= 40; ++step) {
    Batch one, other, of_another_schedule;
    examples.AppendTraining({.seed = 1, .step = step, .rows = RowsFrom(0, 5)}, 4, one);
    examples.AppendTraining({.seed = 2, .step = step, .rows = RowsFrom(0, 5)}, 4, other);
    EXPECT_EQ(one.tokens_per_row, other.tokens_per_row);
    shapes.insert(one.tokens_per_row);
    examples.AppendTraining({.seed = 1, .schedule_seed = 1, .step = step, .rows = RowsFrom(0, 5)},
                            4, of_another_schedule);
    different += one.tokens_per_row != of_another_schedule.tokens_per_row;
  }
  EXPECT_THAT(shapes, ElementsAre(2, 3, 4));
  EXPECT_GT(different, 10);
}

TEST(FileExamplesTest, TestExamplesAreScoredOnceGroupedByShape) {
  std::string test;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&test, "{\"input\": [", i, i % 2 == 0 ? "" : ", 1", "], \"target\": [1], ",
                    "\"length\": 7}\n");
  }
  const Files files(test, test);
  const FileExamples examples = files.Examples();
  EXPECT_EQ(examples.EvaluationSequences(7, 500), 50);
  EXPECT_EQ(examples.EvaluationSequences(8, 500), 0);
  std::multiset<int64_t> asked;
  for (int64_t first = 0; first < 50;) {
    const int64_t count = examples.RowsOfOneShape(7, 500, first);
    Batch batch;
    examples.AppendEvaluation({.n = 7, .asked = 500, .first = first, .count = count}, batch);
    for (int64_t row = 0; row < count; ++row) {
      asked.insert(batch.tokens[static_cast<size_t>(row * batch.tokens_per_row)]);
    }
    first += count;
  }
  EXPECT_EQ(asked.size(), 50u);
  EXPECT_EQ(std::set<int64_t>(asked.begin(), asked.end()).size(), 50u);
}

// Row 3 is the same example whether 4 or 50 are requested.
TEST(FileExamplesTest, OrderedRowsDoNotDependOnTheirNumber) {
  std::string test;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&test, "{\"input\": [", i, i % 2 == 0 ? "" : ", 1", "], \"target\": [1], ",
                    "\"length\": 7}\n");
  }
  const Files files(test, test);
  const FileExamples examples = files.Examples();
  std::set<int64_t> first_symbols;
  for (int64_t row = 0; row < 50; ++row) {
    Batch exactly, all;
    examples.AppendEvaluation(
        {.n = 7, .asked = row + 1, .first = row, .count = 1, .in_order = true}, exactly);
    examples.AppendEvaluation({.n = 7, .asked = 50, .first = row, .count = 1, .in_order = true},
                              all);
    EXPECT_EQ(exactly.tokens, all.tokens);
    first_symbols.insert(exactly.tokens.at(0));
  }
  EXPECT_EQ(first_symbols.size(), 50u);
}

TEST(FileExamplesTest, LengthsFollowTheExamples) {
  const Files files(
      "{\"input\": [0], \"target\": [0]}\n{\"input\": [0, 1], \"target\": [1, 0]}\n"
      "{\"input\": [1, 1], \"target\": [1, 1]}\n{\"input\": [1, 0], \"target\": "
      "[0, 1]}\n",
      "{\"input\": [1], \"target\": [1]}\n");
  v1::Training training;
  training.mutable_lengths()->set_min(1);
  training.mutable_lengths()->set_max(5);
  const BatchSchedule schedule(training, files.Examples().Weights(training.lengths()));
  std::map<int64_t, int> steps;
  for (int64_t step = 1; step <= 4000; ++step) ++steps[schedule.LengthOfStep(step)];
  EXPECT_THAT(steps, SizeIs(2));
  EXPECT_NEAR(steps[1], 1000, 120);
  EXPECT_NEAR(steps[2], 3000, 120);
}

TEST(FileExamplesTest, GivenInputsAreChecked) {
  const FileExamples examples = ReversalFiles().Examples();
  EXPECT_THAT(examples.Given(TokensOf({0, 2}))->tokens, ElementsAre(0, 2, 3, 3));
  EXPECT_THAT(std::string(examples.Given(TokensOf({3})).status().message()),
              HasSubstr("tokens 0 to 2"));
  EXPECT_THAT(std::string(examples.Given(TokensOf(std::vector<int32_t>(50))).status().message()),
              HasSubstr("50 values"));
  EXPECT_FALSE(examples.Given(NumbersOf({0.5})).ok());
}

TEST(FileExamplesTest, GivenTextIsReadAsInTheFiles) {
  const Files files(
      "{\"input\": \"bä\", \"target\": \"x\"}\n{\"input\": \"aab\", \"target\": \"y\"}\n",
      "{\"input\": \"bbb\", \"target\": \"x\"}\n");
  const FileExamples examples = files.Examples();
  v1::TokenSequence input;
  input.set_text("äb");
  // In byte order: a 0, b 1, ä 2; then an empty token for the answer.
  EXPECT_THAT(examples.Given(input)->tokens, ElementsAre(2, 1, 3));
  input.set_text("az");
  EXPECT_THAT(std::string(examples.Given(input).status().message()),
              HasSubstr("it has the symbol \"z\", which occurs in no input"));
  input.set_text("ab");
  EXPECT_FALSE(ReversalFiles().Examples().Given(input).ok());
}

TEST(FileExamplesTest, TrialTrainsAndIsEvaluated) {
  FileSession session(ReversalFiles());
  RunLease(LeaseOf({ReversalFiles().Trial()}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  EXPECT_THAT(Outline(session.events(0)), IsSupersetOf({"evaluation 15", "checkpoint 20"}));
}

TEST(FileExamplesTest, EvaluationsCountTheExamplesOfEachLength) {
  std::string test;
  for (int i = 0; i < 12; ++i) {
    absl::StrAppend(&test, R"({"input": [0, 1], "target": [1, 0], "length": )", i < 7 ? 2 : 9,
                    "}\n");
  }
  const Files files(Reversals(6, 1), test);
  v1::TrialSpecification trial = files.Trial();
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  evaluation.clear_every_steps();
  evaluation.clear_interval_lengths();
  evaluation.clear_attention_lengths();
  evaluation.set_sequences(6);
  evaluation.clear_lengths();
  for (const int32_t length : {2, 9}) evaluation.add_lengths(length);
  FileSession session(files);
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  int evaluations = 0;
  for (const v1::Event& event : session.events(0)) {
    if (!event.has_length_accuracies()) continue;
    ++evaluations;
    EXPECT_EQ(event.length_accuracies().sequences(), 6);
    EXPECT_THAT(event.length_accuracies().sequence_counts(), ElementsAre(6, 5));
  }
  EXPECT_EQ(evaluations, 1);
}

TEST(FileExamplesTest, AttentionIsRecordedForDifferentExamples) {
  std::string text;
  for (int i = 0; i < 24; ++i) {
    absl::StrAppend(&text, "{\"input\": [", i, i % 2 == 0 ? "" : ", 1", "], \"target\": [1], ",
                    "\"length\": 4}\n");
  }
  const Files files(text, text);
  v1::TrialSpecification trial = files.Trial();
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  for (auto* lengths : {evaluation.mutable_lengths(), evaluation.mutable_interval_lengths()}) {
    lengths->Clear();
    lengths->Add(4);
  }
  evaluation.set_attention_sequences(20);
  FileSession session(files);
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  std::set<int32_t> first_symbols;
  int maps = 0;
  for (const v1::Event& event : session.events(0)) {
    if (!event.has_attention_map()) continue;
    ++maps;
    first_symbols.insert(event.attention_map().tokens(0));
  }
  EXPECT_EQ(maps, 20);
  EXPECT_EQ(first_symbols.size(), 20u);
}

TEST(FileExamplesTest, ProjectionsUseAllExamplesIfFewer) {
  v1::TrialSpecification trial = ReversalFiles().Trial();
  v1::ProjectionSettings& projection = *trial.mutable_evaluation()->mutable_projection();
  projection.set_fitted_length(6);
  projection.add_lengths(9);
  projection.set_sequences(100);
  FileSession session(ReversalFiles());
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  int projections = 0;
  for (const v1::Event& event : session.events(0)) {
    if (!event.has_projection()) continue;
    ++projections;
    EXPECT_EQ(event.projection().sequences(), 40);
  }
  EXPECT_EQ(projections, 1);
}

TEST(FileExamplesTest, CancelledMemberDoesNotBlockItsPack) {
  const Files others(Reversals(6, 7), Reversals(9, 8));  // not in memory
  FileSession session(others);
  session.directive = [](int64_t trial, int64_t) {
    return trial == 0 ? PackSession::Directive::kCancelled : PackSession::Directive::kContinue;
  };
  session.SetRefused(0);
  RunLease(LeaseOf({others.Trial(0), others.Trial(1)}), session);
  EXPECT_EQ(session.OutcomeOf(1).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(1).reason();
}

TEST(FileExamplesTest, OnlyTrainingExamplesMustFitPackedSequences) {
  const auto zeros = [](int length, int count) {
    std::string input = "1";
    for (int i = 0; i < count; ++i) input += ", 0";
    return absl::StrCat("{\"input\": [", input, "], \"target\": [1], \"length\": ", length, "}\n");
  };
  // Training has lengths 1 to 3.
  const Files files(zeros(1, 3) + zeros(2, 4) + zeros(3, 5) + zeros(4, 100),
                    zeros(2, 80) + zeros(4, 90));
  v1::TrialSpecification trial = files.TextTrial();
  trial.mutable_training()->mutable_packing()->set_tokens(64);
  (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(128);
  FileSession session(files);
  RunLease(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
}

void ExpectResumeChangesNothing(const v1::TrialSpecification& trial) {
  FileSession whole(ReversalFiles());
  RunLease(LeaseOf({trial}), whole);
  ASSERT_EQ(whole.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << whole.OutcomeOf(0).reason();
  FileSession session(ReversalFiles());
  v1::Lease lease = LeaseOf({trial});
  // The worker is lost in mid-run, and the trial resumes from the last checkpoint.
  session.directive = [](int64_t, int64_t asked) {
    return asked > 24 ? PackSession::Directive::kLost : PackSession::Directive::kContinue;
  };
  RunLease(lease, session);
  session.directive = nullptr;
  session.Rewind(lease);
  ASSERT_GT(lease.trials(0).checkpoint_step(), 0);
  RunLease(lease, session);
  EXPECT_EQ(session.History(0), whole.History(0));
  EXPECT_EQ(session.checkpoints(0).rbegin()->second, whole.checkpoints(0).rbegin()->second);
}

TEST(FileExamplesTest, ResumedTrialMatchesUninterrupted) {
  ExpectResumeChangesNothing(ReversalFiles().Trial());
}

TEST(FileExamplesTest, ResumedLanguageModelMatchesUninterrupted) {
  ExpectResumeChangesNothing(ReversalFiles().TextTrial());
}

void ExpectPackMatchesItsMembers(const std::vector<v1::TrialSpecification>& trials) {
  FileSession pack(ReversalFiles());
  RunLease(LeaseOf(trials), pack);
  for (size_t i = 0; i < trials.size(); ++i) {
    FileSession alone(ReversalFiles());
    RunLease(LeaseOf({trials[i]}), alone);
    EXPECT_EQ(pack.History(static_cast<int64_t>(i)), alone.History(0));
  }
}

TEST(FileExamplesTest, PackMatchesItsMembers) {
  ExpectPackMatchesItsMembers({ReversalFiles().Trial(0), ReversalFiles().Trial(1)});
  ExpectPackMatchesItsMembers({ReversalFiles().TextTrial(0), ReversalFiles().TextTrial(1)});
}

TEST(FileExamplesTest, LanguageModelContinuesInputsWithTargets) {
  FileSession session(ReversalFiles());
  RunLease(LeaseOf({ReversalFiles().TextTrial()}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  EXPECT_THAT(Outline(session.events(0)), IsSupersetOf({"final 40", "errors 40", "attention 40"}));
  for (const v1::Event& event : session.events(0)) {
    // Two inputs, two targets and the end token.
    if (event.has_attention_map()) {
      EXPECT_EQ(event.attention_map().tokens_size(), 5);
    }
    if (!event.has_answer_errors()) continue;
    EXPECT_EQ(event.answer_errors().answers(), 16);
    EXPECT_LE(event.answer_errors().wrong_by_place_size(), event.answer_errors().length());
  }
}

TEST(FileExamplesTest, LanguageModelRejectsMasks) {
  const Files files("{\"input\": [2, 0], \"target\": [1], \"mask\": [0]}\n",
                    "{\"input\": [1, 1], \"target\": [1]}\n");
  FileSession session(files);
  RunLease(LeaseOf({files.TextTrial()}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("has masks"));
}

TEST(FileExamplesTest, FetchErrorIsTemporary) {
  const Files others(Reversals(6, 3), Reversals(9, 4));  // not in memory
  FileSession session(others);
  session.SetAvailable(false);
  RunLease(LeaseOf({others.Trial()}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("the server is away"));
}

TEST(FileExamplesTest, DrainDuringFetchFailsNoTrial) {
  const Files others(Reversals(6, 7), Reversals(9, 8));  // not in memory
  FileSession session(others);
  session.SetAvailable(false);
  session.directive = [](int64_t, int64_t) { return PackSession::Directive::kDrain; };
  RunLease(LeaseOf({others.Trial()}), session);
  EXPECT_TRUE(session.events(0).empty());
  EXPECT_TRUE(session.checkpoints(0).empty());
}

TEST(FileExamplesTest, MismatchedContentsFailTheTrial) {
  const Files others(Reversals(6, 5), Reversals(9, 6));
  v1::TrialSpecification trial = others.Trial();
  std::string& contents =
      *(*trial.mutable_task()->mutable_parameters())["contents"].mutable_string_value();
  contents.replace(contents.find("\"input_symbols\":3"), 17, "\"input_symbols\":9");
  FileSession session(others);
  RunLease(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("differs from the specification's"));
}

}  // namespace
}  // namespace lengthwise::worker::training
