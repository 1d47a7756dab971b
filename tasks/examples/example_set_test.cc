#include "tasks/examples/example_set.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"

namespace lengthwise::tasks::examples {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Returns a JSON Lines file of distinct examples of lengths 2 to 21.
std::string Counting(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    const std::vector<int> digits(static_cast<size_t>(1 + i % 20), 1);
    absl::StrAppend(&text, "{\"input\": [", i, ",", absl::StrJoin(digits, ","),
                    "], \"target\": [1]}\n");
  }
  return text;
}

class ExampleSetTest : public ::testing::Test {
 protected:
  File Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
    std::ofstream(path, std::ios::binary) << text;
    return {.path = path, .name = name};
  }

  absl::StatusOr<Loaded> LoadText(const std::string& train, const std::string& test = "",
                                  const Options& options = {.held_out = 0}) {
    Problems problems;
    return Load(Write("my_train.jsonl", train),
                test.empty() ? File() : Write("my_test.jsonl", test), options, problems);
  }

  // Returns the error that loading these files gives.
  std::string Refusal(const std::string& train, const std::string& test = kTest) {
    return std::string(LoadText(train, test).status().message());
  }

  static constexpr char kTest[] = "{\"input\": [0], \"target\": [0]}\n";
};

TEST_F(ExampleSetTest, TrainingFileDefinesTheSymbols) {
  const auto loaded =
      LoadText("{\"input\": [3, 1, 2], \"target\": [1, 2, 3]}\n{\"input\": [0], \"target\": [0]}\n",
               "{\"input\": [2, 1], \"target\": [1, 2], \"length\": 9}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ExampleSet& set = *loaded->set;
  EXPECT_EQ(set.form, Form::kSymbols);
  EXPECT_EQ(set.input_symbols, 4);
  EXPECT_EQ(set.target_symbols, 4);
  EXPECT_TRUE(set.same_length);
  EXPECT_FALSE(set.one_size);
  ASSERT_TRUE(set.training.contains(3));
  const Example& longest = set.training.at(3).examples.at(0);
  EXPECT_THAT(set.Input(longest), ElementsAre(3, 1, 2));
  EXPECT_THAT(set.Target(longest), ElementsAre(1, 2, 3));
  ASSERT_TRUE(set.test.contains(9));
  EXPECT_THAT(set.Input(set.test.at(9).examples.at(0)), ElementsAre(2, 1));
  EXPECT_THAT(loaded->warnings, IsEmpty());
}

TEST_F(ExampleSetTest, TextSymbolsAreInByteOrder) {
  const std::string train = "{\"input\": \"jump twice\", \"target\": \"JUMP JUMP\"}\n";
  const auto words = LoadText(train, train, {.words = true});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(words->set->input_vocabulary, ElementsAre("jump", "twice"));
  EXPECT_EQ(words->set->ShowTarget(words->set->training.at(2).examples.at(0)), "JUMP JUMP");
  const auto characters = LoadText(train, train, {.any_target_length = true});
  ASSERT_TRUE(characters.ok()) << characters.status();
  EXPECT_THAT(characters->set->target_vocabulary, ElementsAre(" ", "J", "M", "P", "U"));
  EXPECT_EQ(characters->set->ShowInput(characters->set->test.at(10).examples.at(0)), "jump twice");
}

TEST_F(ExampleSetTest, SpacesDoNotDistinguishInputs) {
  const std::string train = "{\"input\": \"jump twice\", \"target\": \"JUMP JUMP\"}\n";
  const std::string test = "{\"input\": \" jump   twice\", \"target\": \"JUMP JUMP\"}\n";
  const auto words = LoadText(train, test, {.words = true});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(words->warnings,
              ElementsAre(HasSubstr("my_test.jsonl:1: this input also occurs in")));
  const auto characters = LoadText(train, test, {.any_target_length = true});
  ASSERT_TRUE(characters.ok()) << characters.status();
  EXPECT_THAT(characters->warnings, IsEmpty());
}

TEST_F(ExampleSetTest, FractionMakesAllValuesNumbers) {
  const auto loaded = LoadText(
      "{\"input\": [1, 2], \"target\": [3]}\n"
      "{\"input\": [0.5, -1], \"target\": [1.75]}\n",
      "{\"input\": [0.5, 2], \"target\": [-7]}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->set->form, Form::kNumbers);
  EXPECT_THAT(loaded->set->numbers, ElementsAre(1, 2, 3, 0.5, -1, 1.75, 0.5, 2, -7));
  EXPECT_THAT(loaded->set->symbols, IsEmpty());
}

TEST_F(ExampleSetTest, NumbersWhoseSquaresExceedFloat32AreNamed) {
  const std::string train = "{\"input\": [0.5], \"target\": [1e15]}\n";
  EXPECT_TRUE(LoadText(train, train).ok());
  EXPECT_THAT(Refusal("{\"input\": [1e30], \"target\": [1]}\n", train),
              HasSubstr("my_train.jsonl:1: input has the number 1e+30, expected at most 1e+15"));
  EXPECT_THAT(Refusal(train, "{\"input\": [1], \"target\": [-2e15]}\n"),
              HasSubstr("my_test.jsonl:1: target has the number -2e+15"));
}

TEST_F(ExampleSetTest, OneSizeIsThatOfAllTrainingExamples) {
  const auto one_size = [&](const std::string& train) {
    const auto loaded = LoadText(train, kTest, {.any_target_length = true});
    return loaded.value().set->one_size;
  };
  const std::string two_by_one = "{\"input\": [0, 1], \"target\": [0], \"length\": 7}\n";
  EXPECT_TRUE(one_size(two_by_one + "{\"input\": [1, 1], \"target\": [1], \"length\": 8}\n"));
  // As many tokens, but one more of the target, at another and at the same length.
  EXPECT_FALSE(one_size(two_by_one + "{\"input\": [1], \"target\": [1, 0], \"length\": 8}\n"));
  EXPECT_FALSE(one_size(two_by_one + "{\"input\": [1], \"target\": [1, 0], \"length\": 7}\n"));
}

TEST_F(ExampleSetTest, MasksApplyToTheirLineOnly) {
  const auto loaded = LoadText(
      "{\"input\": [1], \"target\": [1]}\n"
      "{\"input\": [1, 0], \"target\": [1, 0], \"mask\": [0, 1]}\n"
      "{\"input\": [1, 0, 1], \"target\": [1, 1, 1]}\n",
      kTest);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ExampleSet& set = *loaded->set;
  const auto counts = [&](int32_t length, uint32_t place) {
    return set.Counts(set.training.at(length).examples.at(0), place);
  };
  EXPECT_TRUE(counts(1, 0));
  EXPECT_FALSE(counts(2, 0));
  EXPECT_TRUE(counts(2, 1));
  EXPECT_TRUE(counts(3, 0));
  EXPECT_TRUE(set.Counts(set.test.at(1).examples.at(0), 0));
}

TEST_F(ExampleSetTest, PositionsBelongToEveryValueOfEveryLine) {
  const std::string with = "{\"input\": [1], \"target\": [1, 0], \"positions\": [1, 0, 7]}\n";
  const std::string without = "{\"input\": [1], \"target\": [1, 0]}\n";
  const auto loaded =
      LoadText(with + "{\"input\": [0, 1], \"target\": [1], \"positions\": [2, 0, 2]}\n", with);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->largest_position, 7);
  EXPECT_EQ(loaded->largest_position_line, "my_train.jsonl:1");
  const ExampleSet& set = *loaded->set;
  const Example& longer = set.training.at(2).examples.at(0);
  EXPECT_THAT(absl::MakeConstSpan(set.positions).subspan(longer.first, 3), ElementsAre(2, 0, 2));
  EXPECT_EQ(LoadText(without, without)->largest_position, -1);

  EXPECT_EQ(Refusal(with + without, with),
            "my_train.jsonl:2: has no positions, but the lines before it have");
  EXPECT_EQ(Refusal(without, with),
            "my_test.jsonl:1: has positions, but the lines before it have none");
  EXPECT_EQ(
      Refusal(with + "{\"input\": [1], \"target\": [1, 0], \"positions\": [1, 2]}\n", with),
      "my_train.jsonl:2: positions has 2 values, expected 3, one for each of the input and the "
      "target");
  EXPECT_THAT(Refusal("{\"input\": [0.5], \"target\": [1], \"positions\": [1, 2]}\n", with),
              HasSubstr("my_train.jsonl:1: has positions, which numbers do not"));
}

// 0 of 0 right values would make a mean of scores undefined.
TEST_F(ExampleSetTest, LinesWithoutACountedValueAreLeftOut) {
  const std::string masked = "{\"input\": [1], \"target\": [0.5], \"mask\": [0]}\n";
  const std::string counted = "{\"input\": [1], \"target\": [0.5]}\n";
  const auto numbers = LoadText(masked + counted, counted + masked + masked);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(Count(numbers->set->training), 1);
  EXPECT_EQ(Count(numbers->set->test), 1);
  EXPECT_THAT(
      numbers->warnings,
      ElementsAre(HasSubstr("input"),
                  "my_train.jsonl:1: mask is 0 throughout, so this line is left out",
                  "my_test.jsonl:2: mask is 0 throughout, so this and 1 more are left out"));

  const std::string symbols = "{\"input\": [0], \"target\": [0], \"mask\": [0]}\n";
  const auto classes = LoadText(symbols + kTest, symbols + kTest);
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_EQ(Count(classes->set->training), 2) << "the loss of symbols counts masked values";
  EXPECT_EQ(Count(classes->set->test), 1);
  const auto held_out =
      LoadText(symbols + kTest + "{\"input\": [0, 0], \"target\": [0, 0], \"mask\": [0, 0]}\n" +
                   "{\"input\": [0, 0], \"target\": [0, 0]}\n",
               "", {.held_out_above = 1, .held_out = 0});
  ASSERT_TRUE(held_out.ok()) << held_out.status();
  EXPECT_EQ(Count(held_out->set->training), 2);
  EXPECT_EQ(Count(held_out->set->test), 1);
}

TEST_F(ExampleSetTest, LengthWithoutACountedValueIsNamed) {
  const std::string masked = "{\"input\": [0, 0], \"target\": [0, 0], \"mask\": [0, 0]}\n";
  EXPECT_EQ(Refusal(kTest, kTest + masked + masked),
            "my_test.jsonl:2: mask is 0 throughout, as in all lines of length 2: at least one "
            "needs a 1");
  EXPECT_TRUE(LoadText(kTest + masked, kTest).ok()) << "the loss of symbols counts masked values";
  EXPECT_THAT(Refusal("{\"input\": [1], \"target\": [0.5], \"mask\": [0]}\n",
                      "{\"input\": [1], \"target\": [0.5]}\n"),
              HasSubstr("my_train.jsonl:1: mask is 0 throughout"));
}

// Without a test file, the other lines of each length are divided between the parts.
TEST_F(ExampleSetTest, NumbersAreHeldOutOfTheCountedLines) {
  std::string text;
  for (int i = 0; i < 120; ++i) {
    const std::vector<int> ones(static_cast<size_t>(1 + i % 10), 1);
    absl::StrAppend(&text, "{\"input\": [", i, ",", absl::StrJoin(ones, ","),
                    "], \"target\": [0.5], \"mask\": [", i / 10 % 2 == 0 ? 1 : 0, "]}\n");
  }
  const auto loaded = LoadText(text, "", {.held_out = 0.1});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Count(loaded->set->training) + Count(loaded->set->test), 60);
  EXPECT_THAT(loaded->set->training, SizeIs(10));
  EXPECT_THAT(loaded->set->test, SizeIs(10));
  EXPECT_THAT(loaded->warnings,
              ElementsAre("my_train.jsonl:11: mask is 0 throughout, so this and 59 more are left "
                          "out"));
}

