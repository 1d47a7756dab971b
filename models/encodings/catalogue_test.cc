#include "models/encodings/catalogue.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

catalogue::Parameters Resolved(const EncodingEntry& entry, const catalogue::Parameters& given) {
  std::vector<catalogue::Problem> problems;
  catalogue::Parameters parameters = catalogue::Resolve(entry, given, entry.name, problems);
  EXPECT_TRUE(problems.empty());
  return parameters;
}

TEST(EncodingEntriesTest, NamesAreUniqueAndDocumented) {
  std::set<std::string> names;
  for (const EncodingEntry* entry : EncodingEntries()) {
    EXPECT_TRUE(names.insert(entry->name).second) << entry->name;
    EXPECT_FALSE(entry->title.empty()) << entry->name;
    EXPECT_FALSE(entry->documentation.empty()) << entry->name;
    for (const auto& parameter : entry->parameters) {
      EXPECT_FALSE(parameter.documentation.empty()) << entry->name << "." << parameter.name;
    }
  }
}

TEST(EncodingEntriesTest, RandomizedPositionsRefuseLongSequences) {
  EncodingContext context = {.d_model = 64, .heads = 8, .longest_sequence = 81};
  for (const EncodingEntry* entry : EncodingEntries()) {
    SCOPED_TRACE(entry->name);
    context.as_vectors = !entry->is_added;
    catalogue::Parameters given;
    if (entry->uses_positions()) {
      given.Set("randomized", true);
      given.Set("max_position", int64_t{80});
    }
    if (entry->name == "formula") given.Set("logits", std::string("q - k"));
    const catalogue::Parameters parameters = Resolved(*entry, given);
    EXPECT_EQ(parameters.values().contains("randomized"), entry->uses_positions());
    EXPECT_EQ(parameters.values().contains("sorted"), entry->uses_positions());
    std::vector<catalogue::Problem> problems;
    CheckEncoding(*entry, parameters, context, "encodings[0]", problems);
    EXPECT_EQ(problems.size(), entry->uses_positions() ? 1U : 0U);
  }
}

TEST(EncodingEntriesTest, SinusoidsNeedAnEvenWidth) {
  for (const EncodingEntry* entry : EncodingEntries()) {
    if (entry->name != "sin_cos" && entry->name != "relative") continue;
    std::vector<catalogue::Problem> problems;
    entry->check(Resolved(*entry, {}), {.d_model = 15, .heads = 3, .longest_sequence = 10},
                 "encodings[2]", problems);
    ASSERT_EQ(problems.size(), 1U) << entry->name;
    EXPECT_EQ(problems[0].field, "encodings[2]");
    EXPECT_NE(problems[0].description.find("15"), std::string::npos);
  }
}

}  // namespace
}  // namespace lengthwise::models
