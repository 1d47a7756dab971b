// Error messages for users' mistakes, word for word.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "catalogue/suggestion.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "proto/rpc_details.pb.h"
#include "specification/resolve.h"

namespace lengthwise::specification {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::SizeIs;
using ::testing::StartsWith;

absl::Status StatusOf(std::string text,
                      v1::SpecificationText::Format format = v1::SpecificationText::YAML) {
  v1::SpecificationText message;
  message.set_format(format);
  message.set_text(std::move(text));
  return Resolve(message, Limits()).status();
}

std::string MessageAfter(std::string text,
                         v1::SpecificationText::Format format = v1::SpecificationText::YAML) {
  const absl::Status status = StatusOf(std::move(text), format);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// Lists of accepted names follow the catalogues and the API. The tests of Suggestion pin their
// format.
template <typename Entry>
std::vector<std::string> Names(absl::Span<const Entry* const> entries,
                               bool (*is_listed)(const Entry&) = nullptr) {
  std::vector<std::string> names;
  for (const Entry* entry : entries) {
    if (is_listed == nullptr || is_listed(*entry)) names.push_back(entry->name);
  }
  return names;
}

std::vector<std::string> FieldNames() {
  const google::protobuf::Descriptor& specification = *v1::ExperimentSpecification::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < specification.field_count(); ++i) {
    names.push_back(specification.field(i)->name());
  }
  return names;
}

struct Mistake {
  std::string name;
  // Replaces the line of kRight for the same field, or appends the line.
  std::string line;
  std::string message;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

constexpr char kRight[] = R"yaml(name: right
tasks: [bucket_sort]
networks: [{name: encoder, blocks: 1, heads: 2, d_model: 16}]
encodings: [none, sin_cos]
learning_rates: [0.001]
seeds: [0]
training: {steps: 10, lengths: {min: 1, max: 20}}
evaluation: {lengths: [5, 10], sequences: 20}
)yaml";

std::string With(const std::string& line) {
  const std::string field = line.substr(0, line.find(':') + 1);
  std::string text = absl::StrCat("\n", kRight);
  const size_t start = text.find("\n" + field);
  if (field.empty() || start == std::string::npos) return absl::StrCat(kRight, line, "\n");
  const size_t end = text.find('\n', start + 1);
  return text.replace(start + 1, end - start - 1, line);
}

// True for two lines that set one field, such as "training: {...}" and "training: {}".
bool AreOfOneField(const std::string& line, const std::string& other) {
  return line.substr(0, line.find(':')) == other.substr(0, other.find(':'));
}

TEST(MistakesTest, BaseOfTheseTestsIsValid) { EXPECT_EQ(MessageAfter(kRight), ""); }

TEST(MistakesTest, StopNeedsASeenLengthThatIsMeasured) {
  EXPECT_EQ(MessageAfter(
                absl::StrReplaceAll(kRight, {{"steps: 10", "steps: 10, stop_at_accuracy: 0.9"},
                                             {"lengths: [5, 10]", "lengths: 25, every_steps: 1"}})),
            "training.stop_at_accuracy: needs a seen length in evaluation.interval_lengths; add "
            "one, or set evaluation.select to unseen");
}

TEST(MistakesTest, PuzzlesNeedLengthDataSetAndConditions) {
  const auto message = [](const std::string& lines) {
    return MessageAfter(absl::StrCat("name: right\nprotocol: latin_square\nseeds: 0\n", lines));
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message("training: {lengths: 1..40}"),
            "training.lengths: got 1..40, \"latin_square\" has puzzles of 16 tokens: set 16..16");
  EXPECT_EQ(message("training: {examples: 100}"),
            "training.examples: got 100, \"latin_square\" trains on 8000 puzzles "
            "(training_puzzles): set the same number");
  EXPECT_EQ(message("evaluation: {lengths: 1..4}"),
            "evaluation.lengths: got 4, \"latin_square\" has conditions 1 to 3\n"
            "evaluation.interval_lengths: got 4, \"latin_square\" has conditions 1 to 3");
  EXPECT_EQ(message("evaluation: {projection: {fitted_length: 16, lengths: [1, 2]}}"),
            "evaluation.projection.fitted_length: got 16, \"latin_square\" has conditions 1 to 3");
  EXPECT_EQ(message("evaluation: {attention_inputs: [{tokens: [1, 2]}]}"),
            "evaluation.attention_inputs[0].tokens: got 2 tokens, \"latin_square\" has puzzles of "
            "16, row by row");
  EXPECT_EQ(
      message("evaluation: {attention_inputs: [{numbers: [0.5]}]}"),
      "evaluation.attention_inputs[0].numbers: \"latin_square\" reads tokens: give tokens instead");
  EXPECT_EQ(message("tasks: [latin_square, reverse_string]"),
            "tasks[1]: \"reverse_string\" and \"latin_square\" are different kinds of task; write "
            "a specification for each");
}

TEST(MistakesTest, RegressionsNeedValidScalesAndInputs) {
  const auto message = [](const std::string& lines) {
    return MessageAfter(
        absl::StrCat("name: right\nprotocol: positional_attention\nseeds: 0\n"
                     "tasks: sorting\n",
                     lines));
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message("evaluation: {attention_inputs: [{tokens: [4, -4, 0]}]}"),
            "evaluation.attention_inputs[0].tokens: got 3 numbers, \"sorting\" has inputs of 9 "
            "numbers, including the scratchpad's 0");
  const auto of_input = [&](const std::string& input) {
    return message("evaluation: {attention_inputs: [" + input + "]}");
  };
  EXPECT_EQ(of_input("{numbers: [1.75, 1.25, 0.75, 0.25, -0.25, -0.75, -1.25, -1.75, 0]}"), "");
  EXPECT_EQ(of_input("{numbers: [1.5, -0.25, 0]}"),
            "evaluation.attention_inputs[0].numbers: got 3 numbers, \"sorting\" has inputs of 9 "
            "numbers, including the scratchpad's 0");
  EXPECT_EQ(of_input("{numbers: [1, 2, 3, 4, 5, 6, 7, .inf, 0]}"),
            "evaluation.attention_inputs[0].numbers: got inf, expected finite numbers");
  EXPECT_EQ(of_input("{tokens: [1, 2, 3, 4, 5, 6, 7, 8, 0], numbers: [1, 2, 3, 4, 5, 6, 7, 8, 0]}"),
            "evaluation.attention_inputs[0]: has more than one of tokens, numbers and text: give "
            "only what "
            "the task reads");
  EXPECT_EQ(message("training: {lengths: 1..8, batch_size: 1000}\nevaluation: {projection: {}}"),
            "evaluation.projection: \"sorting\" evaluates vectors of all lengths 1..8, whose "
            "activations have no common shape: leave it out, or train on one length");
  EXPECT_EQ(message("encodings: none"),
            "encodings[0]: \"none\" does not give positions as vectors, which the network needs; "
            "use one of " +
                absl::StrJoin(Names<models::EncodingEntry>(models::EncodingEntries(),
                                                           [](const models::EncodingEntry& entry) {
                                                             return entry.gives_vectors;
                                                           }),
                              ", "));
  const std::string rotary =
      "networks[0].rotary: rotates queries and keys of an input that already has positions: set "
      "attention_by: input and input_positions: true, or \"none\" and the encoding \"rope\"";
  EXPECT_EQ(message("networks: {name: positional_attention, rotary: heads}"), rotary);
  EXPECT_EQ(message("networks: {name: positional_attention, attention_by: input, rotary: tokens}\n"
                    "encodings: none"),
            rotary);
  EXPECT_EQ(message("networks: {name: positional_attention, attention_by: input, "
                    "input_positions: true, rotary: tokens, d_model: 7, heads: 1}"),
            "networks[0].rotary: rotates pairs of features; d_model = 7 is odd");
  EXPECT_EQ(message("networks: encoder"),
            "networks[0]: \"encoder\" cannot learn \"sorting\" (tasks[0]), expected "
            "\"positional_attention\", \"graph_network\" or \"python\"\n"
            "encodings[0]: \"one_hot\" gives positions only as vectors, which the network cannot "
            "use; use one of " +
                absl::StrJoin(Names<models::EncodingEntry>(models::EncodingEntries(),
                                                           [](const models::EncodingEntry& entry) {
                                                             return entry.is_added;
                                                           }),
                              ", "));
}

// Validation may have scales up to training.lengths.max (checks.cc), which counts elements.
TEST(MistakesTest, EveryScaleOfARegressionIsChecked) {
  const auto message = [](const std::string& evaluation) {
    return MessageAfter(
        absl::StrCat("name: right\nprotocol: positional_attention\nseeds: 0\n"
                     "tasks: {name: relational_query, tokenize_numbers: true}\n"
                     "training: {lengths: 20..20}\nevaluation: {",
                     evaluation, "}\n"));
  };
  EXPECT_EQ(message("lengths: [1, 19], interval_lengths: [1, 19], attention_lengths: [1, 19], "
                    "validation: {lengths: [1, 19]}, "
                    "projection: {fitted_length: 19, lengths: [1, 19]}"),
            "");
  for (const auto& [field, evaluation] : std::vector<std::pair<std::string, std::string>>{
           {"lengths", "lengths: [1, 20], interval_lengths: 1"},
           {"interval_lengths", "lengths: 1, interval_lengths: [1, 20]"},
           {"attention_lengths", "lengths: 1, attention_lengths: [1, 20]"},
           {"validation.lengths", "lengths: 1, validation: {lengths: [1, 20]}"},
           {"projection.fitted_length", "lengths: 1, projection: {fitted_length: 20, lengths: 1}"},
           {"projection.lengths",
            "lengths: 1, projection: {fitted_length: 1, lengths: [1, 20]}"}}) {
    EXPECT_EQ(message(evaluation),
              absl::StrCat("evaluation.", field,
                           ": \"relational_query\": tokenized numbers have two digits before the "
                           "point: scales are at most 19.998, not 20"));
  }
}

TEST(MistakesTest, TextMustFitItsSequences) {
  const auto message = [](const std::string& lines) {
    return MessageAfter(absl::StrCat(R"yaml(name: right
networks: {name: causal_decoder, blocks: 1, heads: 2, d_model: 16}
learning_rates: 0.001
)yaml",
                                     lines));
  };
  const auto with = [&](const std::string& line) {
    std::string text;
    for (const std::string& usual :
         {std::string("tasks: decimal_addition"), std::string("encodings: none"),
          std::string("training: {steps: 10, lengths: 1..5}"),
          std::string("evaluation: {lengths: 1..10}")}) {
      const bool is_replaced = AreOfOneField(line, usual);
      absl::StrAppend(&text, is_replaced ? line : usual, "\n");
    }
    return message(text);
  };
  EXPECT_EQ(with("tasks: decimal_addition"), "");
  const std::string limits =
      "operands have 1 to 101 digits with index hints (102 symbols, one of them for the carry), "
      "not 102";
  EXPECT_EQ(with("evaluation: {lengths: [101, 102], interval_lengths: 5}"),
            absl::StrCat("evaluation.lengths: ", limits));
  EXPECT_EQ(with("evaluation: {lengths: [0, 5], interval_lengths: 5}"),
            "evaluation.lengths: got 0, expected lengths from 1 to 100000");
  EXPECT_EQ(with("training: {steps: 10, lengths: 1..102}"),
            absl::StrCat("training.lengths: ", limits));
  EXPECT_EQ(with("training: {steps: 10, lengths: 1..40, packing: {tokens: 200}}"),
            "training.packing.tokens: got 200, expected at least 249, the tokens of an example of "
            "40 (training.lengths.max)");
  EXPECT_EQ(with("training: {steps: 10, batch_size: 60000, packing: {tokens: 2048}}"),
            "training.batch_size: got 60000 sequences of 2048 tokens (training.packing.tokens); "
            "expected at most 16777216 tokens in a step");
  EXPECT_EQ(with("training: {steps: 10, packing: {tokens: 0}}"),
            "training.packing.tokens: got 0, expected an integer from 1 to 1048576");
  EXPECT_EQ(with("training: {steps: 10, packing: {answers_only: 1}}"),
            "training.packing.answers_only: got 1, expected true or false");
  EXPECT_EQ(
      with("training: {epochs: 2, examples: 1000}"),
      "training.epochs: the number of text examples in a step varies: set training.steps instead");
  EXPECT_EQ(with("tasks: {name: decimal_addition, order: paired}"),
            "tasks[0]: paired digits have no index hints: set index_hints to false or another "
            "order");
  EXPECT_EQ(with("tasks: {name: decimal_addition, order: paired, index_hints: false}"), "");
  EXPECT_EQ(with("tasks: {name: decimal_addition, order: paired, index_hints: false, "
                 "zero_padding: false}"),
            "tasks[0]: the paired order always pads for the carry: remove zero_padding or set "
            "another order");
  EXPECT_EQ(with("tasks: {name: decimal_addition, index_hints: false, hints_wrap: true}"),
            "tasks[0]: hints_wrap has no effect without index hints: set index_hints to true or "
            "remove hints_wrap");
  // 5 digits take 6 * 6 + 3 tokens.
  const auto spaces = [&](int tokens) {
    return message(absl::StrCat("tasks: {name: decimal_addition, random_space: 0.1}\n",
                                "encodings: none\ntraining: {steps: 10, lengths: 1..5, packing: "
                                "{tokens: ",
                                tokens, "}}\nevaluation: {lengths: 1..10}\n"));
  };
  EXPECT_EQ(spaces(78), "");
  EXPECT_EQ(spaces(77),
            "training.packing.tokens: got 77, expected at least 78, twice the tokens of an example "
            "of 5 (training.lengths.max), which augmentation makes longer");
  for (const std::string line : {"training: {steps: 10, lengths: 0..5}",
                                 "evaluation: {lengths: 1..10, interval_lengths: [0]}",
                                 "evaluation: {lengths: 1..10, interval_lengths: [102]}",
                                 "evaluation: {lengths: 1..10, attention_lengths: [0]}",
                                 "evaluation: {lengths: 1..10, attention_lengths: [102]}"}) {
    EXPECT_NE(with(line), "") << line;
  }
  EXPECT_EQ(with("evaluation: {lengths: 1..10, projection: {}}"),
            "evaluation.projection: does not apply to text tasks; remove it");
  EXPECT_EQ(with("evaluation: {lengths: 1..10, sequence_scores: true}"), "");
  EXPECT_THAT(with("tasks: [decimal_addition, parity_check]"),
              AllOf(StartsWith("tasks[1]: \"parity_check\" and \"decimal_addition\" are different "
                               "kinds of task; write a specification for each\n"
                               "networks[0]: \"causal_decoder\" cannot learn \"parity_check\" "
                               "(tasks[1]), expected \"encoder\", "),
                    EndsWith(" or \"python\"; for this network the task is "
                             "\"parity_check_text\"")));
  EXPECT_EQ(MessageAfter("{name: x, tasks: parity_check_text, networks: encoder, encodings: none, "
                         "learning_rates: 0.001, training: {steps: 10, lengths: 1..5}, "
                         "evaluation: {lengths: 1..10}}"),
            "networks[0]: \"encoder\" cannot learn \"parity_check_text\" (tasks[0]), expected "
            "\"causal_decoder\", \"looped_decoder\" or \"python\"; for this network the task is "
            "\"parity_check\"");
  // 10 digits take 6 * 11 + 3 tokens. Packed sequences with attention across examples use all
  // tokens.
  EXPECT_EQ(with("encodings: {name: rope, randomized: true, max_position: 69}"), "");
  EXPECT_THAT(with("encodings: {name: rope, randomized: true, max_position: 68}"),
              StartsWith("encodings[0].max_position: "));
  const auto with_input = [&](const std::string& digits) {
    return message(
        absl::StrCat("tasks: {name: decimal_addition, index_hints: false}\nencodings: "
                     "{name: rope, randomized: true, max_position: 69}\n"
                     "training: {steps: 10, lengths: 1..5}\nevaluation: {lengths: "
                     "1..10, attention_inputs: [{text: \"",
                     digits, "+", digits, "=\"}]}\n"));
  };
  EXPECT_EQ(with_input("1234567890123456789"), "");
  EXPECT_THAT(with_input("12345678901234567890123"), StartsWith("encodings[0].max_position: "));
  EXPECT_THAT(
      with_input(std::string(10002, '1')),
      StartsWith("evaluation.attention_inputs[0].text: it has 20006 tokens, and no question"));
  EXPECT_EQ(with("encodings: {name: sin_cos, positions: augmented}"), "");
  EXPECT_EQ(with("encodings: {name: sin_cos, positions: augmented, centered: true}"),
            "encodings[0].centered: needs sequences of known length, but a text ends where the "
            "model ends it; leave it out");
  // Positions must restart exactly where attention does.
  for (const std::string packing : {"{attend_across: true, reset_positions: true}",
                                    "{attend_across: false, reset_positions: false}"}) {
    const auto encoded = [&](const std::string& encoding) {
      return message(absl::StrCat("tasks: decimal_addition\nencodings: ", encoding,
                                  "\ntraining: {steps: 10, lengths: 1..5, packing: ", packing,
                                  "}\nevaluation: {lengths: 1..10}\n"));
    };
    const std::string refusal =
        "encodings[0]: uses the distance between tokens, so positions must restart exactly where "
        "attention does; remove training.packing.reset_positions or use another encoding";
    for (const char* encoding :
         {"relative", "shaw", "{name: relative, randomized: true, distances: offsets}",
          "{name: alibi, randomized: true, distances: offsets}"}) {
      EXPECT_EQ(encoded(encoding), refusal) << encoding;
    }
    for (const char* encoding : {"none", "sin_cos", "rope", "fire", "kerple_log", "t5", "alibi",
                                 "{name: relative, randomized: true}"}) {
      EXPECT_EQ(encoded(encoding), "") << encoding;
    }
    EXPECT_THAT(encoded("{name: learned, max_position: 500}"), StartsWith("encodings[0].max_pos"))
        << "2,048 tokens of a sequence";
  }
  EXPECT_EQ(MessageAfter(With("training: {steps: 10, packing: {tokens: 64}}")),
            "training.packing: applies to text tasks only; remove it");
}

class OneMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(OneMistakeTest, ErrorNamesFieldAndAcceptedValues) {
  EXPECT_EQ(MessageAfter(With(GetParam().line)), GetParam().message) << With(GetParam().line);
}

const Mistake kMistakes[] = {
    {"MissingName", "name:", "name: required: the experiment's name"},
    {"BadName", "name: Über uns",
     "name: got \"Über uns\", expected at most 40 characters of a-z, 0-9, \"_\" and \"-\", first a "
     "letter or digit"},
    {"NameThatIsAPath", "name: ../../etc",
     "name: got \"../../etc\", expected at most 40 characters of a-z, 0-9, \"_\" and \"-\", first "
     "a "
     "letter or digit"},
    {"UnknownField", "training: {stepz: 10}",
     "training.stepz: unknown field; did you mean \"steps\"?"},
    {"UnknownFieldAtTheTop", "fruit: apple",
     absl::StrCat("fruit: unknown field", catalogue::Suggestion("", FieldNames()))},
    {"FieldOfTheTrainingAtTheTop", "optimizer: adamw",
     "optimizer: unknown field; did you mean \"training.optimizer\"?"},
    {"FieldOfTheEvaluationInTheTraining", "training: {steps: 1, sequence: 5}",
     "training.sequence: unknown field; did you mean \"evaluation.sequences\" or "
     "\"evaluation.projection.sequences\" or \"evaluation.validation.sequences\"?"},
    {"FieldOfTwoPartsAtTheTop", "every_steps: 5",
     "every_steps: unknown field; did you mean \"evaluation.every_steps\"?"},
    {"DuplicateField", "training: {steps: 1, steps: 2}", "training.steps: given twice"},
    {"TextForInteger", "training: {steps: 10, batch_size: many}",
     "training.batch_size: got \"many\", expected an integer"},
    {"FractionForInteger", "training: {steps: 10.5}",
     "training.steps: got 10.5, expected an integer"},
    {"ListForInteger", "training: {steps: [10]}",
     "training.steps: got a list, expected an integer"},
    {"IntegerTooLargeForItsField", "training: {steps: 10, batch_size: 3000000000}",
     "training.batch_size: got 3000000000, expected an integer from -2147483648 to 2147483647"},
    {"NegativeSeed", "seeds: -1",
     "seeds: got -1, expected integers from 0 to 18446744073709551615"},
    {"TextForMessage", "training: long",
     "training: got \"long\", expected fields and their values"},
    {"MapForText", "name: {a: b}", "name: got a map, expected text"},
    {"EmptyGrid", "encodings: []", "encodings: got an empty list, expected at least one value"},
    {"EmptySeeds", "seeds: []", "seeds: got an empty list, expected at least one value"},
    {"NoEncodings", "encodings:", "encodings: required: at least one value"},
    {"UnknownEncoding", "encodings: [none, sincoz]",
     "encodings[1]: unknown encoding \"sincoz\"; did you mean \"sin_cos\"?"},
    {"EncodingByAnotherName", "encodings: [none, rotary]",
     "encodings[1]: unknown encoding \"rotary\"; did you mean \"rope\"?"},
    {"EncodingByItsPaper", "encodings: [none, transformer_xl]",
     "encodings[1]: unknown encoding \"transformer_xl\"; did you mean \"relative\"?"},
    {"EncodingByItsShape", "encodings: [none, sinusoidal]",
     "encodings[1]: unknown encoding \"sinusoidal\"; did you mean \"sin_cos\"?"},
    {"MisspelledSynonym", "encodings: [none, rotery]",
     "encodings[1]: unknown encoding \"rotery\"; did you mean \"rope\"?"},
    {"BeginningOfATask", "tasks: revers",
     "tasks[0]: unknown task \"revers\"; did you mean \"reverse_string\"?"},
    {"PartOfASchedule", "training: {steps: 1, schedule: cosine}",
     "training.schedule: unknown schedule \"cosine\"; did you mean \"warmup_cosine\"?"},
    {"NothingNear", "training: {steps: 1, optimizer: lion}",
     absl::StrCat("training.optimizer: unknown optimizer \"lion\"",
                  catalogue::Suggestion("lion", Names(models::OptimizerEntries())))},
    {"DescriptionWithAnEscape", "description: \"\\e[31mred\"",
     "description: has control characters; expected text, lines and tabs"},
    {"UnknownTask", "tasks: bucketsorted",
     "tasks[0]: unknown task \"bucketsorted\"; did you mean \"bucket_sort\"?"},
    {"UnknownNetwork", "networks: [encodre]",
     "networks[0]: unknown network \"encodre\"; did you mean \"encoder\"?"},
    {"UnknownOptimizer", "training: {steps: 1, optimizer: adan}",
     "training.optimizer: unknown optimizer \"adan\"; did you mean \"adam\"?"},
    {"UnknownSchedule", "training: {steps: 1, schedule: constnat}",
     "training.schedule: unknown schedule \"constnat\"; did you mean \"constant\"?"},
    {"EpochsOfNothing", "training: {epochs: 3}",
     "training.epochs: epochs need a fixed data set: set training.examples"},
    {"EpochsAndSteps", "training: {steps: 1, epochs: 3, examples: 1000}",
     "training.epochs: cannot be combined with training.steps: set one of them"},
    {"NegativeEpochs", "training: {epochs: -3, examples: 1000}",
     "training.epochs: got -3, expected an integer from 1 to 1000000000"},
    {"TooManyEpochs",
     "training: {epochs: 1000000000, examples: 1000000, batch_size: 1, lengths: 1..2}",
     "training.epochs: got 1000000000 epochs of 1000000 steps; expected at most 1000000000000 "
     "steps in total"},
    {"EpochsOfTooManyExamples",
     "training: {epochs: 1000000000, examples: 9000000000000000000, batch_size: 1, lengths: 1}",
     "training.examples: got 9000000000000000000, expected an integer from 0 to 1000000000"},
    {"EpochOfTheMostExamples", "training: {epochs: 1, examples: 9223372036854775807}",
     "training.examples: got 9223372036854775807, expected an integer from 0 to 1000000000"},
    {"MostNegativeEpochs",
     "training: {epochs: -9223372036854775808, examples: 1000, batch_size: 1, lengths: 1}",
     "training.epochs: got -9223372036854775808, expected an integer from 1 to 1000000000"},
    {"FewerExamplesThanLengths", "training: {steps: 1, examples: 19, lengths: 1..20}",
     "training.examples: got 19, expected at least one for each of 20 lengths (training.lengths)"},
    {"PlateauWithoutEpochs", "training: {steps: 1, schedule: plateau}",
     "training.schedule.every_steps: training has no epochs, after which the loss is checked; "
     "set it, or training.examples"},
    {"WarmupLongerThanTraining", "training: {steps: 100, schedule: warmup_cosine}",
     "training.schedule.warmup_steps: got 500, expected less than training.steps, 100"},
    {"UnknownProtocol", "protocol: randomised_positional_encodings",
     "protocol: unknown protocol \"randomised_positional_encodings\"; did you mean "
     "\"randomized_positional_encodings\"?"},
    {"UnknownParameter", "encodings: [none, {name: sin_cos, randomised: true}]",
     "encodings[1].randomised: \"sin_cos\" has no such parameter; did you mean \"randomized\"?"},
    {"ParameterOfTheWrongType", "encodings: [{name: sin_cos, randomized: 3}]",
     "encodings[0].randomized: got 3, expected true or false"},
    {"ListForParameter", "encodings: [{name: sin_cos, randomized: [true]}]",
     "encodings[0].randomized: got a list, expected a number, true, false or text"},
    {"InfiniteParameter", "encodings: [{name: sin_cos, max_position: .inf}]",
     "encodings[0].max_position: got inf, expected a finite value"},
    {"ComponentWithoutName", "encodings: [{label: a}]",
     absl::StrCat("encodings[0].name: required",
                  catalogue::Suggestion("", Names(models::EveryEncodingEntry())))},
    {"ListForComponent", "encodings: [none, [sin_cos]]",
     "encodings[1]: got a list, expected a name, or a name with parameters"},
    {"TooFewPositions", "encodings: [{name: sin_cos, randomized: true, max_position: 39}]",
     "encodings[0].max_position: 39 positions are too few for the longest sequence, 40 tokens of "
     "input and output; use a larger max_position or shorter lengths"},
    {"UnknownChoiceOfPositions", "encodings: [{name: rope, positions: unifrom_reals}]",
     "encodings[0].positions: unknown value \"unifrom_reals\"; did you mean \"uniform_reals\"?"},
    {"RealsForATable", "encodings: [{name: learned, positions: uniform_reals}]",
     "encodings[0].positions: uniform_reals makes real numbers, but a table of learned vectors has "
     "a place for each integer; use subset, shift or skips"},
    {"TableTooSmallForOffsets",
     "encodings: [{name: learned, positions: shift, random_offset: 10, max_position: 49}]",
     "encodings[0].max_position: a table of 49 positions is too short for the longest sequence, 40 "
     "tokens of input and output and the largest offset; use a larger max_position or shorter "
     "lengths"},
    {"OffsetsWithoutSubset", "encodings: [{name: relative, positions: shift, distances: offsets}]",
     "encodings[0].distances: needs positions: counted, subset; positions is shift. Change it, or "
     "leave distances out"},
    {"TwoChoicesOfPositions", "encodings: [{name: rope, positions: skips, randomized: true}]",
     "encodings[0].randomized: means positions: subset, but positions is skips; remove one of the "
     "two"},
    {"SubsetThatIsNotDrawn", "encodings: [{name: rope, positions: subset, randomized: false}]",
     "encodings[0].randomized: is false, but positions: subset draws them; remove one of the two"},
    {"DataWithoutIds", "encodings: [{name: rope, positions: data}]",
     "encodings[0].positions: data takes the ids of examples, and a task has none; set `coupling` "
     "of decimal_addition, or give the lines of a file \"positions\""},
    {"UnknownBeside", "encodings: [{name: sin_cos, beside: {name: firee}}]",
     "encodings[0].beside: got \"firee\", expected one of alibi, rope, relative, fire, kerple_log, "
     "or a map with its `name`"},
    {"UnknownParameterBeside", "encodings: [{name: sin_cos, beside: {name: fire, widht: 8}}]",
     "encodings[0].beside.widht: \"fire\" has no such parameter; did you mean \"width\"?"},
    {"SubsetTwice", "encodings: [{name: rope, positions: subset}, {name: rope, randomized: true}]",
     "encodings[1]: duplicate of encodings[0]"},
    {"HeadsThatDoNotDivide", "networks: [{name: encoder, heads: 3, d_model: 16}]",
     "networks[0].heads: 3 heads do not divide d_model = 16; use a divisor of it"},
    {"SameComponentTwice", "encodings: [sin_cos, none, {name: sin_cos, randomized: false}]",
     "encodings[2]: duplicate of encodings[0]"},
    {"SameLabelTwice", "encodings: [{name: none, label: x}, {name: sin_cos, label: x}]",
     "encodings[1].label: \"x\" is also the label of encodings[0]; set a different one"},
    {"BadLabel", "encodings: [{name: none, label: No Encoding}]",
     "encodings[0].label: got \"No Encoding\", expected at most 48 characters of a-z, 0-9, \"_\", "
     "\".\" and \"=\""},
    {"NanLearningRate", "learning_rates: [0.1, .nan]",
     "learning_rates[1]: got nan, expected a finite number above 0"},
    {"InfiniteLearningRate", "learning_rates: .inf",
     "learning_rates[0]: got inf, expected a finite number above 0"},
    {"NegativeLearningRate", "learning_rates: [-0.1]",
     "learning_rates[0]: got -0.1, expected a finite number above 0"},
    {"TextForLearningRate", "learning_rates: [0.1, fast]",
     "learning_rates[1]: got \"fast\", expected a number"},
    {"LearningRateTwice", "learning_rates: [0.1, 1e-1]", "learning_rates: 0.1 is given twice"},
    {"SeedTwice", "seeds: [0..9, 5]", "seeds: 5 is given twice"},
    {"SeedsAndDataSeeds", "data_seeds: 1",
     "seeds: cannot be combined with weight_seeds and data_seeds: set seeds, or the other two"},
    {"RangeBackwards", "seeds: 9..0",
     "seeds: got \"9..0\", expected a range such as \"0..9\" or \"5..60 step 5\""},
    {"RangeWithoutEnd", "seeds: [1, 5..]",
     "seeds[1]: got \"5..\", expected a range such as \"0..9\" or \"5..60 step 5\""},
    {"RangeStandingStill", "seeds: 0..9 step 0",
     "seeds: got \"0..9 step 0\", expected a range such as \"0..9\" or \"5..60 step 5\""},
    {"RangeTooLong", "seeds: 0..18446744073709551615",
     "seeds: got \"0..18446744073709551615\": 18446744073709551616 values, expected a list of at "
     "most 1000000"},
    {"NoSteps", "training: {batch_size: 3}",
     "training.steps: required without a protocol: the number of optimizer steps"},
    {"ZeroSteps", "training: {steps: 0}",
     "training.steps: got 0, expected an integer from 1 to 1000000000000"},
    {"ZeroBatch", "training: {steps: 1, batch_size: 0}",
     "training.batch_size: got 0, expected an integer from 1 to 65536"},
    {"NegativeLength", "training: {steps: 1, lengths: {min: -3}}",
     "training.lengths.min: got -3, expected an integer from 1 to 100000"},
    {"LengthsBackwards", "training: {steps: 1, lengths: {min: 30, max: 20}}",
     "training.lengths.min: got 30, expected at most training.lengths.max, 20"},
    {"LengthsAsText", "training: {steps: 1, lengths: short}",
     "training.lengths: got \"short\", expected a range such as \"1..20\""},
    {"LengthsAsList", "training: {steps: 1, lengths: [1..10]}",
     "training.lengths: got a list, expected a range such as \"1..20\""},
    {"NegativeClipNorm", "training: {steps: 1, clip_norm: -1}",
     "training.clip_norm: got -1, expected a finite number of at least 0"},
    {"NanClipNorm", "training: {steps: 1, clip_norm: .nan}",
     "training.clip_norm: got nan, expected a finite number of at least 0"},
    {"NeverReporting", "training: {steps: 1, report_every_steps: 0}",
     "training.report_every_steps: got 0, expected an integer of at least 1"},
    {"NegativeCheckpointing", "training: {steps: 1, checkpoint_every_steps: -1}",
     "training.checkpoint_every_steps: got -1, expected an integer of at least 0"},
    {"NegativeCheckpointTime", "training: {steps: 1, checkpoint_every_seconds: -1}",
     "training.checkpoint_every_seconds: got -1, expected a finite number of at least 0"},
    {"UnknownPrecision", "training: {steps: 1, precision: float23}",
     "training.precision: unknown precision \"float23\"; did you mean \"float32\"?"},
    {"OtherHalfPrecision", "training: {steps: 1, precision: float16}",
     "training.precision: unknown precision \"float16\"; did you mean \"bfloat16\"?"},
    {"NoEvaluationLengths", "evaluation: {sequences: 3}",
     "evaluation.lengths: required without a protocol: the lengths to evaluate, such as \"1..60\""},
    {"NegativeEvaluationLength", "evaluation: {lengths: [5, -5]}",
     "evaluation.lengths: got -5, expected lengths from 1 to 100000"},
    {"HugeEvaluationLength", "evaluation: {lengths: 100001}",
     "evaluation.lengths: got 100001, expected lengths from 1 to 100000"},
    {"EvaluationLengthTwice", "evaluation: {lengths: [5, 5]}",
     "evaluation.lengths: 5 is given twice"},
    {"BadIntervalLength", "evaluation: {lengths: 5, interval_lengths: 0}",
     "evaluation.interval_lengths: got 0, expected lengths from 1 to 100000"},
    {"NegativeSeenUpTo", "evaluation: {lengths: 5, seen_up_to: -1}",
     "evaluation.seen_up_to: got -1, expected an integer of at least 0"},
    {"HugeAttentionMap", "evaluation: {lengths: 5, attention_lengths: 1001}",
     "evaluation.attention_lengths: got 1001, expected lengths from 1 to 1000"},
    {"NoSequences", "evaluation: {lengths: 5, sequences: 0}",
     "evaluation.sequences: got 0, expected an integer from 1 to 1000000"},
    {"NegativeStop", "training: {steps: 1, stop_after_seconds: -1}",
     "training.stop_after_seconds: got -1, expected a finite number of at least 0"},
    {"StopBeyondAllAccuracies", "training: {steps: 1, stop_at_accuracy: 99}",
     "training.stop_at_accuracy: got 99, expected a number from 0 to 1\ntraining.stop_at_accuracy: "
     "needs evaluations during training; set evaluation.every_steps"},
    {"StopThatNobodyMeasures", "training: {steps: 1, stop_at_accuracy: 0.9}",
     "training.stop_at_accuracy: needs evaluations during training; set evaluation.every_steps"},
    {"UnknownRuleOfChoice", "evaluation: {lengths: 5, select: unsee}",
     "evaluation.select: unknown rule \"unsee\"; did you mean \"unseen\"?"},
    {"ValidationOfNothing", "evaluation: {lengths: 5, validation: {sequences: 10}}",
     "evaluation.validation.lengths: required: the lengths by which to choose, such as \"1..20\""},
    {"ValidationBeyondAllLengths", "evaluation: {lengths: 50, validation: {lengths: 51}}",
     "evaluation.validation.lengths: got 51, expected lengths from 1 to 50"},
    {"ProjectionOfNothing", "evaluation: {lengths: 5, projection: {sequences: 0}}",
     "evaluation.projection.sequences: got 0, expected an integer from 1 to 1000"},
    {"NoMapsAtNoLength", "evaluation: {lengths: 5, attention_sequences: 2}",
     "evaluation.attention_sequences: needs lengths to record maps at; set "
     "evaluation.attention_lengths"},
    {"TooManyMaps", "evaluation: {lengths: 5, attention_lengths: 5, attention_sequences: 1001}",
     "evaluation.attention_sequences: got 1001, expected an integer from 1 to 1000"},
    {"ScoresPerhaps", "evaluation: {lengths: 5, sequence_scores: perhaps}",
     "evaluation.sequence_scores: got \"perhaps\", expected true or false"},
    {"NoNoise", "evaluation: {lengths: 5, embedding_noise: [0.1, 0]}",
     "evaluation.embedding_noise[1]: got 0, expected a standard deviation above 0, at most 1000"},
    {"NoiseTwice", "evaluation: {lengths: 5, embedding_noise: [0.1, 0.1]}",
     "evaluation.embedding_noise: 0.1 is given twice"},
    {"TrainingExamplesOfNoDataSet", "evaluation: {lengths: 5, training_examples: 5}",
     "evaluation.training_examples: needs a data set to score examples of; set training.examples"},
    {"ProjectionFittedOnNothing", "evaluation: {lengths: 5, projection: {fitted_length: 0}}",
     "evaluation.projection.fitted_length: got 0, expected an integer from 1 to 1000"},
    {"AttentionForATokenThatTheTaskDoesNotHave",
     "evaluation: {lengths: 5, attention_inputs: [{tokens: [0, 4, 5]}]}",
     "evaluation.attention_inputs[0].tokens: got 5, \"bucket_sort\" has input tokens from 0 to 4"},
    {"AttentionToNumbersOfATaskOfTokens",
     "evaluation: {lengths: 5, attention_inputs: [{numbers: [0.5, 1]}]}",
     "evaluation.attention_inputs[0].numbers: \"bucket_sort\" reads tokens: give tokens instead"},
    {"AttentionForNoInput", "evaluation: {lengths: 5, attention_inputs: [{}]}",
     "evaluation.attention_inputs[0].tokens: got 0 tokens, expected 1 to 1000"},
    {"UnsortedWithoutPositions", "encodings: [{name: none, sorted: false}]",
     "encodings[0].sorted: \"none\" has no such parameter; accepted: causal"},
    {"UnknownCompatibility", "compatibility: reference",
     "compatibility: unknown value \"reference\"; did you mean \"reference_code\"?"},
    {"UnknownKeep", "keep: weight", "keep: unknown value \"weight\"; did you mean \"weights\"?"},
    {"KeepNothingNear", "keep: optimizer",
     "keep: unknown value \"optimizer\"; accepted: all, nothing, weights"},
    {"RetentionIsNoTime", "retention: 3 weeks",
     "retention: got \"3 weeks\", expected a time such as 90d or 12h, or forever"},
    {"RetentionOfNothing", "retention: 0d",
     "retention: got \"0d\", expected a time such as 90d or 12h, or forever"},
    {"CompatibilityWithoutAPaper", "compatibility: reference_code",
     "compatibility: no code to follow; set `protocol` to a paper with released code"},
    {"OverrideOfAnUnknownEncoding",
     "network_overrides: {encoding: nonee, network: {name: encoder, dropout: 0.1}}",
     "network_overrides[0].encoding: no encoding has the label \"nonee\"; did you mean \"none\"?"},
    {"OverrideOfNoNetwork", "network_overrides: {encoding: none}",
     "network_overrides[0].network: required; accepted: encoder"},
    {"OverrideOfAnotherNetworksName",
     "network_overrides: {encoding: none, network: {name: graph_network, label: encoder}}",
     "network_overrides[0].network.name: got \"graph_network\", the network \"encoder\" is "
     "\"encoder\""},
    {"OverrideOfAnUnknownParameter",
     "network_overrides: {encoding: none, network: {name: encoder, dropuot: 0.1}}",
     "network_overrides[0].network.dropuot: \"encoder\" has no such parameter; did you mean "
     "\"dropout\"?"},
    {"OverrideThatDoesNotFit",
     "network_overrides: {encoding: none, network: {name: encoder, heads: 5}}",
     "network_overrides[0].network.heads: 5 heads do not divide d_model = 16; use a divisor of it"},
    {"OverrideTwice",
     "network_overrides: [{encoding: none, network: {name: encoder, dropout: 0.1}}, {encoding: "
     "none, network: {name: encoder, blocks: 2}}]",
     "network_overrides[1]: the network \"encoder\" with the encoding \"none\" is given twice"},
    {"EpochsOfTextWithoutText", "training: {steps: 1, examples: 400, without_replacement: true}",
     "training.without_replacement: applies to text tasks only; remove it"},
    {"SeedOfNoDataSet", "training: {steps: 1, data_set_seed: 3}",
     "training.data_set_seed: needs a data set; set training.examples"},
    {"EvaluatedTrialInASubmission", "evaluated_trial: experiments/e-1/trials/t",
     "evaluated_trial: only the server sets this; use `lengthwise evaluate TRIAL` to evaluate a "
     "trial"},
    {"PriorityOutOfRange", "priority: 1001",
     "priority: got 1001, expected an integer from -1000 to 1000"},
};

