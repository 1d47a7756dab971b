#include "worker/data/file_examples.h"

#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "platform/sha256.h"
#include "random/stream.h"
#include "tasks/examples/contents.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/text_positions.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/pack_runner_fixture.h"
#include "worker/training/testing/recording_session.h"
#include "worker/training/testing/replaying_graphs.h"
#include "worker/training/testing/train_step.h"

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
  Files(const std::string& train, const std::string& test,
        const tasks::examples::Options& options = {}) {
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
        {test.empty() ? "" : paths_[parameters_["test_sha256"]], "test.jsonl"}, options, problems);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    tasks::examples::Contents contents = tasks::examples::ContentsOf(*loaded);
    contents.reading = options.reading;
    parameters_["contents"] = tasks::examples::ToText(contents);
    set_ = loaded->set;
  }

  FileExamples Examples(const v1::Training& training = {}) const {
    return FileExamples(set_, training);
  }
  const tasks::examples::ExampleSet& set() const { return *set_; }

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
    if (!error_.ok()) return error_;
    return files_.Path(sha256);
  }
  void SetError(absl::Status error) { error_ = std::move(error); }
  // The server refuses this trial's downloads.
  void SetRefused(int64_t trial) { refused_ = trial; }

 private:
  const Files& files_;
  absl::Status error_;
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

// 60 examples with inputs of 10 to 69 symbols, the first of which tell the example. Their ids, if
// wanted, are unlike the places.
std::string SixtySizes(bool with_ids = false) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    std::string input = absl::StrCat(i), ids = "0";
    for (int place = 1; place < 10 + i; ++place) {
      absl::StrAppend(&input, ", ", (i * place) % 3);
      absl::StrAppend(&ids, ", ", (i + 7 * place) % 31);
    }
    absl::StrAppend(&text, "{\"input\": [", input, "], \"target\": [", i % 2, "], ",
                    with_ids ? absl::StrCat("\"positions\": [", ids, ", 5], ") : "",
                    "\"length\": ", 1 + i % 4, "}\n");
  }
  return text;
}

const Files& FilesOfSixtySizes() {
  static const auto& files = *new Files(SixtySizes(), SixtySizes());
  return files;
}

v1::Training TrainingOf(int32_t batch_size, int32_t longest = 4) {
  v1::Training training;
  training.set_batch_size(batch_size);
  training.mutable_lengths()->set_min(1);
  training.mutable_lengths()->set_max(longest);
  return training;
}

std::vector<Batch> StepOf(const Files& files, const v1::Training& training, int64_t step,
                          const std::vector<uint64_t>& data_seeds = {1}) {
  const FileExamples examples = files.Examples(training);
  const BatchSchedule schedule(training, examples.Weights(training.lengths()));
  std::vector<Batch> batches;
  for (const uint64_t seed : data_seeds) {
    examples.AppendStep(schedule.SamplesOfStep(step, seed), schedule.LengthOfStep(step), batches);
  }
  return batches;
}

// The first symbol of each input.
std::vector<int64_t> FirstSymbols(const std::vector<Batch>& batches) {
  std::vector<int64_t> symbols;
  for (const Batch& batch : batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      symbols.push_back(batch.tokens[static_cast<size_t>(row * batch.tokens_per_row)]);
    }
  }
  return symbols;
}

TEST(FileExamplesTest, StepHasDifferentExamplesOfManySizes) {
  for (int64_t step = 1; step <= 20; ++step) {
    const std::vector<Batch> batches = StepOf(FilesOfSixtySizes(), TrainingOf(16), step);
    EXPECT_THAT(batches, SizeIs(16));
    const std::vector<int64_t> symbols = FirstSymbols(batches);
    EXPECT_EQ(std::set<int64_t>(symbols.begin(), symbols.end()).size(), 16);
  }
}

TEST(FileExamplesTest, LargeBatchHasAllExamplesEquallyOften) {
  std::map<int64_t, int> times;
  for (const int64_t symbol : FirstSymbols(StepOf(FilesOfSixtySizes(), TrainingOf(150), 1))) {
    ++times[symbol];
  }
  EXPECT_THAT(times, SizeIs(60));
  int extra = 0;
  for (const auto& [symbol, count] : times) {
    EXPECT_TRUE(count == 2 || count == 3) << count;
    extra += count - 2;
  }
  EXPECT_EQ(extra, 30);
}

