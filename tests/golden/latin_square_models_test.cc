// The network for Latin squares agrees with its authors' code, which was run on three puzzles with
// every encoding.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr double kModelTolerance = 1e-6;
constexpr int64_t kCells = 16;

// Maps an encoding of the authors' code to this implementation. Their code also changes the network
// with the encoding.
struct Counterpart {
  std::string encoding;
  Given parameters;
  Given network;
};

const std::map<std::string, Counterpart>& Counterparts() {
  const Given bare = {{"attention_biases", std::string("none")}};
  static const auto& counterparts = *new std::map<std::string, Counterpart>{
      {"nope", {"none", {}, {}}},
      {"learn", {"learned", {{"max_position", kCells}}, {}}},
      {"rnd2", {"learned", {{"max_position", kCells}, {"trained", false}}, {}}},
      {"absolute", {"sin_cos", {{"interleaved", true}}, {}}},
      {"absolute2d", {"sin_cos_2d", {}, {}}},
      {"relative",
       {"shaw",
        {{"max_distance", kCells - 1}, {"causal", true}},
        {{"attention_biases", std::string("inputs")}, {"output_projection", false}}}},
      {"rope2", {"rope", {}, bare}},
      {"cnope",
       {"none",
        {{"causal", true}},
        {{"attention_biases", std::string("none")}, {"temperature", 0.01}}}},
  };
  return counterparts;
}

std::unique_ptr<models::Network> Create(const Counterpart& counterpart, int64_t d_model,
                                        int64_t blocks, models::ParameterLayout& layout) {
  Given network = counterpart.network;
  network["d_model"] = d_model;
  network["blocks"] = blocks;
  auto created = models::CreateNetwork(
      "layerwise_encoder", Resolve(models::NetworkEntries(), "layerwise_encoder", network),
      counterpart.encoding,
      Resolve(models::EncodingEntries(), counterpart.encoding, counterpart.parameters),
      {.input_columns = 6, .output_columns = 4, .has_blank = true}, layout);
  EXPECT_TRUE(created.ok()) << created.status();
  return created.ok() ? *std::move(created) : nullptr;
}

// A matrix of the file, transposed from [out, in] to this implementation's [in, out].
at::Tensor Matrix(const json& rows) {
  return Float64Values(rows).view({static_cast<int64_t>(rows.size()), -1}).t().contiguous();
}

// The values of one of this implementation's parameters. Empty if the file has none.
std::optional<at::Tensor> Values(const std::string& slot, const json& state) {
  const std::string theirs =
      absl::StrReplaceAll(slot, {{"attention.norm.scale", "layernorm0.weight"},
                                 {"attention.norm.offset", "layernorm0.bias"},
                                 {"feed_forward.norm.scale", "layernorm1.weight"},
                                 {"feed_forward.norm.offset", "layernorm1.bias"},
                                 {"feed_forward.up_bias", "mlp.0.bias"},
                                 {"feed_forward.down_bias", "mlp.2.bias"},
                                 {"attention.inputs_bias", "selfattention.in_proj_bias"},
                                 {"attention.output_bias", "selfattention.out_proj.bias"},
                                 {"embedding_bias", "w_embed.bias"},
                                 {"output_bias", "w_out.0.bias"}});
  if (state.contains(theirs)) return Float64Values(state.at(theirs));

  const std::string block = slot.substr(0, slot.find('.', slot.find('.') + 1) + 1);
  const std::string attention = block + "selfattention.";
  std::vector<std::string> matrices;
  if (slot == "embedding") matrices = {"w_embed.weight"};
  if (slot == "output") matrices = {"w_out.0.weight"};
  if (absl::EndsWith(slot, "feed_forward.up")) matrices = {block + "mlp.0.weight"};
  if (absl::EndsWith(slot, "feed_forward.down")) matrices = {block + "mlp.2.weight"};
  if (absl::EndsWith(slot, "attention.inputs")) {
    matrices = {attention + "in_proj_weight", attention + "c_attn.weight"};
  }
  if (absl::EndsWith(slot, "attention.output")) {
    matrices = {attention + "out_proj.weight", attention + "c_proj.weight"};
  }
  for (const std::string& name : matrices) {
    if (state.contains(name)) return Matrix(state.at(name));
  }
  // Queries, keys and values are separate here.
  std::vector<at::Tensor> parts;
  for (const std::string part : {"query", "key", "value"}) {
    if (!state.contains(attention + part + ".weight")) break;
    parts.push_back(absl::EndsWith(slot, "_bias")
                        ? Float64Values(state.at(attention + part + ".bias"))
                        : Matrix(state.at(attention + part + ".weight")));
  }
  if (parts.size() == 3 && absl::StrContains(slot, "attention.inputs")) return at::cat(parts, -1);
  if (absl::EndsWith(slot, "encoding.table")) {
    if (state.contains(block + "pe.positional_encoding")) {
      return Float64Values(state.at(block + "pe.positional_encoding"));
    }
    // Er[15 - (i - j)]: the vectors of distances -15 to 0. Causal attention reads no others.
    const at::Tensor behind = Float64Values(state.at(attention + "Er")).view({kCells, -1});
    return at::cat({behind, at::zeros({kCells - 1, behind.size(1)}, behind.options())});
  }
  return std::nullopt;
}