INSTANTIATE_TEST_SUITE_P(All, OneMistakeTest, testing::ValuesIn(kMistakes),
                         [](const testing::TestParamInfo<Mistake>& info) {
                           return info.param.name;
                         });

TEST(MistakesTest, RopeNeedsPairsOfFeaturesInEveryHead) {
  EXPECT_EQ(MessageAfter("name: x\ntasks: bucket_sort\nencodings: rope\nlearning_rates: 0.1\n"
                         "networks: {name: encoder, heads: 2, d_model: 6}\n"
                         "training: {steps: 1, lengths: 1..5}\nevaluation: {lengths: 5}\n"),
            "encodings[0]: needs an even number of features in each head; the network has d_model "
            "= 6 and 2 heads");
}

TEST(MistakesTest, RecurrentNetworksTakeNoEncodingButNone) {
  const auto message = [](const std::string& networks, const std::string& encodings) {
    return MessageAfter(absl::StrCat(
        "name: x\ntasks: bucket_sort\nlearning_rates: 0.1\nnetworks: ", networks, "\nencodings: ",
        encodings, "\ntraining: {steps: 1, lengths: 1..5}\nevaluation: {lengths: 5}\n"));
  };
  EXPECT_EQ(message("lstm", "[none, rope]"),
            "encodings[1]: \"rope\" has no effect in \"lstm\", which reads tokens in their order "
            "and takes \"none\": remove this one");
  EXPECT_EQ(message("[encoder, lstm]", "rope"),
            "networks[1]: \"lstm\" takes the encoding \"none\": add it to `encodings`");
  EXPECT_EQ(
      message("{name: tape_rnn, write_layers: \"64, x\"}", "none"),
      "networks[0].write_layers: got \"64, x\", expected at most 16 sizes from 1 to 8192, such "
      "as \"64, 64\", or \"\" for none");
  EXPECT_EQ(message("{name: lstm, hiden_size: 3}", "none"),
            "networks[0].hiden_size: \"lstm\" has no such parameter; did you mean "
            "\"hidden_size\"?");
}