TEST(FileExamplesTest, EveryExampleIsEquallyLikely) {
  // Three sizes: 5, 15 and 40 examples, so a batch of 8 has pools of 5 + 15 and of 40 examples.
  std::string text;
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&text, "{\"input\": [", i,
                    i < 5    ? ", 1"
                    : i < 20 ? ", 1, 1"
                             : ", 1, 1, 1",
                    "], \"target\": [1], \"length\": ", 1 + i % 4, "}\n");
  }
  const Files files(text, text);
  std::map<int64_t, int> times;
  constexpr int kSteps = 6000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const std::vector<int64_t> symbols = FirstSymbols(StepOf(files, TrainingOf(8), step));
    EXPECT_EQ(std::set<int64_t>(symbols.begin(), symbols.end()).size(), 8);
    for (const int64_t symbol : symbols) ++times[symbol];
  }
  // The standard deviation of a count is about 40.
  for (int i = 0; i < 60; ++i) EXPECT_NEAR(times[i], kSteps * 8 / 60, 200) << i;
}

TEST(FileExamplesTest, StepHasOneSizeWhereExamplesAbound) {
  for (int64_t step = 1; step <= 40; ++step) {
    EXPECT_THAT(StepOf(ReversalFiles(), TrainingOf(40, 6), step), SizeIs(1));
    EXPECT_THAT(StepOf(ReversalFiles(), TrainingOf(41, 6), step), SizeIs(2));
  }
}

// A step's sizes must not depend on the data seed, or the members of a pack could not share them.
TEST(FileExamplesTest, StepSharesItsSizesForAllSeeds) {
  std::string train;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&train, "{\"input\": [", i,
                    i % 3 == 0   ? ""
                    : i % 3 == 1 ? ", 1"
                                 : ", 1, 1",
                    "], \"target\": [1], \"length\": 4}\n");
  }
  const Files files(train, train);
  int different_examples = 0, different_sizes = 0;
  for (int64_t step = 1; step <= 40; ++step) {
    v1::Training training = TrainingOf(12);
    const auto sizes = [&](uint64_t seed) {
      std::map<int64_t, int64_t> rows;
      for (const Batch& batch : StepOf(files, training, step, {seed})) {
        rows[batch.tokens_per_row] = batch.rows;
      }
      return rows;
    };
    const auto one = sizes(1);
    EXPECT_EQ(one, sizes(2));
    different_examples += FirstSymbols(StepOf(files, training, step, {1})) !=
                          FirstSymbols(StepOf(files, training, step, {2}));
    training.set_schedule_seed(1);
    different_sizes += one != sizes(1);
  }
  EXPECT_GT(different_examples, 30);
  EXPECT_GT(different_sizes, 10);
}

// Draws with replacement from one length, as all releases have done.
TEST(FileExamplesTest, ExamplesOfOneSizeKeepTheirDraws) {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&text, "{\"input\": [", i, "], \"target\": [1], \"length\": ", 1 + i % 2,
                    "}\n");
  }
  const Files files(text, text);
  const BatchSchedule schedule(TrainingOf(20), {15, 15, 0, 0});
  for (int64_t step = 1; step <= 20; ++step) {
    const std::vector<int64_t> symbols = FirstSymbols(StepOf(files, TrainingOf(20), step));
    for (uint32_t row = 0; row < 20; ++row) {
      random::Stream stream(1, random::Purpose::kTrainingSamples, static_cast<uint64_t>(step), row);
      EXPECT_EQ(symbols.at(row), schedule.LengthOfStep(step) - 1 + 2 * stream.Below(15));
    }
  }
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

