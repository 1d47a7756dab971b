// Shaw's relative encoding, causal attention and fixed tables of sines agree with values computed
// by their formulas.
#include <cmath>
#include <string>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/zeros.h"
#include "gtest/gtest.h"
#include "models/attention/attention.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "tests/golden/encoding_subject.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-9;

EncodingSubject OneHead(const std::string& name, const Given& values, int64_t d) {
  return {name, values, {.blocks = 1, .heads = 1, .d_model = d}};
}

// [1, 1, 1, n, d]
at::Tensor Vectors(const json& rows) {
  return Float64Values(rows).view({1, 1, 1, static_cast<int64_t>(rows.size()), -1});
}

TEST(AttentionTermsTest, ShawsTermIsTheFormula) {
  const json golden = ReadGolden("shaw_relative.json");
  if (golden.is_null()) GTEST_SKIP() << "no shaw_relative.json";
  for (const json& reference : golden.at("bidirectional")) {
    const int64_t n = reference.at("n"), d = reference.at("d");
    const EncodingSubject shaw =
        OneHead("shaw", {{"max_distance", reference.at("clip_k").get<int64_t>()}}, d);
    const at::Tensor table = Float64Values(reference.at("rel_key_table"));
    shaw.arena->parameters().select(0, 0).narrow(0, 0, table.numel()).copy_(table);
    const at::Tensor q = Vectors(reference.at("q")), k = Vectors(reference.at("k"));
    const at::Tensor term =
        shaw.encoding->LogitTerm(shaw.arena->Members(0, 1), 0, at::arange(n).view({1, n}), q, k);
    const at::Tensor logits =
        at::matmul(q, k.transpose(-1, -2)).div(std::sqrt(static_cast<double>(d))).add(term);
    EXPECT_LE(LargestDifference(logits, reference.at("logits")), kTolerance);
    EXPECT_LE(LargestDifference(at::softmax(logits, -1), reference.at("weights")), kTolerance);
  }
}

TEST(AttentionTermsTest, CausalAttentionIsTheFormulaAtBothTemperatures) {
  const json golden = ReadGolden("cnope_attention.json");
  if (golden.is_null()) GTEST_SKIP() << "no cnope_attention.json";
  for (const json& reference : golden.at("cases")) {
    const int64_t n = reference.at("T"), d = reference.at("d");
    EncodingSubject none = OneHead("none", {}, d);
    const auto causal = models::MakeCausal(std::move(none.encoding));
    for (const std::string temperature : {"1", "0p01"}) {
      const double divisor = temperature == "1" ? 1 : 0.01;
      // The file's values are narrower than its queries: the rest are zeros.
      const at::Tensor values = Vectors(reference.at("v"));
      const int64_t width = values.size(-1);
      const at::Tensor qkv =
          at::cat({Vectors(reference.at("q")).div(divisor), Vectors(reference.at("k")), values,
                   at::zeros({1, 1, 1, n, d - width}, values.options())},
                  -1)
              .squeeze(0);
      models::AttentionMaps maps;
      const at::Tensor mixed = models::Attend(*causal, none.arena->Members(0, 1), 0, 1,
                                              at::arange(n).view({1, n}), qkv, &maps);
      EXPECT_LE(
          LargestDifference(maps.probabilities, reference.at("weights_temperature_" + temperature)),
          kTolerance);
      EXPECT_LE(LargestDifference(mixed.narrow(-1, 0, width),
                                  reference.at("output_temperature_" + temperature)),
                kTolerance);
    }
  }
}

TEST(AttentionTermsTest, FixedTablesAreTheFormulas) {
  for (const std::string name : {"1d", "2d"}) {
    const json golden = ReadGolden("pe_" + name + "_fixed_16x160.json");
    if (golden.is_null()) GTEST_SKIP() << "no pe_" << name << "_fixed_16x160.json";
    const EncodingSubject fixed = name == "1d" ? OneHead("sin_cos", {{"interleaved", true}}, 160)
                                               : OneHead("sin_cos_2d", {}, 160);
    const at::Tensor table = fixed.encoding->EmbeddingTerm(fixed.arena->Members(0, 1), 0,
                                                           at::arange(16, at::kLong).view({1, 16}));
    EXPECT_LE(LargestDifference(table, golden.at("pe")), kTolerance) << name;
  }
}

}  // namespace
}  // namespace lengthwise::golden