TEST(MistakesTest, WholePromptsNeedALossOfAnswers) {
  const std::string text =
      "{name: x, protocol: decimal_addition, encodings: fire, "
      "networks: {name: causal_decoder, prompt_attention: bidirectional}, training: {packing: {";
  constexpr char kNeeds[] =
      "networks[0].prompt_attention: needs whole prompts, so a loss on answers only and separate "
      "examples: set training.packing.answers_only: true, and remove attend_across and "
      "reset_positions";
  EXPECT_EQ(MessageAfter(text + "}}}"), kNeeds);
  EXPECT_EQ(MessageAfter(text + "answers_only: true, attend_across: true}}}"), kNeeds);
  EXPECT_EQ(MessageAfter(text + "answers_only: true}}}"), "");
  const std::string looped =
      absl::StrReplaceAll(text, {{"causal_decoder, prompt_attention: bidirectional",
                                  "looped_decoder, loops: 0, loops_per_token: 1"}});
  EXPECT_EQ(MessageAfter(looped + "}}}"),
            absl::StrReplaceAll(kNeeds, {{"prompt_attention", "loops_per_token"}}));
  EXPECT_EQ(MessageAfter(looped + "answers_only: true}}}"), "");
  EXPECT_EQ(MessageAfter(absl::StrReplaceAll(looped, {{"token: 1", "token: 0"}}) + "}}}"),
            "networks[0].loops: got 0, and no loops_per_token: set either above 0");
}