// New experiments have no such lengths. Those that an older release resolved keep their examples.
TEST(FileExamplesTest, LengthAtWhichNothingCountsHasNoScore) {
  const Files files(Reversals(6, 1),
                    R"({"input": [0, 1], "target": [1, 0]})"
                    "\n"
                    R"({"input": [0, 1, 2], "target": [2, 1, 0], "mask": [0, 0, 0]})"
                    "\n",
                    {.reading = 0});
  v1::TrialSpecification trial = files.Trial();
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  evaluation.clear_lengths();
  evaluation.clear_interval_lengths();
  evaluation.clear_attention_lengths();
  for (const int32_t length : {2, 3}) {
    evaluation.add_lengths(length);
    evaluation.add_interval_lengths(length);
  }
  evaluation.set_sequence_scores(true);
  evaluation.add_embedding_noise(0.1);
  FileSession session(files);
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  int evaluations = 0, scores = 0, under_noise = 0;
  for (const v1::Event& event : session.events(0)) {
    if (event.has_length_accuracies()) {
      ++evaluations;
      EXPECT_THAT(event.length_accuracies().lengths(), ElementsAre(2));
    }
    if (event.has_sequence_scores()) {
      ++scores;
      EXPECT_EQ(event.sequence_scores().length(), 2);
    }
    if (event.has_noise_accuracies()) {
      ++under_noise;
      EXPECT_THAT(event.noise_accuracies().accuracies(), ElementsAre(::testing::Ge(0.0)));
    }
  }
  EXPECT_GT(evaluations, 1) << "also during training";
  EXPECT_EQ(scores, 1);
  EXPECT_EQ(under_noise, 1);
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

void ExpectResumeChangesNothing(const Files& files, const v1::TrialSpecification& trial) {
  FileSession whole(files);
  RunLease(LeaseOf({trial}), whole);
  ASSERT_EQ(whole.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << whole.OutcomeOf(0).reason();
  FileSession session(files);
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

v1::TrialSpecification TrialOfSixtySizes(uint64_t seed = 0) {
  v1::TrialSpecification trial = FilesOfSixtySizes().Trial(seed);
  trial.mutable_training()->mutable_lengths()->set_max(4);
  (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(80);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  for (auto* lengths : {evaluation.mutable_lengths(), evaluation.mutable_interval_lengths()}) {
    lengths->Clear();
    for (const int32_t length : {1, 4}) lengths->Add(length);
  }
  return trial;
}

// Sums of different sizes with masks: of one example no output counts.
std::string SixtySums() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    std::string input = absl::StrCat("0.", i), target, mask;
    for (int place = 1; place < 3 + i / 3; ++place) absl::StrAppend(&input, ", 1.5");
    for (int place = 0; place < 1 + i % 4; ++place) {
      const char* const comma = place == 0 ? "" : ", ";
      absl::StrAppend(&target, comma, i * place, ".25");
      absl::StrAppend(&mask, comma, i == 7 ? 0 : (i + place) % 3 == 0 || place == 0 ? 1 : 0);
    }
    absl::StrAppend(&text, "{\"input\": [", input, "], \"target\": [", target, "], \"mask\": [",
                    mask, "], \"length\": ", 1 + i % 4, "}\n");
  }
  return text;
}

const Files& FilesOfSixtySums() {
  static const auto& files = *new Files(SixtySums(), SixtySums());
  return files;
}

constexpr MemberSeeds kMember = {.weight_seed = 1, .data_seed = 2};

struct Alone {
  double loss = 0;
  double gradient_norm = 0;
};

// The mean of the losses of a step's examples, each of which the network reads alone.
Alone OneByOne(const Blueprint& blueprint, int64_t step) {
  models::ParameterLayout layout;
  const data::Examples& examples = *blueprint.examples;
  const auto network = models::CreateNetwork(blueprint.network.name, blueprint.network.parameters,
                                             blueprint.encoding.name, blueprint.encoding.parameters,
                                             {.input_columns = examples.input_columns(),
                                              .output_columns = examples.output_columns(),
                                              .has_numbers = examples.has_numbers(),
                                              .longest_sequence = blueprint.size.longest_sequence},
                                             layout)
                           .value();
  models::ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, kMember.weight_seed);
  arena.gradients().zero_();
  std::vector<Batch> batches;
  examples.AppendStep(blueprint.batches.SamplesOfStep(step, kMember.data_seed),
                      blueprint.batches.LengthOfStep(step), batches);
  EXPECT_GT(batches.size(), 5u);
  const models::PositionPolicy policy(blueprint.encoding.parameters);
  models::DropoutNumbers dropout = {.seeds = {kMember.data_seed},
                                    .purpose = random::Purpose::kDropout,
                                    .step = static_cast<uint64_t>(step)};
  std::list<Batch> rows;  // tensors of tokens share their memory until the backward passes
  std::vector<at::Tensor> losses;
  for (const Batch& batch : batches) {
    const auto part = [](const auto& values, int64_t row, int64_t size) {
      using Values = std::decay_t<decltype(values)>;
      if (values.empty()) return Values();
      return Values(values.begin() + row * size, values.begin() + (row + 1) * size);
    };
    const int64_t tokens = batch.tokens_per_row, outputs = batch.outputs_per_row;
    for (int64_t row = 0; row < batch.rows; ++row, ++dropout.first_sequence) {
      constexpr auto kPurpose = random::Purpose::kTrainingPositions;
      const std::vector<double> positions =
          policy.from_data() ? policy.WithOffset(part(batch.ids, row, tokens), kMember.data_seed,
                                                 kPurpose, static_cast<uint64_t>(step))
          : policy.each()
              ? policy.DrawRows(kMember.data_seed, kPurpose, static_cast<uint64_t>(step),
                                dropout.first_sequence, 1, tokens)
              : data::DrawForLength(policy, kMember.data_seed, step, tokens);
      Batch& one = rows.emplace_back();
      one = {.rows = 1,
             .tokens_per_row = tokens,
             .outputs_per_row = outputs,
             .tokens = part(batch.tokens, row, tokens),
             .numbers = part(batch.numbers, row, tokens)};
      const at::Tensor answers =
          network
              ->Forward(arena.Members(0, 1), data::ToTensors(one, at::kCPU, at::kDouble).input,
                        at::tensor(positions, at::kDouble).view({1, 1, tokens}), outputs, &dropout,
                        nullptr)
              .select(0, 0)
              .select(0, 0);  // [outputs, columns]
      at::Tensor sum = at::zeros({}, at::kDouble);
      int64_t counted = 0;
      for (int64_t output = 0; output < outputs; ++output) {
        const auto at = static_cast<size_t>(row * outputs + output);
        const at::Tensor answer = answers.select(0, output);
        if (examples.has_numbers()) {
          if (batch.mask[at] == 0) continue;
          sum = sum.add(answer.select(0, 0).sub(batch.number_targets[at]).square());
        } else {
          sum = sum.sub(at::log_softmax(answer, 0).select(0, batch.targets[at]));
        }
        ++counted;
      }
      if (counted > 0) losses.push_back(sum.div(counted));
    }
  }
  Alone alone;
  for (const at::Tensor& loss : losses) {
    const at::Tensor part = loss.div(static_cast<int64_t>(losses.size()));
    part.backward();
    alone.loss += part.item<double>();
  }
  alone.gradient_norm = arena.gradients().norm().item<double>();
  return alone;
}

std::unique_ptr<PackModel> ModelOf(const Blueprint& blueprint,
                                   const std::vector<MemberSeeds>& members, bool together,
                                   GraphCounts* counts = nullptr) {
  Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  device.members_together = together;
  if (counts != nullptr) {
    device.make_graph_pool = [counts] { return std::make_unique<ReplayingGraphs>(*counts); };
  }
  auto model = CreatePackModel(blueprint, members, device,
                               [](const std::string& text) { ADD_FAILURE() << text; });
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

Blueprint BlueprintOf(const Files& files, const v1::TrialSpecification& trial) {
  return MakeBlueprint(trial, [&](absl::string_view sha256, int64_t) { return files.Path(sha256); })
      .value();
}

// 16 of 60 examples a step, in double precision, with positions of this network's form.
Blueprint SixtySizesFor(const models::NetworkEntry& network) {
  const bool numbers = network.Learns(tasks::TaskKind::kRegression);
  const Files& files = numbers ? FilesOfSixtySums() : FilesOfSixtySizes();
  v1::TrialSpecification trial = TrialOfSixtySizes();
  *trial.mutable_task() = files.Trial().task();
  if (numbers) trial.mutable_task()->set_name("examples_numbers");
  trial.mutable_network()->set_name(network.name);
  trial.mutable_network()->clear_parameters();
  if (models::ReadsInOrder(network.name)) {
    trial.mutable_encoding()->Clear();
    trial.mutable_encoding()->set_name("none");
  }
  for (const auto& parameter : network.parameters) {
    auto& parameters = *trial.mutable_network()->mutable_parameters();
    if (parameter.name == "blocks" || parameter.name == "heads" || parameter.name == "loops") {
      parameters[parameter.name].set_number_value(2);
    } else if (parameter.name == "d_model" || parameter.name == "hidden_size") {
      parameters[parameter.name].set_number_value(16);
    } else if (parameter.name == "dropout") {
      parameters[parameter.name].set_number_value(0.1);
    }
  }
  trial.mutable_training()->set_batch_size(16);
  trial.mutable_training()->set_precision("float64");
  return BlueprintOf(files, trial);
}

TEST(FileExamplesTest, StepLossIsTheMeanOfItsExamplesAlone) {
  int networks = 0;
  for (const models::NetworkEntry* network : models::NetworkEntries()) {
    if (network->Learns(tasks::TaskKind::kText)) continue;  // language_pack_model_test
    ++networks;
    const Blueprint blueprint = SixtySizesFor(*network);
    const auto model = ModelOf(blueprint, {kMember}, /*together=*/false);
    for (int64_t step = 1; step <= 2; ++step) {
      const Alone alone = OneByOne(blueprint, step);
      // Adam moves no parameter at this rate, so every step has the initial network.
      const StepMeasurement measured = TrainStep(*model, step, {0}, {1e-300}).at(0);
      EXPECT_NEAR(measured.loss / alone.loss, 1, 1e-6) << network->name << ", step " << step;
      EXPECT_NEAR(measured.gradient_norm / alone.gradient_norm, 1, 1e-6) << network->name;
    }
  }
  EXPECT_GE(networks, 4);
}

TEST(FileExamplesTest, ExamplesMayHaveTheirOwnPositions) {
  const Files files(SixtySizes(/*with_ids=*/true), SixtySizes(/*with_ids=*/true));
  for (const bool from_data : {true, false}) {
    v1::TrialSpecification trial = TrialOfSixtySizes();
    *trial.mutable_task() = files.Trial().task();
    trial.mutable_encoding()->set_name("rope");
    trial.mutable_encoding()->clear_parameters();
    auto& options = *trial.mutable_encoding()->mutable_parameters();
    options["positions"].set_string_value(from_data ? "data" : "shift");
    options["random_offset"].set_number_value(9);
    if (!from_data) options["draws"].set_string_value("per_sequence");
    trial.mutable_training()->set_batch_size(40);
    trial.mutable_training()->set_precision("float64");
    const Blueprint blueprint = BlueprintOf(files, trial);
    EXPECT_EQ(blueprint.size.largest_id, 30);
    const auto model = ModelOf(blueprint, {kMember}, /*together=*/false);
    const Alone alone = OneByOne(blueprint, 1);
    const StepMeasurement measured = TrainStep(*model, 1, {0}, {1e-300}).at(0);
    EXPECT_NEAR(measured.loss / alone.loss, 1, 1e-6) << from_data;
    EXPECT_NEAR(measured.gradient_norm / alone.gradient_norm, 1, 1e-6) << from_data;
    if (!from_data) continue;
    FileSession session(files);
    RunLease(LeaseOf({trial}), session);
    ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
    for (const v1::Event& event : session.events(0)) {
      if (!event.has_attention_map()) continue;
      const auto& positions = event.attention_map().positions();
      EXPECT_EQ(positions[0], 0);
      EXPECT_EQ(*positions.rbegin(), 5) << "ids without an offset";
    }
  }
}

// Works like a GPU, on the CPU: members together, steps prepared ahead, and those of one size
// recorded.
TEST(FileExamplesTest, MembersOfManySizesLearnTheSameTogetherAndAlone) {
  v1::TrialSpecification trial = ReversalFiles().Trial();
  // Pools of two sizes, of which a few steps draw only one.
  trial.mutable_training()->set_batch_size(4);
  trial.mutable_training()->set_precision("float64");
  std::string train;
  for (int i = 0; i < 12; ++i) {
    const std::string symbols = absl::StrCat(i % 3, i < 6 ? "" : ", 1", i < 9 ? "" : ", 2");
    absl::StrAppend(&train, "{\"input\": [", symbols, "], \"target\": [", symbols,
                    "], \"length\": 3}\n");
  }
  const Files files(train + Reversals(2, 1), Reversals(9, 2));
  *trial.mutable_task() = files.Trial().task();
  const Blueprint blueprint = BlueprintOf(files, trial);
  const std::vector<MemberSeeds> members = {{1, 2}, {3, 4}, {5, 6}};
  GraphCounts counts;
  const auto alone = ModelOf(blueprint, members, /*together=*/false);
  const auto together = ModelOf(blueprint, members, /*together=*/true, &counts);
  for (int64_t step = 1; step <= 40; ++step) {
    const auto expected = TrainStep(*alone, step, {0, 1, 2}, {1e-3, 1e-3, 1e-3});
    const auto actual = TrainStep(*together, step, {0, 1, 2}, {1e-3, 1e-3, 1e-3});
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i].loss, expected[i].loss, 1e-6) << "step " << step << ", member " << i;
      EXPECT_FLOAT_EQ(actual[i].accuracy, expected[i].accuracy);
      EXPECT_NEAR(actual[i].gradient_norm, expected[i].gradient_norm, 1e-5);
    }
  }
  EXPECT_GT(counts.replayed, 10);
}

