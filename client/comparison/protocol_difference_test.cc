#include "client/comparison/protocol_difference.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> DifferencesFrom(const PublishedTable& table, const std::string& yaml) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text("name: x\nprotocol: " + table.protocol + "\n" + yaml);
  const auto grid = specification::Resolve(text, specification::Limits());
  if (!grid.ok()) return {std::string(grid.status().message())};
  const auto differences = DifferencesFromProtocol(grid->specification, table);
  if (!differences.ok()) return {std::string(differences.status().message())};
  std::vector<std::string> lines;
  for (const ProtocolDifference& difference : *differences) {
    lines.push_back(difference.what + ": " + difference.here + " | " + difference.published);
  }
  return lines;
}

std::vector<std::string> Differences(const std::string& yaml) {
  PublishedTable table;
  table.protocol = "randomized_positional_encodings";
  return DifferencesFrom(table, yaml);
}

std::vector<std::string> AdditionDifferences(const std::string& yaml) {
  return DifferencesFrom(FindPublishedTable("addition_length_gen/statements").value(), yaml);
}

TEST(ProtocolDifferenceTest, APartOfTheGridIsNoDifference) {
  EXPECT_THAT(Differences("tasks: bucket_sort\nencodings: [none, {name: rope, randomized: true}]"),
              IsEmpty());
}

TEST(ProtocolDifferenceTest, HowOftenSomethingIsRecordedIsNoDifference) {
  EXPECT_THAT(Differences("tasks: bucket_sort\ntraining: {report_every_steps: 7}\n"
                          "evaluation: {every_steps: 1000}"),
              IsEmpty());
}

TEST(ProtocolDifferenceTest, SaysWhatWasScaledDown) {
  EXPECT_THAT(
      Differences("tasks: bucket_sort\n"
                  "encodings: [sin_cos, {name: sin_cos, randomized: true, max_position: 256}]\n"
                  "networks: {name: encoder, blocks: 2}\n"
                  "learning_rates: 1e-3\n"
                  "seeds: 0..2\n"
                  "training: {steps: 3000, batch_size: 32, lengths: 1..20, clip_norm: 0}\n"
                  "evaluation: {lengths: 5..100 step 5, sequences: 200}"),
      ElementsAre("steps: 3,000 | 2,000,000", "batch size: 32 | 128",
                  "training lengths: 1..20 | 1..40", "scored lengths: 25..100 step 5 | 41..500",
                  "sequences a length: 200 | 500", "learning rates: 0.001 | 1e-04, 3e-04, 5e-04",
                  "seeds: 3 | 10", "network blocks: 2 | 5", "encodings' max_position: 256 | 2048",
                  "clipping norm: 0 | 1"));
}

TEST(ProtocolDifferenceTest, AnUnusedNumberOfPositionsIsNoDifference) {
  EXPECT_THAT(Differences("tasks: bucket_sort\nencodings: {name: sin_cos, max_position: 4096}"),
              IsEmpty());
  EXPECT_THAT(Differences("tasks: bucket_sort\nencodings: {name: learned, max_position: 4096}"),
              ElementsAre("encodings' max_position: 4096 | 2048"));
}

constexpr char k5M[] =
    "networks: {name: causal_decoder, blocks: 4, heads: 4, d_model: 256, d_ff: 1024}\n";

// Accuracies are those at the columns' length, whatever else was evaluated.
TEST(ProtocolDifferenceTest, LengthsThatTheColumnsNameAreNoDifference) {
  const std::string encoding = "encodings: {name: fire, randomized: true}\n";
  EXPECT_THAT(AdditionDifferences(encoding + "evaluation: {lengths: 100}"), IsEmpty());
  EXPECT_THAT(AdditionDifferences(encoding + "evaluation: {lengths: 1..100}"), IsEmpty());
}

TEST(ProtocolDifferenceTest, NetworkAndSeedsThatTheRowNamesAreNoDifference) {
  EXPECT_THAT(AdditionDifferences(std::string(k5M) + "encodings: fire\nseeds: 0..4"), IsEmpty());
  EXPECT_THAT(AdditionDifferences(std::string(k5M) + "encodings: fire\nseeds: 0..9"),
              ElementsAre("seeds: 10 | 5"));
  EXPECT_THAT(AdditionDifferences("encodings: fire\nseeds: 0..4"), ElementsAre("seeds: 5 | 10"));
  EXPECT_THAT(AdditionDifferences("encodings: fire\nnetworks: {name: causal_decoder, blocks: 2}"),
              ElementsAre("network blocks: 2 | 6"))
      << "one of no row";
}

TEST(ProtocolDifferenceTest, AnotherFormatIsADifference) {
  EXPECT_THAT(AdditionDifferences("tasks: {name: decimal_addition, order: standard, "
                                  "index_hints: false}\nencodings: fire"),
              ElementsAre("task index_hints: false | true", "task order: standard | reversed"));
  EXPECT_THAT(AdditionDifferences("tasks: {name: decimal_addition, random_space: 0.1}\n"
                                  "encodings: fire"),
              ElementsAre("task random_space: 0.1 | 0"));
}

TEST(ProtocolDifferenceTest, AnotherPackingIsADifference) {
  EXPECT_THAT(
      AdditionDifferences("encodings: fire\n"
                          "training: {packing: {tokens: 1024, answers_only: true}}"),
      ElementsAre("tokens of a sequence: 1,024 | 2,048", "packing answers_only: true | false"));
  EXPECT_THAT(
      AdditionDifferences("encodings: fire\ntraining: {packing: {attend_across: true}}"),
      ElementsAre("packing attend_across: true | false", "packing reset_positions: false | true"));
}

}  // namespace
}  // namespace lengthwise::client
