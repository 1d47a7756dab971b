#include "specification/examples.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"
#include "tasks/examples/contents.h"

namespace lengthwise::specification {
namespace {

using tasks::examples::Contents;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kTrainHash(64, 'a');
const std::string kTestHash(64, 'b');

// Training examples of lengths 1 to 4 and 8, test examples of lengths 2 to 10. An example of length
// n has 2 n tokens.
Contents Strings(std::optional<bool> one_size = std::nullopt) {
  Contents contents = {.input_symbols = 5,
                       .target_symbols = 3,
                       .one_size = one_size,
                       .train_bytes = 100,
                       .test_bytes = 200};
  const auto add = [](int32_t length, Contents::OfPart& part) {
    part.examples += 7;
    part.lengths[length] = 7;
    part.longest_by_length[length] = part.shortest_by_length[length] = 2 * length;
    part.longest = std::max<int64_t>(part.longest, 2 * length);
  };
  for (const int32_t length : {1, 2, 3, 4, 8}) add(length, contents.training);
  for (int32_t length = 2; length <= 10; ++length) add(length, contents.test);
  return contents;
}

struct Text {
  std::string task = "examples";
  std::string network = "{name: encoder, blocks: 1, heads: 2, d_model: 16}";
  std::string encodings = "{name: sin_cos, randomized: true, max_position: 20}";
  std::string training = "lengths: 1..4, steps: 10";
  std::string evaluation = "lengths: [2, 10]";
  std::optional<bool> one_size;
};

absl::StatusOr<Grid> ResolveText(const Text& text) {
  v1::SpecificationText message;
  message.set_format(v1::SpecificationText::YAML);
  message.set_text(absl::StrCat("{name: x, tasks: {name: ", text.task,
                                ", train: a.jsonl, test: b.jsonl, train_sha256: ", kTrainHash,
                                ", test_sha256: ", kTestHash, ", contents: '",
                                tasks::examples::ToText(Strings(text.one_size)), "'",
                                "}, networks: ", text.network, ", encodings: ", text.encodings,
                                ", learning_rates: 0.001, seeds: 0, training: {", text.training,
                                "}, evaluation: {", text.evaluation, "}}"));
  return Resolve(message, Limits());
}

std::string MessageOf(const Text& text) {
  return std::string(ResolveText(text).status().message());
}

TEST(ExamplesTest, SpecificationThatFitsItsFilesIsAccepted) {
  const absl::StatusOr<Grid> grid = ResolveText({});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(DataFilesOf(grid->specification),
            (std::vector<DataFile>{{kTrainHash, 100}, {kTestHash, 200}}));
}

// The longest sequence that is trained on or evaluated determines the fewest positions: 2 x 10
// tokens.
TEST(ExamplesTest, PositionsFollowTheLengthsThatAreUsed) {
  Text text = {.encodings = "{name: sin_cos, randomized: true, max_position: 19}"};
  EXPECT_THAT(MessageOf(text), HasSubstr("max_position"));
  text.evaluation = "lengths: [2, 9]";
  EXPECT_EQ(MessageOf(text), "");
  // An input may be as long as any example.
  text.evaluation = "lengths: [2, 9], attention_inputs: [{tokens: [0, 1]}]";
  EXPECT_THAT(MessageOf(text), HasSubstr("max_position"));
}

TEST(ExamplesTest, LengthsWithoutExamplesAreNamed) {
  EXPECT_THAT(MessageOf({.training = "lengths: 5..7, steps: 10"}),
              HasSubstr("training.lengths: got 5..7, a.jsonl has training examples of lengths "
                        "1..4, 8"));
  EXPECT_THAT(MessageOf({.evaluation = "lengths: [2, 11]"}),
              HasSubstr("evaluation.lengths: got 11, b.jsonl has test examples of lengths 2..10"));
  EXPECT_THAT(MessageOf({.evaluation = "lengths: 2, attention_lengths: [1]"}),
              HasSubstr("evaluation.attention_lengths: got 1, b.jsonl has test examples"));
  EXPECT_THAT(MessageOf({.evaluation = "lengths: 2, projection: {fitted_length: 3, lengths: 12}"}),
              HasSubstr("evaluation.projection.lengths: got 12, b.jsonl has test examples"));
}

TEST(ExamplesTest, EveryLengthWithoutExamplesIsNamedOnce) {
  EXPECT_THAT(
      MessageOf({.evaluation = "lengths: [2, 11, 12, 40]"}),
      AllOf(HasSubstr("evaluation.lengths: got 11..12, 40, b.jsonl has test examples of lengths "
                      "2..10"),
            Not(HasSubstr("interval_lengths"))));
}

TEST(ExamplesTest, LengthsBeyondTheTrainingExamplesAreNotSeen) {
  const auto seen_up_to = [](const Text& text) {
    const absl::StatusOr<Grid> grid = ResolveText(text);
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid->specification.evaluation().seen_up_to();
  };
  EXPECT_EQ(seen_up_to({.training = "lengths: 1..4, steps: 10"}), 4);
  EXPECT_EQ(seen_up_to({.training = "lengths: 1..3, steps: 10"}), 3);
  EXPECT_EQ(seen_up_to({.training = "lengths: 1..7, steps: 10"}), 4);
  EXPECT_EQ(seen_up_to({.training = "lengths: 1..9, steps: 10"}), 8);
  EXPECT_EQ(seen_up_to({.training = "lengths: 1..7, steps: 10",
                        .evaluation = "lengths: [2, 10], seen_up_to: 7"}),
            7);
}

TEST(ExamplesTest, WarnsOfSeenLengthsWithoutTrainingAndOfFewTests) {
  const auto warnings = [](const Text& text) {
    const absl::StatusOr<Grid> grid = ResolveText(text);
    EXPECT_TRUE(grid.ok()) << grid.status();
    return ExampleWarnings(grid->specification);
  };
  EXPECT_THAT(warnings({.training = "lengths: 1..8, steps: 10", .evaluation = "lengths: 2..10"}),
              ElementsAre(HasSubstr("no examples of lengths 5..7 of a.jsonl, but results count"),
                          HasSubstr("b.jsonl has fewer than 20 test examples of lengths 2..10")));
  EXPECT_THAT(warnings({.training = "lengths: 3..4, steps: 10", .evaluation = "lengths: [2, 4]"}),
              Contains(HasSubstr("no examples of lengths 2 of")));
  EXPECT_THAT(warnings({.evaluation = "lengths: [2, 10]"}), SizeIs(1));
}

TEST(ExamplesTest, WarnsOfStepsWithFewerExamplesThanTheirBatch) {
  const auto warnings = [](const std::string& training, std::optional<bool> one_size) {
    const absl::StatusOr<Grid> grid =
        ResolveText({.training = "lengths: 1..4, steps: 10, " + training, .one_size = one_size});
    EXPECT_TRUE(grid.ok()) << grid.status();
    return ExampleWarnings(grid->specification);
  };
  EXPECT_THAT(warnings("batch_size: 29", false),
              Contains("a step has only 28 different examples of a.jsonl; training.batch_size is "
                       "29, so some occur several times"));
  EXPECT_THAT(warnings("batch_size: 8", true),
              Contains("a step has only 7 different examples of a.jsonl at lengths 1..4, because "
                       "all examples of a step have one length; training.batch_size is 8, so some "
                       "occur several times"));
  const auto says_nothing = Not(Contains(HasSubstr("a step has only")));
  EXPECT_THAT(warnings("batch_size: 28", false), says_nothing);
  EXPECT_THAT(warnings("batch_size: 7", true), says_nothing);
  EXPECT_THAT(warnings("batch_size: 29", std::nullopt), says_nothing) << "of an earlier release";
}

TEST(ExamplesTest, TrainingExamplesAreThoseOfTheFile) {
  EXPECT_THAT(MessageOf({.training = "lengths: 1..4, steps: 10, examples: 50"}),
              HasSubstr("training.examples: does not apply to a file's examples"));
}

TEST(ExamplesTest, InputsHaveTheFilesSymbols) {
  EXPECT_THAT(MessageOf({.evaluation = "lengths: 2, attention_inputs: [{tokens: [4, 5]}]"}),
              HasSubstr("evaluation.attention_inputs[0].tokens: got 5, a.jsonl has input symbols "
                        "from 0 to 4"));
  EXPECT_THAT(MessageOf({.evaluation = "lengths: 2, attention_inputs: [{numbers: [0.5]}]"}),
              HasSubstr("evaluation.attention_inputs[0].numbers: a.jsonl has symbols: give tokens "
                        "instead"));
}

TEST(ExamplesTest, LanguageModelsPackTheLongestExample) {
  Text text = {.task = "examples_text",
               .network = "{name: causal_decoder, blocks: 1, heads: 2, d_model: 16}",
               .encodings = "none",
               .training = "lengths: 1..8, steps: 10, packing: {tokens: 16}",
               .evaluation = "lengths: [2, 10]"};
  EXPECT_THAT(MessageOf(text),
              HasSubstr("training.packing.tokens: got 16, expected at least 17, the tokens of the "
                        "longest training example of a.jsonl"));
  text.training = "lengths: 1..8, steps: 10, packing: {tokens: 17}";
  EXPECT_EQ(MessageOf(text), "");
}

TEST(ExamplesTest, FilesAndTheirHashesBelongTogether) {
  v1::SpecificationText message;
  message.set_format(v1::SpecificationText::YAML);
  const auto message_of = [&](const std::string& task) {
    message.set_text(absl::StrCat("{name: x, tasks: {name: examples", task,
                                  "}, networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}, "
                                  "encodings: none, learning_rates: 0.001, seeds: 0, training: "
                                  "{lengths: 1..4, steps: 10}, evaluation: {lengths: 2}}"));
    return std::string(Resolve(message, Limits()).status().message());
  };
  EXPECT_THAT(message_of(""), HasSubstr("tasks[0].train: required: a file of examples"));
  EXPECT_THAT(message_of(", train: a.jsonl"),
              HasSubstr("nothing is known of the file a.jsonl; submit the specification with "
                        "`lengthwise submit`"));
  EXPECT_THAT(message_of(", train: a.jsonl, contents: '{}'"), HasSubstr("tasks[0].contents"));
  const std::string contents =
      absl::StrCat(", contents: '", tasks::examples::ToText(Strings()), "'");
  EXPECT_THAT(message_of(absl::StrCat(", train: a.jsonl", contents)),
              HasSubstr("tasks[0].train_sha256: expected 64 lower-case hexadecimal digits"));
  EXPECT_THAT(message_of(absl::StrCat(", train: a.jsonl, train_sha256: ", kTrainHash,
                                      ", test_sha256: ", kTestHash, contents)),
              HasSubstr("tasks[0].test_sha256: belongs to no file: set `test`, or remove this"));
}

}  // namespace
}  // namespace lengthwise::specification