// An experiment that an older release resolved goes on with the examples that it had.
TEST_F(ExampleSetTest, OlderReadingKeepsItsExamples) {
  const std::string masked = "{\"input\": [0], \"target\": [0], \"mask\": [0]}\n";
  const auto loaded = LoadText(kTest, kTest + masked, {.reading = 0});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Count(loaded->set->test), 2);
  // Release 0.2.0 drew these by a hash alone.
  const auto held_out = LoadText(Counting(400), "", {.held_out = 0.25, .reading = 0});
  ASSERT_TRUE(held_out.ok()) << held_out.status();
  EXPECT_EQ(Count(held_out->set->test), 97);
  EXPECT_FALSE(held_out->set->test.contains(9));
}

TEST_F(ExampleSetTest, IgnoresByteOrderMarkAndBlankLines) {
  const auto plain = LoadText("{\"input\": [1], \"target\": [1]}\n", kTest);
  const auto other = LoadText("\xEF\xBB\xBF{\"input\": [1], \"target\": [1]}\r\n\r\n   \n", kTest);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->set->symbols, plain->set->symbols);
  EXPECT_NE(other->train_sha256, plain->train_sha256) << "the hash covers the file's bytes";
}

TEST_F(ExampleSetTest, HashMatchesTheFile) {
  const std::string train = "{\"input\": [1], \"target\": [1]}";
  const auto loaded = LoadText(train, kTest);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->train_sha256, platform::Sha256Hex(train));
  EXPECT_EQ(loaded->train_bytes, static_cast<int64_t>(train.size()));
}

