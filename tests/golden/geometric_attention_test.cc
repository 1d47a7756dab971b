// Geometric attention agrees with values computed from independent formulas.

#include <string>

#include "ATen/ops/cat.h"
#include "ATen/ops/eye.h"
#include "ATen/ops/zeros.h"
#include "gtest/gtest.h"
#include "models/attention/geometric.h"
#include "models/encodings/encoding.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr double kAttentionTolerance = 1e-9;

// Logits with 0 in place of "-inf", which occurs only on the diagonal.
at::Tensor Logits(const json& rows) {
  json numbers = rows;
  for (json& row : numbers) {
    for (json& value : row) {
      if (value.is_string()) value = 0.0;
    }
  }
  const auto n = static_cast<int64_t>(rows.size());
  return Float64Values(numbers).view({n, n});
}

TEST(GeometricAttentionTest, ProbabilitiesMatch) {
  const json golden = ReadGolden("geometric_attention.json");
  if (golden.is_null()) GTEST_SKIP() << "no geometric_attention.json";
  for (const json& reference : golden.at("cases")) {
    const at::Tensor actual = models::GeometricProbabilities(Logits(reference.at("logits")));
    EXPECT_LE(LargestDifference(actual, Float64Values(reference.at("probs_unnormalized"))),
              kAttentionTolerance);
    EXPECT_LE(LargestDifference(models::NormalizeRows(actual),
                                Float64Values(reference.at("probs_normalized"))),
              kAttentionTolerance);
  }
}

// One head with given directions: its features are [back, front, 0, ...], projected by an identity
// matrix.
TEST(GeometricAttentionTest, AttentionWithDirectionsMatches) {
  const json golden = ReadGolden("geometric_attention.json");
  if (golden.is_null()) GTEST_SKIP() << "no geometric_attention.json";
  for (const json& reference : golden.at("directional")) {
    const auto n = reference.at("T").get<int64_t>();
    const auto d = reference.at("d").get<int64_t>();
    const auto matrix = [&](const char* name) {
      return Float64Values(reference.at(name)).view({1, 1, n, -1});
    };
    models::ParameterLayout layout;
    const models::GeometricIds ids(layout, "", 1, d);
    catalogue::Parameters not_causal;
    not_causal.Set("causal", false);
    const auto encoding = models::CreateEncoding("none", not_causal, {}, layout);
    ASSERT_TRUE(encoding.ok()) << encoding.status();
    models::ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
    const auto set = [&](models::ParameterId id, const at::Tensor& values) {
      const auto& slot = layout.slots()[static_cast<size_t>(id)];
      arena.parameters()[0].narrow(0, slot.offset, slot.size).copy_(values.flatten());
    };
    set(ids.content_bias, Float64Values(reference.at("content_bias_u")));
    set(ids.direction, at::eye(d, 2, at::kDouble));
    set(ids.content_scale, Float64Values(reference.at("scale")));
    set(ids.direction_scale, Float64Values(reference.at("scale_pos")));
    set(ids.offset, Float64Values(reference.at("s_bias")));

    const at::Tensor features =
        at::cat({matrix("q_dir"), at::zeros({1, 1, n, d - 2}, at::kDouble)}, -1);
    models::AttentionMaps maps;
    const at::Tensor output = models::AttendGeometrically(
        **encoding, arena.Members(0, 1), ids, 0, 1, at::zeros({1, n}, at::kLong), features,
        matrix("q"), matrix("k"), matrix("v"), &maps);
    const at::Tensor elsewhere = at::eye(n, at::kDouble).eq(0);
    EXPECT_LE(
        LargestDifference(maps.logits[0][0][0].mul(elsewhere), Logits(reference.at("logits"))),
        kAttentionTolerance);
    EXPECT_LE(
        LargestDifference(maps.probabilities, Float64Values(reference.at("probs_normalized"))),
        kAttentionTolerance);
    EXPECT_LE(LargestDifference(output, Float64Values(reference.at("output_normalized"))),
              kAttentionTolerance);
  }
}

}  // namespace
}  // namespace lengthwise::golden
