#include "client/comparison/experiment_difference.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::ExperimentSpecification Resolved(const std::string& yaml) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text("name: x\ntasks: bucket_sort\nlearning_rates: 0.001\n" + yaml);
  const auto grid = specification::Resolve(text, specification::Limits());
  EXPECT_TRUE(grid.ok()) << grid.status();
  return grid.ok() ? grid->specification : v1::ExperimentSpecification();
}

std::vector<std::string> Lines(const std::string& first, const std::string& second) {
  std::vector<std::string> lines;
  for (const ExperimentDifference& difference : Differences(Resolved(first), Resolved(second))) {
    lines.push_back(difference.field + ": " + difference.first + " | " + difference.second);
  }
  return lines;
}

constexpr char kFirst[] =
    "encodings: [{name: sin_cos, randomized: true, max_position: 256, label: short},\n"
    "            {name: sin_cos, randomized: true, max_position: 512, label: long}]\n"
    "training: {steps: 2000}\nevaluation: {lengths: 1..60}\n";

TEST(ExperimentDifferenceTest, AnExperimentDoesNotDifferFromItself) {
  EXPECT_THAT(Lines(kFirst, kFirst), IsEmpty());
}

TEST(ExperimentDifferenceTest, NamesEveryFieldThatDecidesResults) {
  EXPECT_THAT(
      Lines(
          kFirst,
          "seeds: [0, 1]\n"
          "encodings: [none, {name: sin_cos, randomized: true, max_position: 300, label: short}]\n"
          "networks: {name: encoder, blocks: 2}\n"
          "training: {steps: 3000, stop_after_seconds: 60}\n"
          "evaluation: {lengths: 1..80, seed: 4, interval_lengths: 9}\n"),
      ElementsAre("encodings.short.max_position: 256 | 300",
                  "evaluation.interval_lengths: "
                  "1, 9, 18, 26, 35, 43, 52, 60 | 9",
                  "evaluation.lengths: 1..60 | 1..80", "evaluation.seed: 0 | 4",
                  "networks.encoder.blocks: 5 | 2", "seeds: 0 | 0, 1",
                  "training.steps: 2,000 | 3,000", "training.stop_after_seconds: 0 | 60"));
}

}  // namespace
}  // namespace lengthwise::client
