// xPos, p-RoPE and scalable softmax, written as formulas, agree with published programs in outputs
// and gradients.
#include <cmath>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/attention/attention.h"
#include "models/encodings/causal.h"
#include "tests/golden/encoding_subject.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

json Variant(const std::string& name) {
  const json golden = ReadGolden("attention_variants.json", "baselines");
  return golden.is_null() ? golden : golden.at(name);
}

double Tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-9 : 1e-5; }

// A formula whose features are pairs of neighbours.
void ExpectCausalAttention(const json& reference, const Given& formula, int64_t heads,
                           int64_t first_position, bool halves, at::ScalarType dtype) {
  const int64_t size = reference.at("settings").at("head_dim");
  const at::Tensor weights = Float64Values(reference.at("loss_weights"));
  const auto sequences = static_cast<int64_t>(reference.at("inputs").at("q").size());
  const int64_t n = weights.numel() / (sequences * heads * size);
  EncodingSubject subject("formula", formula,
                          {.blocks = 1, .heads = heads, .d_model = heads * size, .causal = true},
                          dtype);
  const auto encoding = models::MakeCausal(std::move(subject.encoding));
  // Pairs a half apart become neighbours.
  const auto paired = [&](const json& values, bool is_value) {
    const at::Tensor all = Float64Values(values).view({1, sequences, n, heads, size});
    return (halves && !is_value ? all.unflatten(4, {2, size / 2}).transpose(4, 5).flatten(4) : all)
        .flatten(3);
  };
  const auto joined = [&](const json& values) {
    return at::cat({paired(values.at("q"), false), paired(values.at("k"), false),
                    paired(values.at("v"), true)},
                   3);
  };
  const at::Tensor qkv = joined(reference.at("inputs")).to(dtype).requires_grad_(true);
  const at::Tensor positions =
      at::arange(first_position, first_position + n, at::kDouble).unsqueeze(0);
  const at::Tensor output =
      models::Attend(*encoding, subject.arena->Members(0, 1), 0, heads, positions, qkv, nullptr);
  EXPECT_LT(LargestDifference(output.detach().flatten().to(at::kDouble),
                              Float64Values(reference.at("outputs").at("output")).flatten()),
            Tolerance(dtype));
  output.mul(weights.view(output.sizes())).sum().backward();
  EXPECT_LT(LargestDifference(qkv.grad().to(at::kDouble), joined(reference.at("gradients"))),
            Tolerance(dtype));
}

TEST(FormulaAttentionTest, XposIsAMagnitude) {
  const json golden = Variant("xpos");
  if (golden.is_null()) GTEST_SKIP() << "no attention_variants.json";
  for (const json& reference : golden.at("cases")) {
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      ExpectCausalAttention(
          reference,
          {{"angle", std::string("p * 10000^(-2 * i / d)")},
           {"magnitude", absl::StrCat("((2 * i + 0.4 * d) / (1.4 * d))^(p / ",
                                      reference.at("settings").at("scale_base").get<int>(), ")")}},
          1, 0, /*halves=*/false, dtype);
    }
  }
}

TEST(FormulaAttentionTest, PRopeIsAnAngle) {
  const json golden = Variant("p_rope");
  if (golden.is_null()) GTEST_SKIP() << "no attention_variants.json";
  for (const json& reference : golden.at("cases")) {
    const json& settings = reference.at("settings");
    const auto heads = static_cast<int64_t>(reference.at("inputs").at("q")[0][0].size());
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      ExpectCausalAttention(
          reference,
          {{"angle",
            absl::StrCat("where(i < floor(", settings.at("p").get<double>(), " * d / 2), p * ",
                         settings.at("base").get<int>(), "^(-2 * i / d), 0)")}},
          heads, settings.at("first_position"), /*halves=*/true, dtype);
    }
  }
}

// The scores of one query, as logits that are multiplied.
TEST(FormulaAttentionTest, ScalableSoftmaxIsAScale) {
  const json golden = Variant("scalable_softmax");
  if (golden.is_null()) GTEST_SKIP() << "no attention_variants.json";
  for (const json& reference : golden.at("cases")) {
    const int64_t n = reference.at("n");
    EncodingSubject subject(
        "formula", {{"scale", std::string("s * log(n)")}, {"parameters", std::string("s = 1")}},
        {.blocks = 1, .heads = 1, .d_model = 2});
    const json& inputs = reference.at("inputs");
    subject.Set("encoding.s", Float64Values(json::array({inputs.at("s")})));
    // Keys (score sqrt(2), 0) and queries (1, 0) have the scores as logits.
    const at::Tensor scores =
        Float64Values(inputs.at("scores")).detach().clone().requires_grad_(true);
    const at::Tensor none = at::zeros({n}, at::kDouble), one = at::zeros({n}, at::kDouble).add(1);
    const at::Tensor qkv =
        at::stack({one, none, scores.mul(std::sqrt(2.0)), none, none, none}, 1).view({1, 1, n, 6});
    models::AttentionMaps maps;
    (void)models::Attend(*subject.encoding, subject.arena->Members(0, 1), 0, 1,
                         at::arange(n, at::kDouble).unsqueeze(0), qkv, &maps);
    const at::Tensor probabilities = maps.probabilities.select(3, 0).flatten();
    EXPECT_LT(LargestDifference(probabilities.detach(),
                                Float64Values(reference.at("outputs").at("probabilities"))),
              1e-9);
    probabilities.mul(Float64Values(reference.at("loss_weights"))).sum().backward();
    EXPECT_LT(
        LargestDifference(scores.grad(), Float64Values(reference.at("gradients").at("scores"))),
        1e-9);
    EXPECT_NEAR(subject.arena->gradients()[0][0].item<double>(),
                reference.at("gradients").at("s").get<double>(), 1e-9);
  }
}

// Each query of a decoder sees the tokens up to its own.
TEST(FormulaAttentionTest, ADecodersScaleCountsVisibleKeys) {
  EncodingSubject subject("formula", {{"scale", std::string("n")}},
                          {.blocks = 1, .heads = 1, .d_model = 2, .causal = true});
  const at::Tensor qkv = at::arange(24, at::kDouble).sin().view({1, 1, 4, 6});
  const at::Tensor positions = at::arange(4, at::kDouble).unsqueeze(0).add(50);
  const models::ParameterSet parameters = subject.arena->Members(0, 1);
  const at::Tensor scaled = subject.encoding->Scaled(parameters, 0, positions, 0, qkv);
  for (int64_t token = 0; token < 4; ++token) {
    EXPECT_LT(LargestDifference(scaled.select(2, token).narrow(2, 0, 2),
                                qkv.select(2, token).narrow(2, 0, 2).mul(token + 1)),
              1e-12);
  }
  EXPECT_LT(LargestDifference(subject.encoding->Scaled(parameters, 0, positions.narrow(1, 3, 1), 3,
                                                       qkv.narrow(2, 3, 1)),
                              scaled.narrow(2, 3, 1)),
            1e-12);
}

}  // namespace
}  // namespace lengthwise::golden