TEST_F(ExampleSetTest, NamesUpToTwentyBadLines) {
  std::string train;
  for (int i = 0; i < 30; ++i) train += "{\"input\": [1, 1]}\n";
  const std::vector<std::string> lines = absl::StrSplit(Refusal(train), '\n');
  ASSERT_THAT(lines, SizeIs(21));
  EXPECT_THAT(lines[19], AllOf(HasSubstr("my_train.jsonl:20: "), HasSubstr("no \"target\"")));
  EXPECT_EQ(lines[20], "and 10 more");
}

TEST_F(ExampleSetTest, UnequalTargetLengthIsNamed) {
  std::string train;
  for (int i = 0; i < 16; ++i) train += "{\"input\": [3, 1, 2], \"target\": [1, 2, 3]}\n";
  train += "{\"input\": [3, 1, 2], \"target\": [1, 2, 3, 3]}\n";
  EXPECT_THAT(Refusal(train),
              HasSubstr("my_train.jsonl:17: target has 4 symbols, expected 3, as the input"));
  EXPECT_TRUE(LoadText(train, kTest, {.any_target_length = true}).ok());
}

TEST_F(ExampleSetTest, UnseenSymbolsAreNamed) {
  const std::string train = "{\"input\": [1], \"target\": [0]}\n";
  EXPECT_THAT(Refusal(train, "{\"input\": [2], \"target\": [0]}\n"),
              HasSubstr("my_test.jsonl:1: input has the symbol 2"));
  EXPECT_THAT(Refusal(train, "{\"input\": [1], \"target\": [1]}\n"),
              HasSubstr("symbols from 0 to 0"));
  EXPECT_THAT(
      Refusal("{\"input\": \"ab\", \"target\": \"c\"}", "{\"input\": \"aé\", \"target\": \"c\"}"),
      HasSubstr("input has the symbol \"é\", which occurs in no input of the training file"));
  EXPECT_THAT(
      Refusal("{\"input\": [70000], \"target\": [0]}\n"),
      HasSubstr("my_train.jsonl:1: has the symbol 70000, expected integers from 0 to 65535"));
}