TEST(MistakesTest, EpochsOfTextNeedADataSet) {
  EXPECT_EQ(MessageAfter("{name: x, protocol: decimal_addition, training: {without_replacement: "
                         "true}}"),
            "training.without_replacement: needs a data set; set training.examples");
}

TEST(MistakesTest, AdditionsHaveNoReleasedCode) {
  EXPECT_EQ(MessageAfter("{name: x, protocol: decimal_addition, compatibility: reference_code, "
                         "training: {packing: {tokens: 2048}}}"),
            "compatibility: the authors of protocol \"decimal_addition\" have released no code; "
            "leave it out");
}

TEST(MistakesTest, OneAnswerNamesAllMistakes) {
  const absl::Status status = StatusOf(R"yaml(
name: five
taskz: bucket_sort
encodings: [none, rellative]
learning_rates: [.nan]
training: {steps: many, lengths: {min: -1}}
evaluation: {lengths: 1..10}
)yaml");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "taskz: unknown field; did you mean \"tasks\"?\n"
            "training.steps: got \"many\", expected an integer\n"
            "learning_rates[0]: got nan, expected a finite number above 0\n"
            "training.lengths.min: got -1, expected an integer from 1 to 100000\n"
            "encodings[1]: unknown encoding \"rellative\"; did you mean \"relative\"?");

  const auto payload =
      status.GetPayload(absl::string_view(kBadRequestTypeUrl.data(), kBadRequestTypeUrl.size()));
  ASSERT_TRUE(payload.has_value());
  google::rpc::BadRequest details;
  ASSERT_TRUE(details.ParseFromString(std::string(*payload)));
  ASSERT_THAT(details.field_violations(), SizeIs(5));
  EXPECT_EQ(details.field_violations(1).field(), "training.steps");
  EXPECT_EQ(details.field_violations(1).description(), "got \"many\", expected an integer");
}

