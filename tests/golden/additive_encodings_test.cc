// FIRE, KerpleLog, T5's buckets, ALiBi and RoPE agree with values computed from their formulas.
#include <cmath>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/matmul.h"
#include "gtest/gtest.h"
#include "models/encodings/additive.h"
#include "tests/golden/agreement.h"
#include "tests/golden/encoding_subject.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

models::EncodingShape Causal(int64_t heads) {
  return {.blocks = 1, .heads = heads, .d_model = 8 * heads, .causal = true};
}

TEST(AdditiveEncodingsTest, FireIsTheFormula) {
  const json golden = ReadGolden("fire_bias.json");
  if (golden.is_null()) GTEST_SKIP() << "no fire_bias.json";
  for (const json& reference : golden.at("cases")) {
    SCOPED_TRACE(reference.at("name").get<std::string>());
    const int64_t heads = reference.at("heads"), width = reference.at("hidden");
    for (const at::ScalarType dtype : kFormulaTypes) {
      EncodingSubject fire("fire",
                           {{"threshold", reference.at("init_L").get<double>()}, {"width", width}},
                           Causal(heads), dtype);
      fire.Set("encoding.c", Float64Values(json::array({reference.at("c")})));
      fire.Set("encoding.threshold_multiplier",
               Float64Values(json::array({reference.at("L_multiplier")})));
      fire.Set("encoding.up", Float64Values(reference.at("W1")));
      fire.Set("encoding.up_bias", Float64Values(reference.at("b1")));
      fire.Set("encoding.down", Float64Values(reference.at("W2")).view({heads, width}).t());
      fire.Set("encoding.down_bias", Float64Values(reference.at("b2")));
      ExpectAgreement(fire.Bias(Float64Values(reference.at("positions"))), reference.at("bias"),
                      dtype);
    }
  }
}

// The bidirectional form agrees with the causal one for keys before the query, and is symmetric.
TEST(AdditiveEncodingsTest, BidirectionalFireExtendsTheCausalForm) {
  const at::Tensor positions = at::arange(0, 4000, 100, at::kLong);
  const EncodingSubject causal("fire", {}, Causal(2));
  models::EncodingShape shape = Causal(2);
  shape.causal = false;
  const EncodingSubject both("fire", {}, shape);
  causal.arena->Initialize(0, 5);
  both.arena->Initialize(0, 5);
  const at::Tensor bias = both.Bias(positions);
  EXPECT_LE(bias.tril().sub(causal.Bias(positions).tril()).abs().max().item<double>(), 1e-12);
  EXPECT_LE(bias.sub(bias.transpose(1, 2)).abs().max().item<double>(), 1e-12);
  EXPECT_GT(bias.sub(causal.Bias(positions)).abs().max().item<double>(), 1e-3);
}

TEST(AdditiveEncodingsTest, KerpleLogIsTheFormula) {
  const json golden = ReadGolden("kerple_log.json");
  if (golden.is_null()) GTEST_SKIP() << "no kerple_log.json";
  for (const json& reference : golden.at("cases")) {
    for (const at::ScalarType dtype : kFormulaTypes) {
      EncodingSubject kerple("kerple_log", {}, Causal(reference.at("heads")), dtype);
      kerple.Set("encoding.r1", Float64Values(reference.at("r1_raw")));
      kerple.Set("encoding.r2", Float64Values(reference.at("r2_raw")));
      ExpectAgreement(kerple.Bias(Float64Values(reference.at("positions"))), reference.at("bias"),
                      dtype);
    }
  }
}

TEST(AdditiveEncodingsTest, T5HasTheBucketsOfItsDefinition) {
  const json golden = ReadGolden("t5_buckets.json");
  if (golden.is_null()) GTEST_SKIP() << "no t5_buckets.json";
  for (const json& table : golden.at("tables")) {
    const int64_t buckets = table.at("num_buckets"), max_distance = table.at("max_distance");
    SCOPED_TRACE(std::to_string(buckets) + " buckets to " + std::to_string(max_distance));
    for (size_t i = 0; i < table.at("distance").size(); ++i) {
      EXPECT_EQ(models::T5Bucket(table.at("distance")[i], buckets, max_distance),
                table.at("bucket_causal")[i].get<int64_t>());
    }
    // With each bucket's number as its value, the bias is the bucket.
    EncodingSubject both("t5", {{"buckets", buckets}, {"max_distance", max_distance}},
                         {.blocks = 1, .heads = 1, .d_model = 8});
    both.Set("encoding.table", at::arange(buckets, at::kDouble));
    const json& differences = table.at("relative_position");
    const int64_t last = differences.back();
    const at::Tensor bias = both.Bias(at::arange(last + 1, at::kLong)).squeeze(0);
    for (size_t i = 0; i < differences.size(); ++i) {
      const int64_t difference = differences[i];  // key minus query
      const at::Tensor row = bias[difference < 0 ? last : 0];
      EXPECT_EQ(row[difference < 0 ? last + difference : difference].item<double>(),
                table.at("bucket_bidirectional")[i].get<double>())
          << difference;
    }
  }
}

