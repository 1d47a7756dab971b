#include "catalogue/entry.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::catalogue {
namespace {

Entry Relative() {
  return {.name = "relative",
          .title = "Relative",
          .documentation = "For the test.",
          .parameters = {
              {"randomized", false, "Draws positions."},
              {"max_position", int64_t{2048}, "L.", 1, 65536},
              {"scale", 1.0, "A number.", 0},
              {"distances", std::string("positions"), "How.", {}, {}, {"positions", "offsets"}}}};
}

// The problems that one parameter gives, as "field: description".
std::vector<std::string> Problems(const std::string& name, ParameterValue value) {
  Parameters given;
  given.Set(name, std::move(value));
  std::vector<Problem> problems;
  Resolve(Relative(), given, "encodings[1]", problems);
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const Problem& problem : problems) {
    lines.push_back(problem.field + ": " + problem.description);
  }
  return lines;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ResolveTest, FillsDefaultsUnderGivenValues) {
  Parameters given;
  given.Set("randomized", true);
  std::vector<Problem> problems;
  const Parameters resolved = Resolve(Relative(), given, "encodings[0]", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_TRUE(resolved.Bool("randomized"));
  EXPECT_EQ(resolved.Int("max_position"), 2048);
  EXPECT_EQ(resolved.Double("scale"), 1.0);
  EXPECT_EQ(resolved.String("distances"), "positions");
}

TEST(ResolveTest, ConvertsIntegralDoublesAndIntegers) {
  Parameters given;
  given.Set("max_position", 512.0);
  given.Set("scale", int64_t{3});
  std::vector<Problem> problems;
  const Parameters resolved = Resolve(Relative(), given, "e", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(resolved.Int("max_position"), 512);
  EXPECT_EQ(resolved.Double("scale"), 3.0);
}

TEST(ResolveTest, NamesFieldGivenValueAndAcceptedValues) {
  EXPECT_THAT(
      Problems("randomised", true),
      ElementsAre("encodings[1].randomised: \"relative\" has no such parameter; did you mean "
                  "\"randomized\"?"));
  EXPECT_THAT(Problems("max_position", int64_t{0}),
              ElementsAre("encodings[1].max_position: got 0, accepted: 1 to 65536"));
  EXPECT_THAT(Problems("max_position", 1.5),
              ElementsAre("encodings[1].max_position: got 1.5, expected an integer"));
  EXPECT_THAT(Problems("randomized", std::string("yes")),
              ElementsAre("encodings[1].randomized: got \"yes\", expected true or false"));
  EXPECT_THAT(
      Problems("distances", std::string("offset")),
      ElementsAre("encodings[1].distances: unknown value \"offset\"; did you mean \"offsets\"?"));
  EXPECT_THAT(Problems("scale", std::numeric_limits<double>::quiet_NaN()),
              ElementsAre("encodings[1].scale: got nan, accepted: at least 0"));
}

TEST(ResolveTest, KeepsTheDefaultOfAWrongParameter) {
  Parameters given;
  given.Set("max_position", int64_t{-1});
  std::vector<Problem> problems;
  EXPECT_EQ(Resolve(Relative(), given, "e", problems).Int("max_position"), 2048);
}

TEST(FormatValueTest, WritesShortestExactNumbers) {
  EXPECT_EQ(FormatValue(0.001), "0.001");
  EXPECT_EQ(FormatValue(3e-4), "0.0003");
  EXPECT_EQ(FormatValue(1e-8), "1e-08");
  EXPECT_EQ(FormatValue(0.0), "0");
  EXPECT_EQ(FormatValue(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(FormatValue(int64_t{-7}), "-7");
  EXPECT_EQ(FormatValue(true), "true");
}

TEST(FindTest, SuggestsANearNameAndListsAllForAFarOne) {
  const Entry none{.name = "none"}, rope{.name = "rope"}, sin_cos{.name = "sin_cos"};
  const std::vector<const Entry*> entries = {&none, &rope, &sin_cos};
  std::vector<Problem> problems;
  EXPECT_EQ(Find(entries, "sin_cos", "encoding", "encodings[0]", problems), 2U);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_FALSE(Find(entries, "rotpe", "encoding", "encodings[0]", problems));
  EXPECT_FALSE(Find(entries, "transformer", "encoding", "encodings[1]", problems));
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].description, "unknown encoding \"rotpe\"; did you mean \"rope\"?");
  EXPECT_EQ(problems[1].description,
            "unknown encoding \"transformer\"; accepted: none, rope, sin_cos");
}

TEST(FindTest, SuggestsParameterForNamesFromTables) {
  const Entry rope{.name = "rope", .parameters = {{.name = "randomized", .default_value = false}}};
  const std::vector<const Entry*> entries = {&rope};
  std::vector<Problem> problems;
  EXPECT_FALSE(Find(entries, "randomized_rope", "encoding", "encodings[0]", problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].description,
            "unknown encoding \"randomized_rope\"; write {name: rope, randomized: true}");
}

}  // namespace
}  // namespace lengthwise::catalogue
