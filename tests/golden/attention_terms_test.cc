// Shaw's relative encoding, causal attention and fixed sinusoidal tables agree with values computed
// from their formulas.
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/zeros.h"
#include "gtest/gtest.h"
#include "models/attention/attention.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "tests/golden/agreement.h"
#include "tests/golden/encoding_subject.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

EncodingSubject OneHead(const std::string& name, const Given& values, int64_t d,
                        at::ScalarType dtype) {
  return {name, values, {.blocks = 1, .heads = 1, .d_model = d}, dtype};
}

// [1, 1, 1, n, d]
at::Tensor Vectors(const json& rows, at::ScalarType dtype) {
  return Float64Values(rows).to(dtype).view({1, 1, 1, static_cast<int64_t>(rows.size()), -1});
}

// q k^T / sqrt(d) plus the term of Shaw's encoding with this table, [1, 1, 1, n, n].
at::Tensor ShawLogits(const json& reference, const Given& values, const at::Tensor& table,
                      at::ScalarType dtype) {
  const int64_t n = reference.at("n"), d = reference.at("d");
  EncodingSubject shaw = OneHead("shaw", values, d, dtype);
  shaw.Set("blocks.0.encoding.table", table);
  const at::Tensor q = Vectors(reference.at("q"), dtype), k = Vectors(reference.at("k"), dtype);
  return at::matmul(q, k.transpose(-1, -2))
      .div(std::sqrt(static_cast<double>(d)))
      .add(
          shaw.encoding->LogitTerm(shaw.arena->Members(0, 1), 0, at::arange(n).view({1, n}), q, k));
}

TEST(AttentionTermsTest, ShawsTermIsTheFormula) {
  const json golden = ReadGolden("shaw_relative.json");
  if (golden.is_null()) GTEST_SKIP() << "no shaw_relative.json";
  for (const json& reference : golden.at("bidirectional")) {
    for (const at::ScalarType dtype : kFormulaTypes) {
      const at::Tensor logits =
          ShawLogits(reference, {{"max_distance", reference.at("clip_k").get<int64_t>()}},
                     Float64Values(reference.at("rel_key_table")), dtype);
      ExpectAgreement(logits, reference.at("logits"), dtype);
      ExpectAgreement(at::softmax(logits, -1), reference.at("weights"), dtype);
    }
  }
}

// The authors' program has a vector Er[max_len - 1 - (i - j)] for each distance backwards. The
// table of all distances used here holds a copy; keys after the query are masked.
TEST(AttentionTermsTest, CausalShawMatchesTheAuthorsCode) {
  const json golden = ReadGolden("shaw_relative.json");
  if (golden.is_null()) GTEST_SKIP() << "no shaw_relative.json";
  for (const json& reference : golden.at("causal_skew")) {
    const int64_t longest = reference.at("max_len");
    const at::Tensor back = Float64Values(reference.at("Er")).view({longest, -1});
    const at::Tensor table =
        at::cat({back, at::zeros({longest - 1, back.size(1)}, back.options())});
    for (const at::ScalarType dtype : kFormulaTypes) {
      const at::Tensor logits =
          ShawLogits(reference, {{"max_distance", longest - 1}, {"causal", true}}, table, dtype);
      ExpectAgreement(at::softmax(logits, -1), reference.at("weights"), dtype);
      json seen = json::array();
      for (size_t query = 0; query < reference.at("logits").size(); ++query) {
        const json& row = reference.at("logits")[query];
        seen.insert(seen.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(query + 1));
      }
      ExpectAgreement(logits.masked_select(at::isfinite(logits)), seen, dtype);
    }
  }
}

TEST(AttentionTermsTest, CausalAttentionIsTheFormula) {
  const json golden = ReadGolden("cnope_attention.json");
  if (golden.is_null()) GTEST_SKIP() << "no cnope_attention.json";
  for (const json& reference : golden.at("cases")) {
    const int64_t n = reference.at("T"), d = reference.at("d");
    for (const at::ScalarType dtype : kFormulaTypes) {
      EncodingSubject none = OneHead("none", {}, d, dtype);
      const auto causal = models::MakeCausal(std::move(none.encoding));
      for (const std::string temperature : {"1", "0p01"}) {
        const double divisor = temperature == "1" ? 1 : 0.01;
        // The file's values are narrower than its queries; the rest is padded with zeros.
        const at::Tensor values = Vectors(reference.at("v"), dtype);
        const int64_t width = values.size(-1);
        const at::Tensor qkv = at::cat({Vectors(reference.at("q"), dtype).div(divisor),
                                        Vectors(reference.at("k"), dtype), values,
                                        at::zeros({1, 1, 1, n, d - width}, values.options())},
                                       -1)
                                   .squeeze(0);
        models::AttentionMaps maps;
        const at::Tensor mixed = models::Attend(*causal, none.arena->Members(0, 1), 0, 1,
                                                at::arange(n).view({1, n}), qkv, &maps);
        ExpectAgreement(maps.probabilities, reference.at("weights_temperature_" + temperature),
                        dtype);
        ExpectAgreement(mixed.narrow(-1, 0, width),
                        reference.at("output_temperature_" + temperature), dtype);
      }
    }
  }
}

TEST(AttentionTermsTest, FixedTablesMatchTheFormulas) {
  for (const std::string name : {"1d", "2d"}) {
    const json golden = ReadGolden("pe_" + name + "_fixed_16x160.json");
    if (golden.is_null()) GTEST_SKIP() << "no pe_" << name << "_fixed_16x160.json";
    SCOPED_TRACE(name);
    for (const at::ScalarType dtype : kFormulaTypes) {
      const EncodingSubject fixed = name == "1d"
                                        ? OneHead("sin_cos", {{"interleaved", true}}, 160, dtype)
                                        : OneHead("sin_cos_2d", {}, 160, dtype);
      ExpectAgreement(fixed.encoding->EmbeddingTerm(fixed.arena->Members(0, 1), 0,
                                                    at::arange(16, at::kLong).view({1, 16})),
                      golden.at("pe"), dtype);
    }
  }
}

}  // namespace
}  // namespace lengthwise::golden