TEST(MistakesTest, LargePacksAreMeasuredNotCopied) {
  std::string encodings = "none";
  for (int i = 1; i <= 300; ++i) {
    encodings += absl::StrCat(", {name: sin_cos, randomized: true, max_position: ", 100'000 + i,
                              ", label: e", i, "}");
  }
  const std::string message = MessageAfter(absl::StrCat(
      "{name: x, protocol: randomized_positional_encodings, tasks: bucket_sort, encodings: [",
      encodings, "], evaluation: {lengths: 1..100000}}"));
  EXPECT_THAT(message, testing::HasSubstr("301 tasks, networks and encodings with "));
  EXPECT_THAT(message, testing::HasSubstr("bytes; at most 67,108,864 (the server's "
                                          "--max_grid_bytes): evaluate fewer lengths"));
}

TEST(MistakesTest, HugeGridIsCountedNotExpanded) {
  EXPECT_EQ(MessageAfter("{name: x, protocol: randomized_positional_encodings, tasks: bucket_sort, "
                         "learning_rates: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], encodings: none, "
                         "weight_seeds: 1..1000, data_seeds: 1..1000}"),
            "trials: 10 learning_rates x 1,000 weight_seeds x 1,000 data_seeds = 10,000,000 "
            "trials; at most 100,000: give the grid fewer values or submit it in parts");
}

