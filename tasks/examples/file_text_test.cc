#include "tasks/examples/file_text.h"

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::tasks::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

FileText TextOfFiles(const std::string& train, const std::string& test,
                     const Options& options = {.any_target_length = true}) {
  const std::string directory = ::testing::TempDir();
  std::ofstream(directory + "/train.jsonl") << train;
  std::ofstream(directory + "/test.jsonl") << test;
  Problems problems;
  const auto loaded = Load({directory + "/train.jsonl", "train.jsonl"},
                           {directory + "/test.jsonl", "test.jsonl"}, options, problems);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return FileText(loaded->set);
}

std::string JsonLine(const std::string& input, const std::string& target, int length) {
  return absl::StrCat("{\"input\": \"", input, "\", \"target\": \"", target,
                      "\", \"length\": ", length, "}\n");
}

// Symbols in byte order: + 1 2 7 9 =, with + at 0x2B, then digits, and = at 0x3D.
TEST(FileTextTest, InputsAndTargetsShareAVocabulary) {
  const FileText text = TextOfFiles(JsonLine("12+7=", "19", 2), JsonLine("1+1=", "9", 1));
  EXPECT_EQ(text.vocabulary(), 8);
  EXPECT_EQ(text.end_token(), 6);
  EXPECT_EQ(text.padding_token(), 7);
  random::Stream stream(0, random::Purpose::kTrainingSamples, 1, 0);
  const TextExample example = text.Sample(2, /*augmented=*/true, stream);
  EXPECT_THAT(example.tokens, ElementsAre(1, 2, 0, 3, 5, 1, 4, 6));
  EXPECT_EQ(example.prompt, 5u);
  EXPECT_EQ(text.Format(example.Prompt()), "12+7=");
  EXPECT_EQ(text.Format(example.Answer()), "19<eos>");
  EXPECT_EQ(text.LongestExample(2), 8);
}

TEST(FileTextTest, IntegersKeepTheirNumbers) {
  const FileText text = TextOfFiles("{\"input\": [3, 0], \"target\": [5]}\n",
                                    "{\"input\": [3, 1], \"target\": [4]}\n");
  EXPECT_EQ(text.end_token(), 6);
  random::Stream stream(0, random::Purpose::kTrainingSamples, 1, 0);
  EXPECT_THAT(text.Sample(2, true, stream).tokens, ElementsAre(3, 0, 5, 6));
}

TEST(FileTextTest, IdsAreThoseOfTheLine) {
  const std::string line =
      "{\"input\":\"21+43=\",\"target\":\"64\",\"positions\":[1,2,0,1,2,0,1,2]}\n";
  const FileText text = TextOfFiles(line, line);
  ASSERT_TRUE(text.has_ids());
  EXPECT_EQ(text.LargestId(6), 2);
  random::Stream stream(0, random::Purpose::kTrainingSamples, 1, 0);
  const TextExample example = text.Sample(6, false, stream);
  EXPECT_THAT(text.Ids(example, example.tokens), ElementsAre(1, 2, 0, 1, 2, 0, 1, 2, 0))
      << "the end token has 0";
  std::vector<int32_t> written = example.tokens;
  written.resize(11);
  EXPECT_THAT(text.Ids(example, written), ElementsAre(1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0));
  EXPECT_FALSE(TextOfFiles(JsonLine("1", "9", 2), JsonLine("1", "9", 1)).has_ids());
}

TEST(FileTextTest, EveryTestExampleIsAskedOnce) {
  std::string test;
  for (const char* word : {"a", "bb", "ccc", "d"}) test += JsonLine(word, "a", 3);
  const FileText text = TextOfFiles(test, test);
  EXPECT_EQ(text.Questions(3, 500), 4);
  EXPECT_EQ(text.Questions(3, 2), 2);
  EXPECT_EQ(text.Questions(2, 500), 0);
  std::vector<std::string> asked;
  for (int64_t number = 0; number < 4; ++number) {
    random::Stream stream(0, random::Purpose::kEvaluationSamples, 3, 0);
    asked.push_back(text.Format(text.Question(3, number, stream).Prompt()));
  }
  EXPECT_THAT(asked, UnorderedElementsAre("a", "bb", "ccc", "d"));
}

// A third of the examples has length 1; none has length 2.
TEST(FileTextTest, EachTrainingExampleIsEquallyLikely) {
  const FileText text = TextOfFiles(
      JsonLine("a", "b", 1) + JsonLine("a", "b", 3) + JsonLine("b", "b", 3), JsonLine("a", "b", 1));
  std::map<int64_t, int> drawn;
  for (uint64_t step = 1; step <= 3000; ++step) {
    random::Stream stream(0, random::Purpose::kTrainingSamples, step, 0);
    ++drawn[text.DrawSize(1, 5, stream)];
  }
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(drawn[1], 1000, 100);
  EXPECT_NEAR(drawn[3], 2000, 100);
  EXPECT_TRUE(text.CheckTraining(2, 3).ok());
  EXPECT_FALSE(text.CheckTraining(2, 2).ok());
  EXPECT_TRUE(text.Check(1).ok());
  EXPECT_FALSE(text.Check(3).ok()) << "not tested";
}

TEST(FileTextTest, LongestExampleGrowsWithTheSize) {
  const FileText text =
      TextOfFiles(JsonLine("aaaaaaaa", "b", 1) + JsonLine("a", "b", 3), JsonLine("a", "b", 1));
  EXPECT_EQ(text.LongestExample(1), 10);
  EXPECT_EQ(text.LongestExample(3), 10);
}

TEST(FileTextTest, TrainingDrawsOnlyTheGivenSizes) {
  const FileText text = TextOfFiles(JsonLine("aaaaaaaa", "b", 1) + JsonLine("a", "b", 3),
                                    JsonLine("aaaaaaaaaaaa", "b", 2));
  EXPECT_EQ(text.LongestTrainingExample(1, 3), 10);
  EXPECT_EQ(text.LongestTrainingExample(2, 3), 3);
  EXPECT_EQ(text.LongestTrainingExample(2, 2), 0);
}

TEST(FileTextTest, OnlyCompleteAnswersAreExact) {
  const FileText text = TextOfFiles(JsonLine("ab", "abc", 2), JsonLine("ab", "abc", 2));
  random::Stream stream(0, random::Purpose::kTrainingSamples, 1, 0);
  const TextExample example = text.Sample(2, true, stream);  // a b | a b c end
  const AnswerComparison right = text.Compare(example, example.Answer());
  EXPECT_TRUE(right.is_exact);
  EXPECT_THAT(right.wrong_digits, IsEmpty());
  EXPECT_EQ(right.places, 3);
  const AnswerComparison wrong = text.Compare(example, {1, 1, 2, 3});
  EXPECT_FALSE(wrong.is_exact);
  EXPECT_THAT(wrong.wrong_digits, ElementsAre(2));
  const AnswerComparison cut = text.Compare(example, {0, 3});
  EXPECT_FALSE(cut.is_exact);
  EXPECT_THAT(cut.wrong_digits, ElementsAre(0, 1));
  EXPECT_FALSE(text.Compare(example, {0, 1, 2, 2, 3}).is_exact) << "too long";
}

}  // namespace
}  // namespace lengthwise::tasks::examples