std::unique_ptr<models::ParameterArena> Arena(const models::ParameterLayout& layout,
                                              const json& state) {
  auto arena = std::make_unique<models::ParameterArena>(layout, 1, at::kDouble, at::kCPU);
  for (const auto& slot : layout.slots()) {
    const std::optional<at::Tensor> values = Values(slot.name, state);
    EXPECT_TRUE(values.has_value()) << slot.name;
    if (!values.has_value()) continue;
    EXPECT_EQ(values->numel(), slot.size) << slot.name;
    arena->parameters().select(0, 0).narrow(0, slot.offset, slot.size).copy_(values->flatten());
  }
  return arena;
}

// int64 [1, puzzles, 16]
at::Tensor Tokens(const json& puzzles) {
  at::Tensor tokens = at::zeros({1, static_cast<int64_t>(puzzles.size()), kCells}, at::kLong);
  for (size_t p = 0; p < puzzles.size(); ++p) {
    const std::string puzzle = puzzles.at(p);
    for (size_t cell = 0; cell < puzzle.size(); ++cell) {
      tokens[0][static_cast<int64_t>(p)][static_cast<int64_t>(cell)] = puzzle[cell] - '0';
    }
  }
  return tokens;
}

TEST(LatinSquareModelsTest, EveryEncodingMatchesTheAuthors) {
  const json golden = ReadGolden("lst_tiny_models.json");
  if (golden.is_null()) GTEST_SKIP() << "no lst_tiny_models.json";
  size_t cases = 0;
  for (const json& reference : golden.at("cases")) {
    const std::string name = reference.at("pe");
    SCOPED_TRACE(name);
    const auto counterpart = Counterparts().find(name);
    ASSERT_NE(counterpart, Counterparts().end()) << "no counterpart";
    models::ParameterLayout layout;
    const auto network = Create(counterpart->second, golden.at("d"), golden.at("blocks"), layout);
    ASSERT_NE(network, nullptr);
    const auto arena = Arena(layout, reference.at("state_dict"));
    const at::Tensor positions = at::arange(kCells, at::kLong).view({1, 1, kCells});
    // Keeping the maps uses plain operators; without them, the fused kernels of training run.
    for (const bool keep_attention : {true, false}) {
      models::Capture capture{.keep_attention = keep_attention};
      const at::Tensor logits = network->Forward(
          arena->Members(0, 1), {.tokens = Tokens(golden.at("puzzles"))}, positions,
          /*output_length=*/1, /*dropout=*/nullptr, &capture);
      EXPECT_LE(LargestDifference(at::log_softmax(logits, -1), reference.at("log_probs")),
                kModelTolerance);
      const json& last_tokens = reference.at("block_outputs_last_token");
      for (size_t block = 0; block < last_tokens.size(); ++block) {
        EXPECT_LE(LargestDifference(capture.depths.at(block + 1).select(2, kCells - 1),
                                    last_tokens.at(block)),
                  kModelTolerance)
            << "block " << block;
      }
    }
    ++cases;
  }
  EXPECT_GT(cases, 0U);
}

TEST(LatinSquareModelsTest, HasTheAuthorsParameterCount) {
  const json golden = ReadGolden("param_counts.json");
  if (golden.is_null()) GTEST_SKIP() << "no param_counts.json";
  for (const auto& [name, counterpart] : Counterparts()) {
    models::ParameterLayout layout;
    ASSERT_NE(Create(counterpart, 160, 4, layout), nullptr);
    // The authors' relative encoding has no vectors for keys after the query, which causal
    // attention masks.
    const int64_t unseen = counterpart.encoding == "shaw" ? 4 * (kCells - 1) * 160 : 0;
    EXPECT_EQ(layout.parameter_count() - unseen, golden.at("lst").at(name).at("all").get<int64_t>())
        << name;
  }
}

}  // namespace
}  // namespace lengthwise::golden
