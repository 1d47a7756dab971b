// The decoder's norms and feed-forward layers agree with values computed from their formulas, and
// its sizes with the paper's.
#include <map>
#include <string>

#include "ATen/ops/cat.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/layers/feed_forward.h"
#include "models/layers/norms.h"
#include "models/networks/catalogue.h"
#include "models/networks/language_model.h"
#include "models/networks/normed_residual.h"
#include "models/parameters/arena.h"
#include "tests/golden/encoding_subject.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using models::Gelu;
using models::NormPlacement;
using nlohmann::json;

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat};

void ExpectClose(const at::Tensor& actual, const json& expected) {
  const at::Tensor values = Float64Values(expected);
  ASSERT_EQ(actual.numel(), values.numel());
  const double tolerance = actual.scalar_type() == at::kDouble ? 1e-9 : 1e-5;
  EXPECT_LE(actual.flatten().to(at::kDouble).sub(values).abs().max().item<double>(),
            tolerance * values.abs().max().item<double>());
}

// A feed-forward sub-layer from the file: one model in `dtype`.
class SubLayer {
 public:
  SubLayer(const json& golden, at::ScalarType dtype) : golden_(golden), dtype_(dtype) {}

  at::Tensor Apply(NormPlacement placement, Gelu gelu) const {
    models::ParameterLayout layout;
    const at::Tensor x = Values("x");
    const models::NormedResidual residual(layout, "feed_forward", placement, x.size(-1));
    models::ParameterArena arena(layout, 1, dtype_, at::kCPU);
    for (const auto& slot : layout.slots()) {
      const char* gain = slot.name == "feed_forward.norm.scale" ? "gain_pre" : "gain_post";
      arena.parameters()[0].narrow(0, slot.offset, slot.size).copy_(Values(gain));
    }
    const models::GatedFeedForwardParameters parameters = {
        .inputs = at::cat({Values("W_gate"), Values("W_value")}, -1).unsqueeze(0),
        .output = Values("W_out").unsqueeze(0)};
    return residual(
               arena.Members(0, 1), x.unsqueeze(0).unsqueeze(0),
               [&](const at::Tensor& n) { return GatedFeedForward(n, parameters, gelu); }, nullptr)
        .detach();
  }

  // Reads a matrix or a vector from the file.
  at::Tensor Values(const char* name) const {
    const json& rows = golden_.at(name);
    const at::Tensor flat = Float64Values(rows).to(dtype_);
    return rows[0].is_array() ? flat.view({static_cast<int64_t>(rows.size()), -1}) : flat;
  }

 private:
  const json& golden_;
  at::ScalarType dtype_;
};

TEST(CausalDecoderPiecesTest, NormsAndFeedForwardMatchTheFormulas) {
  const json golden = ReadGolden("norm_ffn_schedule.json");
  if (golden.is_null()) GTEST_SKIP() << "no norm_ffn_schedule.json";
  for (const at::ScalarType dtype : kTypes) {
    const SubLayer layer(golden, dtype);
    ExpectClose(models::RmsNorm(layer.Values("x").unsqueeze(0).unsqueeze(0),
                                layer.Values("gain_pre").unsqueeze(0)),
                golden.at("rmsnorm"));
    ExpectClose(layer.Apply(NormPlacement::kSandwich, Gelu::kExact),
                golden.at("ffn_block_gelu_erf"));
    ExpectClose(layer.Apply(NormPlacement::kSandwich, Gelu::kTanh),
                golden.at("ffn_block_gelu_tanh"));
    ExpectClose(layer.Apply(NormPlacement::kResidualPost, Gelu::kExact),
                golden.at("ffn_block_residual_post_norm_gelu_erf"));
    ExpectClose(layer.Apply(models::BlockNormsOf("primer").feed_forward, Gelu::kExact),
                golden.at("ffn_block_primer_literal_gelu_erf"));
  }
}

TEST(CausalDecoderSizesTest, MatchThePaper) {
  const json golden = ReadGolden("param_counts.json");
  if (golden.is_null()) GTEST_SKIP() << "no param_counts.json";
  const std::map<std::string, int64_t> in_blocks = {
      {"2M", 2'097'152}, {"5M", 4'194'304}, {"25M", 25'165'824}, {"268M", 268'435'456}};
  for (const auto& [size, expected] : in_blocks) {
    const json& reference = golden.at("addition").at(size);
    EXPECT_EQ(reference.at("attention_and_geglu_no_bias").get<int64_t>(), expected);
    catalogue::Parameters given;
    given.Set("blocks", reference.at("layers").get<int64_t>());
    given.Set("d_ff", reference.at("d_ff").get<int64_t>());
    for (const char* name : {"d_model", "heads"})
      given.Set(name, reference.at(name).get<int64_t>());
    models::ParameterLayout layout;
    const auto model = models::CreateLanguageModel(
        "causal_decoder", catalogue::Resolved(models::NetworkEntries(), "causal_decoder", given),
        "none", catalogue::Resolved(models::EncodingEntries(), "none", {}),
        {.input_columns = 116, .output_columns = 116, .longest_sequence = 2048}, layout);
    ASSERT_TRUE(model.ok()) << model.status();
    int64_t gains = 0, blocks = 0, rest = 0;
    for (const auto& slot : layout.slots()) {
      int64_t& kind = slot.shape.size() == 1             ? gains
                      : slot.name.starts_with("blocks.") ? blocks
                                                         : rest;
      kind += slot.size;
    }
    EXPECT_EQ(blocks, expected) << size;
    EXPECT_EQ(gains, reference.at("plus_sandwich_rmsnorm_gains").get<int64_t>()) << size;
    EXPECT_EQ(rest, 2 * 116 * reference.at("d_model").get<int64_t>()) << size;
  }
}

}  // namespace
}  // namespace lengthwise::golden