// Both are tokens of the same model, which reads its own answers.
TEST_F(ExampleSetTest, LanguageModelKnowsSymbolsOfInputsAndTargets) {
  const Options model = {.continues_text = true};
  const std::string train = "{\"input\": \"12+7=\", \"target\": \"19\"}\n";
  const auto text = LoadText(train, "{\"input\": \"9+2=\", \"target\": \"+7\"}\n", model);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->set->ShowInput(text->set->test.at(4).examples.at(0)), "9+2=");
  EXPECT_EQ(text->set->ShowTarget(text->set->test.at(4).examples.at(0)), "+7");
  EXPECT_THAT(
      std::string(
          LoadText(train, "{\"input\": \"5\", \"target\": \"1\"}\n", model).status().message()),
      HasSubstr("\"5\", which occurs in no line of the training file"));

  const std::string symbols = "{\"input\": [4], \"target\": [0]}\n";
  EXPECT_TRUE(LoadText(symbols, "{\"input\": [1], \"target\": [4]}\n", model).ok());
  EXPECT_THAT(
      std::string(
          LoadText(symbols, "{\"input\": [1], \"target\": [5]}\n", model).status().message()),
      HasSubstr("each line of the training file has symbols from 0 to 4"));
}

TEST_F(ExampleSetTest, RefusesMalformedFiles) {
  EXPECT_THAT(Refusal(""), HasSubstr("my_train.jsonl: has no examples"));
  EXPECT_THAT(Refusal("\xEF\xBB\xBF\r\n"), HasSubstr("has no examples"));
  EXPECT_THAT(Refusal("{\"input\": [1], \"target\": [1]}\n{\"input\": [1], \"tar"),
              AllOf(HasSubstr("my_train.jsonl:2: column "), Not(HasSubstr("jsonl:1"))));
  EXPECT_THAT(Refusal("{\"input\": [1], \"target\": [1]}\n{\"input\": \"a\", \"target\": \"b\"}\n"),
              HasSubstr("my_train.jsonl:2: has text, but the lines before it have lists"));
  EXPECT_THAT(Refusal(std::string("{\"input\": [1], \"target\": [1]}\0\n", 32)),
              HasSubstr("my_train.jsonl:1: has a NUL byte at column 30"));
}