TEST(MistakesTest, ProductBeyond64BitsIsTooMany) {
  EXPECT_THAT(
      MessageAfter("{name: x, protocol: randomized_positional_encodings, tasks: bucket_sort, "
                   "learning_rates: [1, 2, 3, 4, 5, 6, 7, 8], encodings: none, "
                   "weight_seeds: 1..1000000, data_seeds: 1..1000000}"),
      HasSubstr("= 8,000,000,000,000 trials; at most 100,000"));
}

TEST(MistakesTest, CallerSetsTheTrialLimit) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text(kRight);
  EXPECT_TRUE(Resolve(text, {.max_trials = 2}).ok());
  EXPECT_THAT(Resolve(text, {.max_trials = 1}).status().message(),
              HasSubstr("2 encodings = 2 trials; at most 1:"));
}

TEST(MistakesTest, OversizedTextIsRefusedUnread) {
  EXPECT_EQ(MessageAfter(std::string(5 << 20, '[')),
            "text: got 5242880 bytes, expected at most 1048576");
}

TEST(MistakesTest, TypedMessageIsCheckedTheSame) {
  v1::ExperimentSpecification specification;
  specification.set_protocol("randomized_positional_encodings");
  specification.add_learning_rates(std::numeric_limits<double>::quiet_NaN());
  specification.add_encodings()->set_name("none");
  (*specification.mutable_encodings(0)->mutable_parameters())["x"].mutable_list_value();
  EXPECT_EQ(Resolve(specification, Limits()).status().message(),
            "name: required: the experiment's name\n"
            "learning_rates[0]: got nan, expected a finite number above 0\n"
            "encodings[0].x: expected a number, true, false or text");
}

TEST(MistakesTest, FormulasHaveAFieldAndAColumn) {
  const auto message = [](const std::string& encoding) {
    return MessageAfter(With("encodings: [none, {name: formula, label: x, " + encoding + "}]"));
  };
  EXPECT_EQ(message("logits: \"a * abs(q - k)\", parameters: {a: 1}"), "");
  EXPECT_EQ(message("logits: \"-softplus(a)*lgo(q)\", a: {per: head}"),
            "encodings[1].logits: column 14: unknown function \"lgo\"; did you mean \"log\"?");
  EXPECT_EQ(message("logits: \"log(abs(q - k))\""),
            "encodings[1].logits: column 1: log(0) is minus infinite for q = 0, k = 0, h = 0");
  EXPECT_EQ(message("randomized: false"),
            "encodings[1]: has no formula; set logits, embedding or angle (`lengthwise encodings "
            "formula` explains them)");
  EXPECT_EQ(message("logits: \"a * q\", a: {per: heads}"),
            "encodings[1].a.per: expected model, head or layer; did you mean \"head\"?");
  EXPECT_EQ(message("logits: \"a * q\", parameters: {a: {initail: 1}}"),
            "encodings[1].a.initail: unknown setting of a formula's parameter; did you mean "
            "\"initial\"?");
  EXPECT_EQ(message("logits: \"a * q\", parameters: {a: '1e-3'}"),
            "encodings[1].a: got the text \"1e-3\", expected a number: leave out the quotes");
  EXPECT_EQ(message("logits: \"a * q\", a: {initial: [1, '2']}"),
            "encodings[1].a.initial: got the text \"2\", expected a number: leave out the quotes");
  EXPECT_EQ(message("logits: q, h: 1"),
            "encodings[1].h: \"h\" has a meaning in formulas; use another name");
  EXPECT_EQ(message("logits: q, max_positoin: 1"),
            "encodings[1].parameters: \"max_positoin\" is used in no formula; leave it out");
  EXPECT_EQ(
      message("logits: q, embeding: p"),
      "encodings[1].embeding: \"formula\" has no such parameter; did you mean \"embedding\"?");
  EXPECT_EQ(message("logits: \"a * q\", a: {per: head, initial: [1, 2, 3]}"),
            "encodings[1].parameters: \"a\" has 3 initial values, the network has 2 heads");
  EXPECT_EQ(message("logits: [q, k], embedding: p"),
            "encodings[1].logits: expected a number, true, false or text");
}

