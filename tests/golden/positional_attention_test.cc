// The positional-attention network agrees with its authors' code, which was run on small networks,
// and its encodings with the paper's.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/encoding.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/networks/positional_block.h"
#include "tests/golden/agreement.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

// The authors' code stacks queries and keys head by head: q of head 0, k of head 0, q of head 1 ...
// `part` is 0 for queries and 1 for keys.
at::Tensor QueriesOrKeys(const at::Tensor& stacked, int64_t heads, int64_t part) {
  return stacked.unflatten(0, {heads, 2, stacked.size(0) / (2 * heads)})
      .select(1, part)
      .flatten(0, 1);
}

// The values of one of this implementation's parameters in the authors' state dictionary, with
// matrices as [in, out].
at::Tensor Values(const std::string& slot, const json& state, int64_t heads) {
  const bool is_bias = absl::EndsWith(slot, "_bias");
  const std::string layer = is_bias ? slot.substr(0, slot.size() - 5) : slot;
  const std::string theirs = absl::StrReplaceAll(layer, {{"embedding", "encoding"},
                                                         {"blocks", "transformer_layers"},
                                                         {"attention.query", "attn.qk_proj"},
                                                         {"attention.key", "attn.qk_proj"},
                                                         {"attention.value", "attn.v_proj"},
                                                         {"attention.output", "attn.o_proj"},
                                                         {"feed_forward.up", "mlp.mlp.0"},
                                                         {"feed_forward.down", "mlp.mlp.2"}});
  const std::string name =
      absl::StrCat(theirs == "output" ? "decoding" : theirs, is_bias ? ".bias" : ".weight");
  EXPECT_TRUE(state.contains(name)) << slot << " as " << name;
  if (!state.contains(name)) return {};
  const json& values = state.at(name);
  at::Tensor tensor = Float64Values(values).view({static_cast<int64_t>(values.size()), -1});
  if (absl::EndsWith(layer, "query")) tensor = QueriesOrKeys(tensor, heads, 0);
  if (absl::EndsWith(layer, "key")) tensor = QueriesOrKeys(tensor, heads, 1);
  return tensor.t().contiguous();
}

Given NetworkOf(const std::string& kind) {
  return kind == "standard"
             ? Given{{"attention_by", std::string("input")}, {"input_positions", true}}
             : Given{};
}

TEST(PositionalAttentionTest, TinyNetworksMatchTheAuthors) {
  const json golden = ReadGolden("positional_tiny_models.json");
  if (golden.is_null()) GTEST_SKIP() << "no positional_tiny_models.json";
  size_t examples = 0;
  for (const json& reference : golden.at("cases")) {
    const std::string kind = reference.at("kind");
    const int64_t n = reference.at("n"), heads = reference.at("heads");
    SCOPED_TRACE(absl::StrCat(kind, " ", n));
    Given given = NetworkOf(kind);
    given["blocks"] = reference.at("layers").get<int64_t>();
    given["heads"] = heads;
    given["d_model"] = reference.at("embed").get<int64_t>();
    given["d_ff"] = reference.at("hidden").get<int64_t>();
    models::ParameterLayout layout;
    const auto network = models::CreateNetwork(
        "positional_attention", Resolve(models::NetworkEntries(), "positional_attention", given),
        "one_hot", Resolve(models::EncodingEntries(), "one_hot", {}),
        {.output_columns = 1, .has_numbers = true, .longest_sequence = n + 1}, layout);
    ASSERT_TRUE(network.ok()) << network.status();
    models::ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
    for (const auto& slot : layout.slots()) {
      const at::Tensor values = Values(slot.name, reference.at("state_dict"), heads);
      ASSERT_EQ(values.numel(), slot.size) << slot.name;
      arena.parameters().select(0, 0).narrow(0, slot.offset, slot.size).copy_(values.flatten());
    }
    for (const json& example : reference.at("examples")) {
      const json& x = example.at("x");
      const at::Tensor numbers = Float64Values(x).view({1, static_cast<int64_t>(x.size()), -1});
      const int64_t tokens = numbers.size(2);
      const at::Tensor outputs =
          (*network)->Forward(arena.Members(0, 1), {.numbers = numbers},
                              at::arange(tokens, at::kLong).view({1, 1, tokens}), tokens,
                              /*dropout=*/nullptr, /*capture=*/nullptr);
      EXPECT_LE(LargestDifference(outputs, example.at("output")), 1e-6);
      ++examples;
    }
  }
  EXPECT_GT(examples, 0U);
}

