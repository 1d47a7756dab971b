// Checks which inputs the outputs of regression networks depend on.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/allclose.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/diag.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"

namespace lengthwise::models {
namespace {

using catalogue::Resolved;

constexpr int64_t kNumbers = 5;

struct Architecture {
  std::string name;
  std::string network = "positional_attention";
  std::vector<std::pair<std::string, catalogue::ParameterValue>> parameters = {};
  std::string encoding = "one_hot";
};

class Model {
 public:
  explicit Model(const Architecture& architecture, int64_t pack_size = 1,
                 at::ScalarType type = at::kDouble) {
    catalogue::Parameters given;
    for (const auto& [name, value] : architecture.parameters) given.Set(name, value);
    given.Set("blocks", int64_t{2});
    given.Set("d_model", int64_t{8});
    auto network = CreateNetwork(
        architecture.network, Resolved(NetworkEntries(), architecture.network, given),
        architecture.encoding, Resolved(EncodingEntries(), architecture.encoding, {}),
        {.output_columns = 1, .has_numbers = true, .longest_sequence = kNumbers}, layout_);
    EXPECT_TRUE(network.ok()) << network.status();
    network_ = *std::move(network);
    arena_ = std::make_unique<ParameterArena>(layout_, pack_size, type, at::kCPU);
    for (int64_t p = 0; p < pack_size; ++p) arena_->Initialize(p, static_cast<uint64_t>(p + 3));
  }

  // Copies all parameters from `other`. If its input has no positions, the extra rows of the
  // embedding become 0.
  void CopyFrom(Model& other) {
    for (const auto& slot : layout_.slots()) {
      for (const auto& theirs : other.layout_.slots()) {
        if (slot.name != theirs.name) continue;
        at::Tensor values = arena_->parameters()[0].narrow(0, slot.offset, slot.size);
        values.zero_();
        values.narrow(0, 0, theirs.size)
            .copy_(other.arena_->parameters()[0].narrow(0, theirs.offset, theirs.size));
      }
    }
  }

  // The first member's parameter of this name, [rows, columns].
  at::Tensor Parameter(const std::string& name, int64_t rows, int64_t columns) const {
    for (const auto& slot : layout_.slots()) {
      if (slot.name != name) continue;
      return arena_->parameters()[0].narrow(0, slot.offset, slot.size).view({rows, columns});
    }
    ADD_FAILURE() << "no parameter " << name;
    return at::zeros({rows, columns}, at::kDouble);
  }

  // `numbers` [P, B, n]
  at::Tensor operator()(const at::Tensor& numbers, int64_t first = 0, Capture* capture = nullptr) {
    const int64_t members = numbers.size(0), n = numbers.size(2);
    return network_->Forward(arena_->Members(first, members), {.numbers = numbers},
                             at::arange(n, at::kLong).expand({members, 1, n}), n, nullptr, capture);
  }

  void UseBfloat16Products() { network_ = WithBfloat16Products(std::move(network_)); }

  ParameterArena& arena() { return *arena_; }