TEST(FileExamplesTest, ResumedTrialMatchesUninterrupted) {
  ExpectResumeChangesNothing(ReversalFiles(), ReversalFiles().Trial());
  ExpectResumeChangesNothing(FilesOfSixtySizes(), TrialOfSixtySizes());
}

TEST(FileExamplesTest, ResumedLanguageModelMatchesUninterrupted) {
  ExpectResumeChangesNothing(ReversalFiles(), ReversalFiles().TextTrial());
}

void ExpectPackMatchesItsMembers(const Files& files,
                                 const std::vector<v1::TrialSpecification>& trials) {
  FileSession pack(files);
  RunLease(LeaseOf(trials), pack);
  for (size_t i = 0; i < trials.size(); ++i) {
    FileSession alone(files);
    RunLease(LeaseOf({trials[i]}), alone);
    EXPECT_EQ(pack.History(static_cast<int64_t>(i)), alone.History(0));
  }
}

TEST(FileExamplesTest, PackMatchesItsMembers) {
  const Files& files = ReversalFiles();
  ExpectPackMatchesItsMembers(files, {files.Trial(0), files.Trial(1)});
  ExpectPackMatchesItsMembers(files, {files.TextTrial(0), files.TextTrial(1)});
  ExpectPackMatchesItsMembers(FilesOfSixtySizes(), {TrialOfSixtySizes(0), TrialOfSixtySizes(1)});
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
  session.SetError(absl::UnavailableError("the server is away"));
  RunLease(LeaseOf({others.Trial()}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("the server is away"));
}

TEST(FileExamplesTest, MachineThatCannotStoreThemFailsNoTrial) {
  const Files others(Reversals(6, 9), Reversals(9, 10));  // not in memory
  FileSession session(others);
  const absl::Status full = absl::FailedPreconditionError("No space left on device");
  session.SetError(full);
  EXPECT_EQ(Runner().Run(LeaseOf({others.Trial(0), others.Trial(1)}), session), full);
  EXPECT_TRUE(session.events(0).empty());
  EXPECT_TRUE(session.events(1).empty());
  EXPECT_EQ(Runner().device_status(), absl::OkStatus()) << "other trials can run here";
}

TEST(FileExamplesTest, DrainDuringFetchFailsNoTrial) {
  const Files others(Reversals(6, 7), Reversals(9, 8));  // not in memory
  FileSession session(others);
  session.SetError(absl::UnavailableError("the server is away"));
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