TEST_F(ExampleSetTest, OtherFormatsComeWithTheirConversion) {
  EXPECT_THAT(Refusal("walk left\tLTURN WALK\nwalk\tWALK\n"),
              AllOf(HasSubstr("my_train.jsonl:1: is a line of columns, not JSON; convert the file: "
                              "python3 -c 'import csv"),
                    HasSubstr("delimiter=\"\\t\")]' <my_train.jsonl >converted.jsonl"),
                    Not(HasSubstr("my_train.jsonl:2"))));
  EXPECT_THAT(Refusal("walk, left\tLTURN\n"), HasSubstr("delimiter=\"\\t\""));
  EXPECT_THAT(Refusal("ab;ba\n"), HasSubstr("csv.reader(sys.stdin, delimiter=\";\")"));
  EXPECT_THAT(Refusal("target,input\nab,ba\n"),
              HasSubstr("input=row[\"input\"], target=row[\"target\"]))) for row in "
                        "csv.DictReader(sys.stdin, delimiter=\",\")"));
  for (const char* array :
       {"[{\"input\": \"a\", \"target\": \"b\"}]", "[\n{\"input\":\n\"a\"}\n]\n"}) {
    EXPECT_THAT(Refusal(array), AllOf(HasSubstr("is a JSON array"),
                                      HasSubstr("for row in json.load(sys.stdin)]' <my_train"),
                                      Not(HasSubstr("my_train.jsonl:2"))));
  }
  EXPECT_THAT(Refusal("[1, 2]\n"), HasSubstr("got a list, expected an object"));
  EXPECT_THAT(Refusal("\x1f\x8b\x08,\n"),
              AllOf(HasSubstr("gunzip <my_train.jsonl"), Not(HasSubstr("columns"))));
  EXPECT_THAT(Refusal("{\"input\": [1], \"tar\n"), Not(HasSubstr("convert")));
}

// Memory stays bounded: the line is read in chunks and dropped once it is too long.
TEST_F(ExampleSetTest, EndlessLineIsNamedAndSkipped) {
  const std::string endless = "{\"input\": [" + std::string(5 << 20, '1');
  const std::string message = Refusal(endless + "\n{\"input\": [1]}\n");
  EXPECT_THAT(message, HasSubstr("my_train.jsonl:1: has more than 4194304 bytes"));
  EXPECT_THAT(message, HasSubstr("my_train.jsonl:2: has no \"target\""));
}

// A file may still be growing while it is read, such as the output of a running program.
TEST_F(ExampleSetTest, FileChangedWhileReadingIsRefused) {
  Problems problems;
  // Has more bytes than its size, which is 0.
  const auto loaded = Load({"/proc/uptime", "growing.jsonl"}, {}, {}, problems);
  EXPECT_THAT(
      std::string(loaded.status().message()),
      HasSubstr("growing.jsonl: changed while it was being read; try again when it is complete"));
}