 private:
  ParameterLayout layout_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<ParameterArena> arena_;
};

at::Tensor Numbers(std::vector<double> values) {
  return at::tensor(values).view({1, 1, static_cast<int64_t>(values.size())});
}

const at::Tensor& Example() {
  static const auto& example = *new at::Tensor(Numbers({0.5, -1.25, 2.0, 0.75, 0.0}));
  return example;
}

std::vector<Architecture> Architectures() {
  const std::string by = "attention_by";
  const std::string input = "input";
  return {{"positional"},
          {"standard", "positional_attention", {{by, input}, {"input_positions", true}}},
          {"standard_rotary_tokens",
           "positional_attention",
           {{by, input}, {"input_positions", true}, {"rotary", std::string("tokens")}}},
          {"standard_rotary_heads",
           "positional_attention",
           {{by, input}, {"input_positions", true}, {"rotary", std::string("heads")}}},
          {"diagonal", "positional_attention", {{by, input}, {"diagonal_input", true}}, "none"},
          {"misaligned", "positional_attention", {{"input_positions", true}}},
          {"hybrid", "positional_attention", {{by, std::string("both")}}},
          {"no_positions", "positional_attention", {{by, input}}, "none"},
          {"rope", "positional_attention", {{by, input}}, "rope"},
          {"relative", "positional_attention", {{by, input}}, "relative"},
          {"learned", "positional_attention", {{by, input}}, "learned"},
          {"binary", "positional_attention", {}, "binary"},
          {"gcn_complete", "graph_network"},
          {"gcn_star", "graph_network", {{"graph", std::string("star")}}},
          {"gcn_complete_apart", "graph_network", {{"self_connections", false}}},
          {"gcn_star_apart",
           "graph_network",
           {{"graph", std::string("star")}, {"self_connections", false}}},
          {"gat_complete", "graph_network", {{"architecture", std::string("attention")}}},
          {"gat_star",
           "graph_network",
           {{"architecture", std::string("attention")}, {"graph", std::string("star")}}}};
}

class ArchitectureTest : public ::testing::TestWithParam<Architecture> {};

TEST_P(ArchitectureTest, BatchedPackMatchesItsMembers) {
  Model pack(GetParam(), 3);
  const at::Tensor numbers = at::stack({Example()[0], Example()[0].mul(2), Example()[0].neg()});
  const at::Tensor together = pack(numbers);
  together.square().sum().backward();
  const at::Tensor gradients = pack.arena().gradients().clone();
  pack.arena().gradients().zero_();
  for (int64_t p = 0; p < 3; ++p) {
    const at::Tensor alone = pack(numbers.narrow(0, p, 1), p);
    EXPECT_LT(together[p].sub(alone[0]).abs().max().item<double>(), 1e-12);
    alone.square().sum().backward();
  }
  EXPECT_LT(pack.arena().gradients().sub(gradients).abs().max().item<double>(), 1e-10);
}

TEST_P(ArchitectureTest, EveryParameterLearns) {
  Model model(GetParam());
  model(Example()).square().sum().backward();
  for (const auto& slot : model.arena().layout().slots()) {
    // Softmax cancels terms that are equal for all keys of a query, so that the gradients of these
    // parameters may vanish.
    if (slot.name.find("key_bias") != std::string::npos) continue;
    if (slot.name.find("content_bias") != std::string::npos) continue;
    if (slot.name.find(".source") != std::string::npos) continue;
    EXPECT_GT(
        model.arena().gradients()[0].narrow(0, slot.offset, slot.size).abs().max().item<double>(),
        0)
        << slot.name;
  }
}

// bfloat16 has eight significant bits; float32 would err by less than 1e-6.
TEST_P(ArchitectureTest, Bfloat16RoundsProducts) {
  Model exact(GetParam(), 1, at::kFloat), rounded(GetParam(), 1, at::kFloat);
  rounded.UseBfloat16Products();
  const at::Tensor numbers = Example().to(at::kFloat).div(3);
  const at::Tensor expected = exact(numbers), outputs = rounded(numbers);
  EXPECT_EQ(outputs.scalar_type(), at::kFloat);
  const double error = outputs.sub(expected).abs().max().div(expected.abs().max()).item<double>();
  EXPECT_GT(error, 1e-5);
  EXPECT_LT(error, 0.05);
  outputs.square().sum().backward();
  expected.square().sum().backward();
  const at::Tensor& gradients = exact.arena().gradients();
  EXPECT_LT(rounded.arena().gradients().sub(gradients).norm().div(gradients.norm()).item<double>(),
            0.1);
}

TEST_P(ArchitectureTest, AcceptsShorterSequences) {
  Model model(GetParam());
  EXPECT_EQ(model(Example().narrow(2, 0, 3)).sizes(), (std::vector<int64_t>{1, 1, 3, 1}));
}

INSTANTIATE_TEST_SUITE_P(Networks, ArchitectureTest, ::testing::ValuesIn(Architectures()),
                         [](const auto& test) { return test.param.name; });

// The paper's point: attention weights at any scale are those of training.
TEST(PositionalAttentionTest, WeightsIgnoreTheNumbers) {
  const auto weights = [](const Architecture& architecture, const at::Tensor& numbers) {
    Capture capture;
    (void)Model(architecture)(numbers, 0, &capture);
    return at::stack(capture.attention_probabilities);
  };
  const Architecture positional = Architectures()[0], standard = Architectures()[1];
  EXPECT_TRUE(at::equal(weights(positional, Example()), weights(positional, Example().mul(9))));
  EXPECT_FALSE(at::equal(weights(standard, Example()), weights(standard, Example().mul(9))));
}

// On a complete graph, a convolution averages all nodes, so that the first round loses their order.
TEST(PositionalAttentionTest, OrderIsLostWithoutPositions) {
  for (const Architecture& architecture : Architectures()) {
    Model model(architecture);
    const at::Tensor output = model(Example()).flatten();
    const at::Tensor turned = model(Example().flip(2)).flatten().flip(0);
    EXPECT_EQ(output.sub(turned).abs().max().item<double>() < 1e-12,
              architecture.name == "no_positions" || architecture.name == "gcn_complete")
        << architecture.name;
  }
}

// Connected to the scratchpad alone, all other nodes of a star give the same answer, as those of a
// complete graph do.
TEST(GraphNetworkTest, StarNodesWithoutSelfConnectionsAreAlike) {
  for (const std::string architecture : {"convolution", "attention"}) {
    Model model({"apart",
                 "graph_network",
                 {{"architecture", architecture},
                  {"graph", std::string("star")},
                  {"self_connections", false}}});
    const at::Tensor output = model(Example()).flatten();
    EXPECT_LT(output.narrow(0, 0, 4).sub(output[0]).abs().max().item<double>(), 1e-12)
        << architecture;
    EXPECT_GT(output[4].sub(output[0]).abs().item<double>(), 1e-6) << architecture;
  }
}

// After one round on a star, only the scratchpad has heard from all nodes.
TEST(GraphNetworkTest, StarNodesHearOnlyTheScratchpad) {
  for (Architecture architecture : Architectures()) {
    if (architecture.name != "gcn_star" && architecture.name != "gat_star") continue;
    Capture first, second;
    at::Tensor other = Example().clone();
    other[0][0][1] = 7;
    Model model(architecture);
    (void)model(Example(), 0, &first);
    (void)model(other, 0, &second);
    const at::Tensor changed =
        first.depths.at(1).sub(second.depths.at(1)).abs().sum(3).flatten().gt(0);
    EXPECT_TRUE(at::equal(changed, at::tensor(std::vector<int64_t>{0, 1, 0, 0, 1}).to(at::kBool)))
        << architecture.name;
  }
}

// relu(D^-1/2 (A + I) D^-1/2 h W + b) with the whole matrix. Degrees count a node itself: 5 for all
// nodes of the complete graph; 5 for the star's scratchpad, and 2 for its other nodes. Without
// self-connections, degrees are 4, and 4 and 1.
TEST(GraphNetworkTest, ConvolutionMatchesItsMatrix) {
  const auto star = [](double token, double last, double spoke) {
    at::Tensor matrix = at::diag(Numbers({token, token, token, token, last}).flatten());
    matrix.select(1, 4).narrow(0, 0, 4).fill_(spoke);
    matrix.select(0, 4).narrow(0, 0, 4).fill_(spoke);
    return matrix;
  };
  const std::map<std::string, at::Tensor> matrices = {
      {"gcn_complete", at::full({5, 5}, 0.2, at::kDouble)},
      {"gcn_star", star(0.5, 0.2, 1 / std::sqrt(10.0))},
      {"gcn_complete_apart", at::full({5, 5}, 0.25, at::kDouble).fill_diagonal_(0)},
      {"gcn_star_apart", star(0, 0, 0.5)}};
  for (const Architecture& architecture : Architectures()) {
    const auto found = matrices.find(architecture.name);
    if (found == matrices.end()) continue;
    const at::Tensor& matrix = found->second;
    Model model(architecture);
    model.arena().parameters().add_(0.1);  // Biases start as zero.
    Capture capture{.keep_attention = true};
    (void)model(Example(), 0, &capture);
    ASSERT_EQ(capture.depths.size(), 3u);
    for (size_t block = 0; block < 2; ++block) {
      const std::string prefix = "blocks." + std::to_string(block) + ".";
      const at::Tensor h = capture.depths[block][0][0];
      const at::Tensor expected = matrix.matmul(h)
                                      .matmul(model.Parameter(prefix + "weight", 8, 8))
                                      .add(model.Parameter(prefix + "bias", 1, 8))
                                      .relu();
      EXPECT_TRUE(at::allclose(capture.depths[block + 1][0][0], expected, 1e-12, 1e-12))
          << architecture.name << " " << block;
      const at::Tensor kept = capture.attention_probabilities[block][0][0];
      EXPECT_TRUE(at::allclose(kept, matrix.expand_as(kept), 1e-12, 1e-12)) << architecture.name;
    }
  }
}

const Architecture& Named(const std::string& name) {
  static const auto& architectures = *new std::vector<Architecture>(Architectures());
  return *std::find_if(architectures.begin(), architectures.end(),
                       [&](const Architecture& architecture) { return architecture.name == name; });
}

double Difference(const at::Tensor& first, const at::Tensor& second) {
  return first.sub(second).abs().max().item<double>();
}

// Nothing reads the positions in the input, so that RoPE over tokens is the only encoding.
TEST(PositionalAttentionTest, RotaryOverTokensMatchesRope) {
  Model rope(Named("rope")), rotary(Named("standard_rotary_tokens")), plain(Named("standard"));
  rotary.CopyFrom(rope);
  EXPECT_LT(Difference(rotary(Example()), rope(Example())), 1e-12);
  plain.CopyFrom(rope);
  EXPECT_GT(Difference(plain(Example()), rope(Example())), 1e-6);
}

// In the released code of Figure 9, too, queries only meet keys of their own head.
TEST(PositionalAttentionTest, RotaryOverHeadsChangesNothing) {
  Model plain(Named("standard")), heads(Named("standard_rotary_heads")),
      tokens(Named("standard_rotary_tokens"));
  const at::Tensor expected = plain(Example());
  EXPECT_LT(Difference(heads(Example()), expected), 1e-12);
  EXPECT_GT(Difference(tokens(Example()), expected), 1e-6);
}

std::string Refusal(const std::string& network, const std::string& encoding) {
  ParameterLayout layout;
  const auto created = CreateNetwork(
      network, Resolved(NetworkEntries(), network, {}), encoding,
      Resolved(EncodingEntries(), encoding, {}),
      {.input_columns = 2, .output_columns = 1, .longest_sequence = kNumbers}, layout);
  EXPECT_EQ(created.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(created.status().message());
}

TEST(PositionalAttentionTest, RefusesUnusableEncodingsAndNamesOthers) {
  EXPECT_NE(Refusal("positional_attention", "rope").find("use one of sin_cos"), std::string::npos);
  EXPECT_NE(Refusal("positional_attention", "none").find("one_hot, binary"), std::string::npos);
  EXPECT_NE(Refusal("encoder", "one_hot").find("rope"), std::string::npos);
}

}  // namespace
}  // namespace lengthwise::models
