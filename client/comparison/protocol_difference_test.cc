#include "client/comparison/protocol_difference.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Differences(const std::string& yaml) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text("name: x\nprotocol: randomized_positional_encodings\n" + yaml);
  const auto grid = specification::Resolve(text, specification::Limits());
  if (!grid.ok()) return {std::string(grid.status().message())};
  const auto differences =
      DifferencesFromProtocol(grid->specification, "randomized_positional_encodings");
  if (!differences.ok()) return {std::string(differences.status().message())};
  std::vector<std::string> lines;
  for (const ProtocolDifference& difference : *differences) {
    lines.push_back(difference.what + ": " + difference.here + " | " + difference.published);
  }
  return lines;
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

}  // namespace
}  // namespace lengthwise::client
