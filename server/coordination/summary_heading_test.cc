#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/messages.h"
#include "tasks/catalogue.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

v1::ExperimentSpecification Specification() {
  v1::ExperimentSpecification specification;
  specification.mutable_evaluation()->set_seen_up_to(2);
  specification.mutable_evaluation()->set_sequences(500);
  specification.mutable_training()->mutable_lengths()->set_min(1);
  specification.mutable_training()->mutable_lengths()->set_max(2);
  return specification;
}

// Adds a cell of trials that were evaluated at lengths 1 to 3.
void AddCell(int trials, v1::SummarizeExperimentResponse& response) {
  auto& cell = *response.add_cells();
  for (const int32_t length : {1, 2, 3}) cell.add_lengths(length);
  cell.mutable_unseen_accuracy()->set_trials(trials);
}

TEST(SummaryHeadingTest, CaptionTellsTrainedFromSeenLengths) {
  v1::SummarizeExperimentResponse response;
  AddCell(1, response);
  v1::ExperimentSpecification specification = Specification();
  v1::Component& task = *specification.add_tasks();
  task.set_name("bucket_sort");
  v1::LengthRange& trained = *specification.mutable_training()->mutable_lengths();
  const auto caption = [&](int32_t from, int32_t to, int32_t seen_up_to) {
    trained.set_min(from);
    trained.set_max(to);
    specification.mutable_evaluation()->set_seen_up_to(seen_up_to);
    return HeadingOf(specification, response).caption();
  };
  EXPECT_THAT(caption(1, 2, 2), HasSubstr("; trained on lengths up to 2)"));
  EXPECT_THAT(caption(2, 2, 2), HasSubstr("; trained on length 2; up to 2 count as seen)"));
  EXPECT_THAT(caption(10, 20, 20),
              HasSubstr("; trained on lengths 10 to 20; up to 20 count as seen)"));
  EXPECT_THAT(caption(8, 8, 8), HasSubstr("; trained on length 8; up to 8 count as seen)"));
  EXPECT_THAT(caption(1, 500, 40),
              HasSubstr("; trained on lengths 1 to 500; up to 40 count as seen)"));
  // Nothing is evaluated below the lengths of training.
  response.mutable_cells(0)->mutable_lengths()->Set(0, 10);
  response.mutable_cells(0)->mutable_lengths()->Set(1, 20);
  response.mutable_cells(0)->mutable_lengths()->Set(2, 30);
  EXPECT_THAT(caption(10, 20, 20), HasSubstr("; trained on lengths 10 to 20)"));
  // The file has no training examples above 3.
  task.set_name("examples");
  (*task.mutable_parameters())["contents"].set_string_value(
      R"({"form":"symbols","input_symbols":4,"target_symbols":2,"same_length":true,)"
      R"("train_bytes":9,"test_bytes":9,"training":{"examples":5,"longest":6,"lengths":"1-3x5"},)"
      R"("test":{"examples":15,"longest":6,"lengths":"1-3x15"}})");
  EXPECT_THAT(caption(1, 20, 3), HasSubstr("; trained on lengths up to 3)"));
  // Evaluated lengths are 10, 20 and 30, and training had none of 10.
  (*task.mutable_parameters())["contents"].set_string_value(absl::StrReplaceAll(
      task.parameters().at("contents").string_value(), {{"1-3x5", "1-3x5,20x5"}}));
  EXPECT_THAT(caption(1, 20, 20),
              HasSubstr("; trained on some of the lengths 1 to 20; up to 20 count as seen)"));
  // Another task has examples of all lengths.
  specification.add_tasks()->set_name("bucket_sort");
  EXPECT_THAT(caption(1, 20, 20),
              HasSubstr("; trained on different lengths by task; up to 20 count as seen)"));
  // The examples have those that are evaluated.
  (*task.mutable_parameters())["contents"].set_string_value(absl::StrReplaceAll(
      task.parameters().at("contents").string_value(), {{"1-3x5,20x5", "1-3x5,10x5,20x5"}}));
  EXPECT_THAT(caption(1, 20, 20), HasSubstr("; trained on lengths up to 20)"));
  specification.mutable_tasks()->RemoveLast();
  EXPECT_THAT(caption(1, 20, 0),
              HasSubstr("; trained on some of the lengths 1 to 20; up to 0 count as seen)"));
  // Scales are not the lengths of training.
  task.set_name("cumulative_sum");
  EXPECT_THAT(caption(4, 4, 1), HasSubstr("; trained on scale 1)"));
}

TEST(SummaryHeadingTest, CountsTheExamplesOfATestFile) {
  v1::SummarizeExperimentResponse response;
  AddCell(1, response);
  v1::ExperimentSpecification specification = Specification();
  v1::Component& task = *specification.add_tasks();
  task.set_name("examples");
  // Of length 9, nothing is evaluated.
  const auto caption = [&](const std::string& lengths) {
    (*task.mutable_parameters())["contents"].set_string_value(absl::StrCat(
        R"({"form":"symbols","input_symbols":4,"target_symbols":2,"same_length":true,)",
        R"("train_bytes":9,"test_bytes":9,"training":{"examples":5,"longest":6,"lengths":"1-3x5"},)",
        R"("test":{"examples":15,"longest":6,"lengths":")", lengths, R"("}})"));
    return HeadingOf(specification, response).caption();
  };
  EXPECT_THAT(caption("1-3x5,9x700"), HasSubstr("(5 sequences per length;"));
  EXPECT_THAT(caption("1-2x5,3x12"), HasSubstr("(up to 12 sequences per length;"));
  EXPECT_THAT(caption("1-2x5,3x700"), HasSubstr("(up to 500 sequences per length;"));
  EXPECT_THAT(caption("1-3x700"), HasSubstr("(500 sequences per length;"));
}