TEST(MistakesTest, FormulasAreCheckedAtValidationLengths) {
  const auto message = [](const std::string& validation) {
    return MessageAfter(absl::StrReplaceAll(
        kRight, {{"none, sin_cos", "{name: formula, logits: -abs(q - k) / (n - 4)}"},
                 {"min: 1", "min: 5"},
                 {"sequences: 20", "validation: {lengths: " + validation + "}"}}));
  };
  EXPECT_EQ(message("5..10"), "");
  EXPECT_THAT(message("2..10"), HasSubstr("encodings[0].logits: "));
}

TEST(MistakesTest, FormulaParametersHaveAFieldEach) {
  const auto message = [](const std::string& parameters) {
    return MessageAfter(With("encodings: [none, {name: formula, label: x, logits: \"a * q\", " +
                             parameters + "}]"));
  };
  EXPECT_EQ(message("a: {per: head, initial: 2, fixed: true}"), "");
  EXPECT_EQ(message("a: {initial: []}"),
            "encodings[1].a.initial: got an empty list, expected at least one number");
  EXPECT_EQ(message("a: {initial: [1, x]}"),
            "encodings[1].a.initial: expected a finite number or a list of them");
  EXPECT_EQ(message("a: {fixed: maybe}"), "encodings[1].a.fixed: expected true or false");
  EXPECT_EQ(message("a: {stddev: 0}"), "encodings[1].a.stddev: expected a number above 0");
  EXPECT_THAT(message("a: {size: 1.5}"),
              StartsWith("encodings[1].a.size: expected an integer from 1 to "));
}

TEST(MistakesTest, FormulaParametersOfMessagesAreATextOrValues) {
  v1::ExperimentSpecification specification;
  specification.set_name("x");
  v1::Component& formula = *specification.add_encodings();
  formula.set_name("formula");
  auto& parameters = *formula.mutable_parameters();
  parameters["logits"].set_string_value("a * q");
  parameters["parameters"].set_string_value("a = 1");
  parameters["a"].set_number_value(2);
  EXPECT_THAT(std::string(Resolve(specification, Limits()).status().message()),
              HasSubstr("encodings[0].parameters: is given as a text and as values; keep one of "
                        "them"));
  parameters.erase("a");
  (*parameters["parameters"].mutable_struct_value()->mutable_fields())["a"].set_string_value("1");
  EXPECT_THAT(
      std::string(Resolve(specification, Limits()).status().message()),
      HasSubstr("encodings[0].a: got the text \"1\", expected a number: leave out the quotes"));
}

TEST(MistakesTest, ComponentsHaveTextsAndParametersOnce) {
  const auto message = [](const std::string& encoding) {
    return MessageAfter(With("encodings: [none, " + encoding + "]"));
  };
  EXPECT_EQ(message("{name: [rope]}"), "encodings[1].name: got a list, expected text");
  EXPECT_EQ(message("{name: rope, parameters: 3}"),
            "encodings[1].parameters: got 3, expected parameters and their values");
  EXPECT_EQ(message("{name: relative, randomized: true, parameters: {randomized: false}}"),
            "encodings[1].randomized: given twice");
}

TEST(MistakesTest, LongTextIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\u00e4";
  const std::string message = MessageAfter(With("learning_rates: [" + text + "]"));
  EXPECT_THAT(message, testing::StartsWith("learning_rates[0]: got \"\u00e4"));
  EXPECT_THAT(message, HasSubstr("\u00e4...\""));
  EXPECT_LT(message.size(), text.size());
  EXPECT_EQ(MessageAfter(With("description: " + std::string(10'001, 'x'))),
            "description: got 10001 bytes, expected at most 10000");
}

// Protobuf's tokenizer shows a character's first byte.
TEST(MistakesTest, PartsOfCharactersAreEscaped) {
  const absl::Status status =
      StatusOf("training { steps\u00e9: 3 }", v1::SpecificationText::TEXT_PROTO);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\\xc3"));
  google::rpc::BadRequest details;
  ASSERT_TRUE(details.ParseFromString(std::string(*status.GetPayload(kBadRequestTypeUrl))));
  EXPECT_THAT(details.field_violations(),
              Contains(Property(&google::rpc::BadRequest::FieldViolation::description,
                                HasSubstr("\\xc3"))));
}

TEST(MistakesTest, SeedsOfWeightsAndDataComeTogether) {
  const std::string without = absl::StrReplaceAll(kRight, {{"seeds: [0]\n", ""}});
  EXPECT_EQ(MessageAfter(without + "weight_seeds: [1]\n"),
            "data_seeds: required with weight_seeds");
  EXPECT_EQ(MessageAfter(without + "data_seeds: [1]\n"), "weight_seeds: required with data_seeds");
  constexpr char kEmptyList[] = ": got an empty list, expected at least one value";
  EXPECT_EQ(MessageAfter(without + "weight_seeds: []\ndata_seeds: []\n"),
            absl::StrCat("weight_seeds", kEmptyList, "\ndata_seeds", kEmptyList));
  EXPECT_EQ(MessageAfter(without + "weight_seeds: []\ndata_seeds: [1]\n"),
            absl::StrCat("weight_seeds", kEmptyList));
}

TEST(MistakesTest, ThousandsOfMistakesFitAnAnswer) {
  std::string text = "name: x\n";
  for (int i = 0; i < 5'000; ++i) absl::StrAppend(&text, "unknown", i, ": 1\n");
  const absl::Status status = StatusOf(text);
  EXPECT_THAT(std::string(status.message()), StartsWith("unknown0: unknown field"));
  EXPECT_THAT(std::string(status.message()), testing::ContainsRegex("\nand at least [0-9]+ more$"));
  EXPECT_LT(status.message().size(), 3'000);
}

TEST(MistakesTest, TextFormatNamesAllUnknownFields) {
  EXPECT_EQ(MessageAfter("name: \"x\"\nprotocol: \"randomized_positional_encodings\"\n"
                         "training {\n  stepz: 10\n  batchsize: 3\n}\n",
                         v1::SpecificationText::TEXT_PROTO),
            "training.stepz: unknown field (line 4); did you mean \"steps\"?\n"
            "training.batchsize: unknown field (line 5); did you mean \"batch_size\"?");
}

}  // namespace
}  // namespace lengthwise::specification