TEST(AdditiveEncodingsTest, T5AddsTheBucketsNumber) {
  const json golden = ReadGolden("t5_buckets.json");
  if (golden.is_null()) GTEST_SKIP() << "no t5_buckets.json";
  const json& example = golden.at("bias_example");
  for (const at::ScalarType dtype : kFormulaTypes) {
    EncodingSubject t5("t5",
                       {{"buckets", example.at("num_buckets").get<int64_t>()},
                        {"max_distance", example.at("max_distance").get<int64_t>()}},
                       Causal(example.at("heads")), dtype);
    t5.Set("encoding.table", Float64Values(example.at("table")));
    const int64_t n = example.at("n");
    ExpectAgreement(t5.Bias(at::arange(n, at::kLong)).tril(), example.at("bias"), dtype);
  }
}

TEST(AdditiveEncodingsTest, AlibiIsTheFormula) {
  const json golden = ReadGolden("alibi.json");
  if (golden.is_null()) GTEST_SKIP() << "no alibi.json";
  for (const auto& [heads, slopes] : golden.at("slopes").items()) {
    const std::vector<double> actual = models::AlibiSlopes(std::stoll(heads));
    ASSERT_EQ(actual.size(), slopes.size());
    for (size_t h = 0; h < actual.size(); ++h) {
      EXPECT_NEAR(actual[h], slopes[h].get<double>(), 1e-9 * actual[h]);
    }
  }
  const int64_t n = golden.at("n"), heads = golden.at("symmetric").size();
  for (const bool half_step : {false, true}) {
    for (const at::ScalarType dtype : kFormulaTypes) {
      const EncodingSubject alibi("alibi", {{"half_step", half_step}}, Causal(heads), dtype);
      ExpectAgreement(alibi.Bias(at::arange(n, at::kLong)),
                      golden.at(half_step ? "encoder_deepmind" : "symmetric"), dtype);
    }
  }
}

// Compares RoPE of the golden queries and keys with the values under `form`. `to_pairs` reorders
// features [.., n, d] of that form so that neighbours rotate together; `from_pairs` is its inverse.
// Logits do not depend on the order.
template <typename ToPairs, typename FromPairs>
void ExpectRope(const std::string& form, ToPairs to_pairs, FromPairs from_pairs) {
  const json golden = ReadGolden("rope.json");
  if (golden.is_null()) GTEST_SKIP() << "no rope.json";
  for (const json& reference : golden.at("cases")) {
    const int64_t n = reference.at("n"), d = reference.at("d");
    for (const at::ScalarType dtype : kFormulaTypes) {
      const EncodingSubject rope("rope", {}, {.blocks = 1, .heads = 1, .d_model = d}, dtype);
      const auto vectors = [&](const char* name) {
        return to_pairs(Float64Values(reference.at(name)).to(dtype).view({1, 1, 1, n, d}));
      };
      at::Tensor q = vectors("q"), k = vectors("k");
      rope.encoding->Rotate(rope.arena->Members(0, 1), 0,
                            Float64Values(reference.at("positions")).to(at::kLong).unsqueeze(0), q,
                            k);
      const json& expected = reference.at(form);
      ExpectAgreement(from_pairs(q), expected.at("q"), dtype);
      ExpectAgreement(from_pairs(k), expected.at("k"), dtype);
      ExpectAgreement(at::matmul(q, k.transpose(-1, -2)).div(std::sqrt(static_cast<double>(d))),
                      expected.at("logits"), dtype);
    }
  }
}

TEST(AdditiveEncodingsTest, RopeIsTheFormula) {
  const auto same = [](const at::Tensor& features) { return features; };
  ExpectRope("interleaved", same, same);
}

// Rotating features k and k + d/2 together equals rotating 2k and 2k + 1 of permuted vectors.
// Learned weights absorb the permutation, so logits are the same.
TEST(AdditiveEncodingsTest, RopeIsTheHalfSplitFormulaPermuted) {
  ExpectRope(
      "half_split",
      [](const at::Tensor& features) {
        return features.unflatten(-1, {2, -1}).transpose(-1, -2).flatten(-2);
      },
      [](const at::Tensor& features) {
        return features.unflatten(-1, {-1, 2}).transpose(-1, -2).flatten(-2);
      });
}

}  // namespace
}  // namespace lengthwise::golden