TEST(SummaryHeadingTest, CaptionNamesTheMeasure) {
  v1::ExperimentSpecification specification = Specification();
  specification.add_tasks()->set_name("bucket_sort");
  const v1::SummarizeExperimentResponse response;
  EXPECT_EQ(HeadingOf(specification, response).caption(),
            "Token accuracy by input length, per cent (500 sequences per length; trained on "
            "lengths up to 2)");
  specification.mutable_tasks(0)->set_name("decimal_addition");
  EXPECT_EQ(HeadingOf(specification, response).caption(),
            "Exact match by number of digits, per cent (500 sequences per number of digits; "
            "trained on up to 2 digits)");
  v1::SummarizeExperimentResponse seeds;
  AddCell(2, seeds);
  EXPECT_THAT(HeadingOf(specification, seeds).caption(),
              HasSubstr("trained on up to 2 digits; ±: standard deviation over trials)"));
}

TEST(SummaryHeadingTest, NamesTheChanceOfEachTask) {
  v1::ExperimentSpecification specification = Specification();
  EXPECT_EQ(HeadingOf(specification, {}).random_guess(), "");
  specification.add_tasks()->set_name("bucket_sort");
  EXPECT_EQ(HeadingOf(specification, {}).random_guess(), "Random guess: 20 %.");
  specification.add_tasks()->set_name("even_pairs");
  specification.add_tasks()->set_name("parity_check");
  EXPECT_EQ(HeadingOf(specification, {}).random_guess(),
            "Random guess: 50 % (even_pairs, parity_check), 20 % (bucket_sort).");
  // With other symbols, chance is another.
  auto& parameters = *specification.mutable_tasks(0)->mutable_parameters();
  const catalogue::ParameterEntry& parameter = tasks::FindTask("bucket_sort")->parameters.at(0);
  parameters[parameter.name].set_number_value(3);
  EXPECT_EQ(HeadingOf(specification, {}).random_guess(),
            "Random guess: 50 % (even_pairs, parity_check).");
  parameters[parameter.name].set_number_value(
      static_cast<double>(std::get<int64_t>(parameter.default_value)));
  EXPECT_THAT(HeadingOf(specification, {}).random_guess(), HasSubstr("20 % (bucket_sort)"));
  specification.clear_tasks();
  specification.add_tasks()->set_name("cumulative_sum");
  EXPECT_EQ(HeadingOf(specification, {}).random_guess(), "");
}

TEST(SummaryHeadingTest, ColumnsDoNotCallATrainedLengthUnseen) {
  v1::SummarizeExperimentResponse response;
  AddCell(1, response);
  v1::ExperimentSpecification specification = Specification();
  specification.add_tasks()->set_name("bucket_sort");
  const auto heading = [&](int32_t from, int32_t to) {
    specification.mutable_training()->mutable_lengths()->set_min(from);
    specification.mutable_training()->mutable_lengths()->set_max(to);
    const auto found = HeadingOf(specification, response);
    return absl::StrCat(found.seen(), " | ", found.unseen());
  };
  EXPECT_EQ(heading(1, 2), "seen in training | not seen");
  EXPECT_EQ(heading(1, 100), "up to 2 | above 2");
  // Of the seen lengths, training had 2 alone; it had none of the others.
  EXPECT_EQ(heading(2, 2), "up to 2 | not seen");
}

TEST(TrainedLengthsTest, AreTheRangesThatTheFileHas) {
  v1::Component task;
  v1::Training training;
  training.mutable_lengths()->set_min(2);
  training.mutable_lengths()->set_max(9);
  const auto ranges = [&] {
    std::string text;
    for (const v1::LengthRange& range : TrainedLengths(task, training)) {
      absl::StrAppend(&text, range.min(), "-", range.max(), " ");
    }
    return text;
  };
  task.set_name("bucket_sort");
  EXPECT_EQ(ranges(), "2-9 ");
  task.set_name("examples");
  (*task.mutable_parameters())["contents"].set_string_value(
      R"({"form":"symbols","input_symbols":4,"target_symbols":2,"same_length":true,)"
      R"("train_bytes":9,"test_bytes":9,)"
      R"("training":{"examples":5,"longest":6,"lengths":"1-3x5,5x5,9-12x5"},)"
      R"("test":{"examples":15,"longest":6,"lengths":"1-3x15"}})");
  EXPECT_EQ(ranges(), "2-3 5-5 9-9 ");
  // Scales are not the lengths of training.
  task.set_name("cumulative_sum");
  EXPECT_EQ(ranges(), "");
}

}  // namespace
}  // namespace lengthwise::server
