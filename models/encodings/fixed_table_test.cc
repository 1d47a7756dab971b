#include "models/encodings/fixed_table.h"

#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/encoding.h"
#include "statistics/similarity.h"

namespace lengthwise::models {
namespace {

catalogue::Parameters Resolved(const std::string& name, const catalogue::Parameters& given = {}) {
  std::vector<catalogue::Problem> problems;
  for (const EncodingEntry* entry : EncodingEntries()) {
    if (entry->name == name) return catalogue::Resolve(*entry, given, name, problems);
  }
  ADD_FAILURE() << "no encoding " << name;
  return {};
}

// The encodings themselves are compared with the reference's tables in //tests/golden.
TEST(FixedTableTest, IsWhatTheEncodingAdds) {
  constexpr int64_t kRows = 23, kWidth = 20;
  std::vector<std::pair<std::string, catalogue::Parameters>> cases;
  for (const std::string& name : EncodingsWithFixedTables())
    cases.emplace_back(name, Resolved(name));
  catalogue::Parameters given;
  given.Set("interleaved", true);
  cases.emplace_back("sin_cos", Resolved("sin_cos", given));
  catalogue::Parameters wide;
  wide.Set("columns", int64_t{7});
  cases.emplace_back("sin_cos_2d", Resolved("sin_cos_2d", wide));
  for (const auto& [name, parameters] : cases) {
    ParameterLayout layout;
    layout.Add("unused", {1}, {});
    const auto encoding =
        CreateEncoding(name, parameters, {.blocks = 1, .heads = 1, .d_model = kWidth}, layout);
    ASSERT_TRUE(encoding.ok()) << encoding.status();
    ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
    const at::Tensor added =
        (*encoding)
            ->EmbeddingTerm(arena.Members(0, 1), 0, at::arange(kRows, at::kLong).unsqueeze(0))
            .contiguous();
    const auto table = FixedTable(name, parameters, kRows, kWidth);
    ASSERT_TRUE(table.has_value());
    ASSERT_EQ(table->size(), kRows * kWidth);
    for (size_t i = 0; i < table->size(); ++i) {
      EXPECT_NEAR((*table)[i], added.const_data_ptr<double>()[i], 1e-12) << name << " " << i;
    }
  }
}

// The baseline that the paper on relational reasoning on Latin squares states: sixteen cells, d =
// 160.
TEST(FixedTableTest, OneAndTwoDimensionsAreAsAlikeAsThePaperSays) {
  catalogue::Parameters given;
  given.Set("interleaved", true);
  const auto line = FixedTable("sin_cos", Resolved("sin_cos", given), 16, 160);
  const auto grid = FixedTable("sin_cos_2d", Resolved("sin_cos_2d"), 16, 160);
  EXPECT_NEAR(statistics::CosineSimilarity(*line, *grid).value(), 0.72, 0.006);
}

TEST(FixedTableTest, OtherEncodingsHaveNone) {
  EXPECT_FALSE(FixedTable("learned", Resolved("learned"), 4, 8).has_value());
  catalogue::Parameters drawn;
  drawn.Set("randomized", true);
  EXPECT_FALSE(FixedTable("sin_cos", Resolved("sin_cos", drawn), 4, 8).has_value());
}

}  // namespace
}  // namespace lengthwise::models