// Only the block. The file has its matrices as [in, out], with separate heads.
TEST(PositionalAttentionTest, LayerMatchesTheFormula) {
  const json golden = ReadGolden("positional_attention.json");
  if (golden.is_null()) GTEST_SKIP() << "no positional_attention.json";
  // Concatenates the heads' columns in order.
  const auto columns = [](const json& heads, int64_t rows) {
    std::vector<at::Tensor> parts;
    for (const json& head : heads) parts.push_back(Float64Values(head).view({rows, -1}));
    return at::cat(parts, 1);
  };
  for (const json& reference : golden.at("cases")) {
    const int64_t tokens =
        reference.at("n").get<int64_t>() + reference.at("scratchpad").get<int64_t>();
    const int64_t d = reference.at("d_X"), heads = reference.at("heads");
    SCOPED_TRACE(
        absl::StrCat(tokens, " tokens, logits times ", reference.at("logit_scale").get<double>()));
    const std::map<std::string, at::Tensor> values = {
        {"attention.query", columns(reference.at("W_Q"), tokens)},
        {"attention.query_bias", columns(reference.at("b_Q"), 1)},
        {"attention.key", columns(reference.at("W_K"), tokens)},
        {"attention.key_bias", columns(reference.at("b_K"), 1)},
        {"attention.value", columns(reference.at("W_V"), d)},
        {"attention.value_bias", columns(reference.at("b_V"), 1)},
        {"attention.output", Float64Values(reference.at("W_O"))},
        {"attention.output_bias", Float64Values(reference.at("b_O"))},
        {"feed_forward.up", Float64Values(reference.at("mlp_W1"))},
        {"feed_forward.up_bias", Float64Values(reference.at("mlp_b1"))},
        {"feed_forward.down", Float64Values(reference.at("mlp_W2"))},
        {"feed_forward.down_bias", Float64Values(reference.at("mlp_b2"))}};
    const at::Tensor x = Float64Values(reference.at("X")).view({1, 1, tokens, d});
    for (const auto& [attention_first, dtype] : std::vector<std::pair<bool, at::ScalarType>>{
             {false, at::kDouble}, {true, at::kDouble}, {false, at::kFloat}, {true, at::kFloat}}) {
      models::ParameterLayout layout;
      const auto encoding = models::CreateEncoding(
          "one_hot", Resolve(models::EncodingEntries(), "one_hot", {}),
          {.blocks = 1, .heads = heads, .d_model = d, .longest_sequence = tokens}, layout);
      ASSERT_TRUE(encoding.ok());
      const models::PositionalBlock block(
          Resolve(models::NetworkEntries(), "positional_attention",
                  {{"heads", heads},
                   {"d_model", d},
                   {"d_ff", reference.at("hidden").get<int64_t>()},
                   {"scaled", reference.at("logit_scale").get<double>() != 1},
                   {"attention_first", attention_first}}),
          "", (*encoding)->vector_size(), layout);
      models::ParameterArena arena(layout, 1, dtype, at::kCPU);
      for (const auto& slot : layout.slots()) {
        const at::Tensor& value = values.at(slot.name);
        ASSERT_EQ(value.numel(), slot.size) << slot.name;
        arena.parameters().select(0, 0).narrow(0, slot.offset, slot.size).copy_(value.flatten());
      }
      const models::ParameterSet parameters = arena.Members(0, 1);
      const at::Tensor positions = at::arange(tokens, at::kLong).view({1, tokens});
      models::Capture capture;
      const at::Tensor output = block(parameters,
                                      {.encoding = **encoding,
                                       .positions = positions,
                                       .vectors = (*encoding)->Vectors(parameters, positions)},
                                      x.to(dtype), &capture);
      ExpectAgreement(capture.attention_probabilities.at(0), reference.at("weights"), dtype);
      ExpectAgreement(
          output, reference.at(attention_first ? "layer_output_concat_eq1_order" : "layer_output"),
          dtype);
    }
  }
}

at::Tensor Vectors(const std::string& name, const Given& given, int64_t longest_sequence,
                   int64_t tokens, at::ScalarType dtype) {
  models::ParameterLayout layout;
  const auto encoding = models::CreateEncoding(
      name, Resolve(models::EncodingEntries(), name, given),
      {.blocks = 1, .heads = 1, .d_model = 64, .longest_sequence = longest_sequence}, layout);
  EXPECT_TRUE(encoding.ok());
  layout.Add("any", {1}, {});  // carries the type
  models::ParameterArena arena(layout, 1, dtype, at::kCPU);
  return (*encoding)->Vectors(arena.Members(0, 1), at::arange(tokens, at::kLong).view({1, tokens}));
}

TEST(PositionalAttentionTest, PositionVectorsMatchThePaper) {
  const json golden = ReadGolden("paper3_positional_encodings.json");
  if (golden.is_null()) GTEST_SKIP() << "no paper3_positional_encodings.json";
  for (const at::ScalarType dtype : kFormulaTypes) {
    for (const auto& [rows, expected] : golden.at("binary").items()) {
      const int64_t n = std::stoll(rows);
      EXPECT_EQ(LargestDifference(Vectors("binary", {}, n, n, dtype), expected), 0) << n;
    }
    for (const auto& [numbers, expected] : golden.at("sinusoidal").items()) {
      SCOPED_TRACE(numbers);
      const int64_t n = std::stoll(numbers);
      ExpectAgreement(Vectors("sin_cos", {{"interleaved", true}}, n + 1, n, dtype), expected,
                      dtype);
    }
    // Shorter inputs use the first rows and, for the scratchpad, the last.
    for (const auto& [numbers, expected] : golden.at("variable_length_rows").items()) {
      const int64_t tokens = std::stoll(numbers) + 1;
      const at::Tensor columns = Vectors("one_hot", {}, 9, tokens, dtype).argmax(-1);
      EXPECT_EQ(LargestDifference(columns, expected), 0) << numbers;
    }
  }
}

TEST(PositionalAttentionTest, HasTheAuthorsParameterCount) {
  const json golden = ReadGolden("param_counts.json");
  if (golden.is_null()) GTEST_SKIP() << "no param_counts.json";
  for (const auto& [numbers, counts] : golden.at("positional_attention").items()) {
    for (const std::string kind : {"positional", "standard"}) {
      Given given = NetworkOf(kind);
      given["blocks"] = counts.at("layers").get<int64_t>();
      models::ParameterLayout layout;
      ASSERT_TRUE(
          models::CreateNetwork("positional_attention",
                                Resolve(models::NetworkEntries(), "positional_attention", given),
                                "one_hot", Resolve(models::EncodingEntries(), "one_hot", {}),
                                {.output_columns = 1,
                                 .has_numbers = true,
                                 .longest_sequence = std::stoll(numbers) + 1},
                                layout)
              .ok());
      EXPECT_EQ(layout.parameter_count(), counts.at(kind).get<int64_t>()) << kind << " " << numbers;
    }
  }
}

}  // namespace
}  // namespace lengthwise::golden