TEST_F(ExampleSetTest, FileMustMatchItsKnownHash) {
  File train = Write("known.jsonl", Counting(400));
  train.sha256 = platform::Sha256Hex(Counting(400));
  Problems problems;
  EXPECT_TRUE(Load(train, {}, {}, problems).ok());
  train.sha256 = platform::Sha256Hex("others");
  EXPECT_EQ(Load(train, {}, {}, problems).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ExampleSetTest, MissingFileIsNotFound) {
  Problems problems;
  const auto loaded =
      Load({.path = ::testing::TempDir() + "/nowhere", .name = "nowhere"}, {}, {}, problems);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ExampleSetTest, WarnsOfTestExamplesInTraining) {
  const auto loaded = LoadText("{\"input\": [1, 0], \"target\": [0, 1]}\n" + std::string(kTest),
                               "{\"input\": [1], \"target\": [1]}\n" + std::string(kTest));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_THAT(loaded->warnings, SizeIs(1));
  EXPECT_THAT(loaded->warnings[0],
              AllOf(HasSubstr("my_test.jsonl:2: this input"), HasSubstr("my_train.jsonl")));
}

TEST_F(ExampleSetTest, HoldOutIgnoresTheOrder) {
  const std::string text = Counting(2000);
  const auto loaded = LoadText(text, "", {.held_out = 0.25});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Count(loaded->set->training) + Count(loaded->set->test), 2000);
  EXPECT_NEAR(static_cast<double>(Count(loaded->set->test)), 500, 80);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::reverse(lines.begin(), lines.end());
  const auto reversed = LoadText(absl::StrJoin(lines, "\n"), "", {.held_out = 0.25});
  ASSERT_TRUE(reversed.ok()) << reversed.status();
  EXPECT_EQ(Count(reversed->set->test), Count(loaded->set->test));
}

TEST_F(ExampleSetTest, EveryLengthIsHeldOut) {
  const auto tens = LoadText(Counting(200), "", {.held_out = 0.1});
  ASSERT_TRUE(tens.ok()) << tens.status();
  ASSERT_THAT(tens->set->test, SizeIs(20));
  for (const auto& [length, group] : tens->set->test) EXPECT_THAT(group.examples, SizeIs(1));
  const auto pairs = LoadText(Counting(40), "", {.held_out = 0.9});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_THAT(pairs->set->test, SizeIs(20));
  EXPECT_THAT(pairs->set->training, SizeIs(20));
  const auto singles = LoadText(Counting(20), "", {.held_out = 0.1});
  ASSERT_TRUE(singles.ok()) << singles.status();
  EXPECT_EQ(Count(singles->set->test), 2) << "a tenth of all, where no length has several";
}

TEST_F(ExampleSetTest, EqualInputsStayTogether) {
  std::string text = Counting(60);
  for (int i = 0; i < 3; ++i) absl::StrAppend(&text, "{\"input\": [7, 7], \"target\": [1]}\n");
  absl::StrAppend(&text, "{\"input\": [7, 7], \"target\": [1], \"length\": 30}\n");
  for (const double held_out : {0.1, 0.5, 0.9}) {
    const auto loaded = LoadText(text, "", {.held_out = held_out});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const ExampleSet& set = *loaded->set;
    std::set<std::string> training, both;
    for (const auto& [length, group] : set.training) {
      for (const Example& example : group.examples) training.insert(set.ShowInput(example));
    }
    for (const auto& [length, group] : set.test) {
      for (const Example& example : group.examples) {
        if (training.contains(set.ShowInput(example))) both.insert(set.ShowInput(example));
      }
    }
    EXPECT_THAT(both, IsEmpty());
  }
}

TEST_F(ExampleSetTest, LongExamplesAreHeldOut) {
  const auto loaded = LoadText(Counting(400), "", {.held_out_above = 15, .held_out = 0});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->set->training.rbegin()->first, 15);
  EXPECT_EQ(loaded->set->test.begin()->first, 16);
  EXPECT_THAT(std::string(LoadText(Counting(40), "", {.held_out = 0}).status().message()),
              HasSubstr("leaves no test examples"));
}

TEST_F(ExampleSetTest, ExamplesAreGroupedByShape) {
  const auto loaded = LoadText(
      "{\"input\": \"ab\", \"target\": \"x\", \"length\": 5}\n"
      "{\"input\": \"a\", \"target\": \"x\", \"length\": 5}\n"
      "{\"input\": \"ba\", \"target\": \"x\", \"length\": 5}\n",
      "{\"input\": \"ab\", \"target\": \"x\"}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const LengthGroup& group = loaded->set->training.at(5);
  EXPECT_THAT(group.shapes, ElementsAre(0, 1));
  EXPECT_EQ(loaded->set->ShowInput(group.examples[1]), "ab");
  EXPECT_EQ(loaded->set->ShowInput(group.examples[2]), "ba");
  EXPECT_EQ(group.longest, 3);
}

}  // namespace
}  // namespace lengthwise::tasks::examples
