#include "models/networks/network.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cross_entropy_loss.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "c10/core/Allocator.h"
#include "c10/core/GradMode.h"
#include "c10/util/ThreadLocalDebugInfo.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/positions.h"
#include "models/encodings/testing/test_formula.h"
#include "models/networks/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

using catalogue::Resolved;

constexpr int64_t kSequences = 4;
constexpr int64_t kTokens = 9;
constexpr int64_t kOutputs = 3;

catalogue::Parameters Small(const std::string& network, const catalogue::Parameters& given = {}) {
  return catalogue::ResolvedSmall(NetworkEntries(), network, given);
}

catalogue::Parameters SmallEncoder(const catalogue::Parameters& given = {}) {
  return Small("encoder", given);
}

catalogue::Parameters EncodingParameters(const std::string& name, bool randomized,
                                         bool per_block = false) {
  catalogue::Parameters given;
  if (randomized) given.Set("randomized", true);
  if (per_block) given.Set("draws", std::string("per_block"));
  GiveFormula(name, given);
  return Resolved(EncodingEntries(), name, given);
}

// A small network, with a batch for each member of a pack.
class Pack {
 public:
  Pack(const std::string& network, const catalogue::Parameters& parameters,
       const std::string& encoding, const catalogue::Parameters& options, at::ScalarType dtype,
       int64_t size)
      : network_(*CreateNetwork(network, parameters, encoding, options,
                                {.input_columns = 4, .output_columns = 3}, layout_)),
        arena_(layout_, size, dtype, at::kCPU) {
    const PositionPolicy policy(options, /*blocks=*/2);
    for (int64_t p = 0; p < 3; ++p) {
      random::Stream stream(static_cast<uint64_t>(p), random::Purpose::kTrainingSamples, 0);
      std::vector<int64_t> tokens, targets;
      for (int64_t i = 0; i < kSequences * kTokens; ++i) tokens.push_back(stream.Below(4));
      for (int64_t i = 0; i < kSequences * kOutputs; ++i) targets.push_back(stream.Below(3));
      tokens_.push_back(at::tensor(tokens).view({kSequences, kTokens}));
      targets_.push_back(at::tensor(targets));
      positions_.push_back(
          at::tensor(policy.DrawBatch(static_cast<uint64_t>(p), random::Purpose::kTrainingPositions,
                                      0, kTokens))
              .view({policy.draws(), kTokens}));
    }
  }

  void UseBfloat16Products() { network_ = WithBfloat16Products(std::move(network_)); }

  ParameterArena& arena() { return arena_; }

  // Forward and backward pass of members [first, first + count) on the data of members from `data`
  // on. Returns the losses [count].
  at::Tensor Step(int64_t first, int64_t count, int64_t data) {
    const std::vector<at::Tensor> tokens(tokens_.begin() + data, tokens_.begin() + data + count);
    const std::vector<at::Tensor> positions(positions_.begin() + data,
                                            positions_.begin() + data + count);
    DropoutNumbers dropout;
    for (int64_t p = 0; p < count; ++p) dropout.seeds.push_back(static_cast<uint64_t>(data + p));
    const at::Tensor logits =
        network_->Forward(arena_.Members(first, count), {.tokens = at::stack(tokens)},
                          at::stack(positions), kOutputs, &dropout, nullptr);
    EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{count, kSequences, kOutputs, 3}));
    std::vector<at::Tensor> losses;
    for (int64_t p = 0; p < count; ++p) {
      losses.push_back(
          at::cross_entropy_loss(logits[p].flatten(0, 1), targets_[static_cast<size_t>(data + p)]));
    }
    const at::Tensor stacked = at::stack(losses);
    stacked.sum().backward();
    return stacked.detach();
  }

 private:
  ParameterLayout layout_;
  std::unique_ptr<Network> network_;
  ParameterArena arena_;
  std::vector<at::Tensor> tokens_, targets_, positions_;
};

struct PackCase {
  std::string encoding;
  bool randomized;
  bool per_block = false;
  std::string attention = "softmax";
  double dropout = 0;
  std::string network = "encoder";
};

class PackTest : public ::testing::TestWithParam<PackCase> {
 protected:
  Pack Make(at::ScalarType dtype, int64_t size) {
    catalogue::Parameters parameters;
    if (GetParam().network == "encoder") {
      parameters.Set("attention", GetParam().attention);
      parameters.Set("dropout", GetParam().dropout);
    }
    return Pack(
        GetParam().network, Small(GetParam().network, parameters), GetParam().encoding,
        EncodingParameters(GetParam().encoding, GetParam().randomized, GetParam().per_block), dtype,
        size);
  }
};

TEST_P(PackTest, BatchedPackMatchesItsMembers) {
  Pack pack = Make(at::kDouble, 3);
  for (int64_t p = 0; p < 3; ++p) pack.arena().Initialize(p, static_cast<uint64_t>(10 + p));
  const at::Tensor losses = pack.Step(0, 3, 0);
  for (int64_t p = 0; p < 3; ++p) {
    Pack alone = Make(at::kDouble, 1);
    alone.arena().Initialize(0, static_cast<uint64_t>(10 + p));
    const at::Tensor loss = alone.Step(0, 1, p);
    EXPECT_NEAR(losses[p].item<double>(), loss[0].item<double>(), 1e-12);
    EXPECT_LT(
        pack.arena().gradients()[p].sub(alone.arena().gradients()[0]).abs().max().item<double>(),
        1e-12);
    EXPECT_GT(alone.arena().gradients().abs().max().item<double>(), 1e-3);
  }
}

TEST_P(PackTest, MembersInTurnAreBitIdenticalToThemAlone) {
  const auto adam =
      CreateOptimizer("adam", Resolved(OptimizerEntries(), "adam", catalogue::Parameters()));
  Pack pack = Make(at::kFloat, 3);
  for (int64_t p = 0; p < 3; ++p) pack.arena().Initialize(p, static_cast<uint64_t>(10 + p));
  for (int64_t step = 1; step <= 3; ++step) {
    pack.arena().gradients().zero_();
    for (int64_t p = 0; p < 3; ++p) {
      pack.Step(p, 1, p);
      (*adam)->Step(pack.arena(), p, 1, at::tensor((*adam)->StepNumbers(step, {1e-3})),
                    MeasureGradients(pack.arena(), p, 1, 1.0).factors);
    }
  }
  for (int64_t p = 0; p < 3; ++p) {
    Pack single = Make(at::kFloat, 1);
    single.arena().Initialize(0, static_cast<uint64_t>(10 + p));
    for (int64_t step = 1; step <= 3; ++step) {
      single.arena().gradients().zero_();
      single.Step(0, 1, p);
      (*adam)->Step(single.arena(), 0, 1, at::tensor((*adam)->StepNumbers(step, {1e-3})),
                    MeasureGradients(single.arena(), 0, 1, 1.0).factors);
    }
    EXPECT_TRUE(at::equal(pack.arena().parameters()[p], single.arena().parameters()[0]));
    EXPECT_TRUE(at::equal(pack.arena().second_moments()[p], single.arena().second_moments()[0]));
  }
}

// bfloat16 has eight significant bits; float32 would err by less than 1e-6. Rounding may switch a
// ReLU whose input is nearly 0, which changes a gradient more, so the median of three seeds counts.
TEST_P(PackTest, Bfloat16RoundsLossesAndGradients) {
  std::vector<double> errors, errors_in_pair;
  for (const uint64_t seed : {10, 11, 12}) {
    Pack exact = Make(at::kFloat, 1), rounded = Make(at::kFloat, 1), pair = Make(at::kFloat, 2);
    rounded.UseBfloat16Products();
    pair.UseBfloat16Products();
    for (Pack* pack : {&exact, &rounded}) pack->arena().Initialize(0, seed);
    for (const uint64_t p : {0, 1}) pair.arena().Initialize(static_cast<int64_t>(p), seed + p);
    const double loss = exact.Step(0, 1, 0).item<double>();
    EXPECT_NEAR(rounded.Step(0, 1, 0).item<double>() / loss, 1, 0.02);
    EXPECT_NEAR(pair.Step(0, 2, 0)[0].item<double>() / loss, 1, 0.02);
    const at::Tensor& expected = exact.arena().gradients()[0];
    const auto error = [&](const at::Tensor& gradients) {
      return gradients.sub(expected).norm().item<double>() / expected.norm().item<double>();
    };
    errors.push_back(error(rounded.arena().gradients()[0]));
    errors_in_pair.push_back(error(pair.arena().gradients()[0]));
    EXPECT_GT(errors.back(), 1e-4);
    for (const auto& slot : rounded.arena().layout().slots()) {
      if (slot.name != "output") continue;
      const at::Tensor gradient = rounded.arena().gradients()[0].narrow(0, slot.offset, slot.size);
      EXPECT_TRUE(at::equal(gradient.to(at::kBFloat16).to(at::kFloat), gradient))
          << "the result of a product in bfloat16";
    }
  }
  for (std::vector<double>* of : {&errors, &errors_in_pair}) {
    std::sort(of->begin(), of->end());
    EXPECT_LT((*of)[1], 0.05);
  }
}

std::vector<PackCase> PackCases() {
  std::vector<PackCase> cases;
  for (const EncodingEntry* entry : EncodingEntries()) {
    // positional_attention_test covers those that only give vectors.
    if (!entry->is_added) continue;
    cases.push_back({entry->name, false});
    if (entry->uses_positions()) cases.push_back({entry->name, true});
    for (const auto& parameter : entry->parameters) {
      if (parameter.name == "draws" && !parameter.omitted)
        cases.push_back({entry->name, true, true});
    }
  }
  // The other networks of tokens; positional_attention_test covers those of numbers.
  for (const NetworkEntry* entry : NetworkEntries()) {
    if (entry->name == "encoder" || !entry->Learns(tasks::TaskKind::kTransduction)) continue;
    for (const std::string encoding : {"none", "learned", "relative", "shaw", "formula"}) {
      if (encoding != "none" && ReadsInOrder(entry->name)) continue;
      cases.push_back({.encoding = encoding, .network = entry->name});
    }
  }
  cases.push_back({.encoding = "none", .attention = "geometric"});
  cases.push_back({.encoding = "relative", .randomized = true, .attention = "geometric"});
  cases.push_back({.encoding = "sin_cos", .randomized = true, .dropout = 0.1});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Encodings, PackTest, ::testing::ValuesIn(PackCases()),
                         [](const auto& test) {
                           return (test.param.network == "encoder" ? ""
                                                                   : test.param.network + "_") +
                                  (test.param.per_block ? "per_block_" : "") +
                                  (test.param.attention == "geometric" ? "geometric_" : "") +
                                  (test.param.dropout > 0 ? "dropout_" : "") +
                                  (test.param.randomized ? "randomized_" : "") +
                                  test.param.encoding;
                         });

TEST(CreateNetworkTest, RefusesInvalidCombinations) {
  const NetworkShape shape = {.input_columns = 3, .output_columns = 2};
  ParameterLayout layout;
  EXPECT_EQ(CreateNetwork("encodr", {}, "none", {}, shape, layout).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CreateNetwork("encoder", SmallEncoder(), "nothing", {}, shape, layout).status().code(),
            absl::StatusCode::kNotFound);
  catalogue::Parameters three_heads = SmallEncoder();
  three_heads.Set("heads", int64_t{3});
  const absl::Status refused = CreateNetwork("encoder", three_heads, "none",
                                             EncodingParameters("none", false), shape, layout)
                                   .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("heads"), std::string::npos);
}

// Logits of a small network with dropout, for a batch of equal tokens.
at::Tensor LogitsWithDropout(const catalogue::Parameters& encoder, const DropoutNumbers* numbers) {
  ParameterLayout layout;
  const auto network =
      CreateNetwork("encoder", encoder, "none", EncodingParameters("none", false), {3, 2}, layout);
  EXPECT_TRUE(network.ok()) << network.status();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const at::Tensor ones = at::ones({1, 4, 5}, at::kLong);
  return (*network)->Forward(arena.Members(0, 1), {.tokens = ones}, ones.narrow(1, 0, 1), 2,
                             numbers, nullptr);
}

TEST(EncoderTest, DropoutAtEvaluationIsOptional) {
  const DropoutNumbers training = {.seeds = {1}, .step = 3};
  const DropoutNumbers evaluation = {
      .seeds = {1}, .purpose = random::Purpose::kEvaluationDropout, .step = 3};
  catalogue::Parameters given;
  const at::Tensor without = LogitsWithDropout(SmallEncoder(given), &training);
  EXPECT_TRUE(at::equal(without, LogitsWithDropout(SmallEncoder(given), nullptr)));
  given.Set("dropout", 0.5);
  EXPECT_FALSE(at::equal(without, LogitsWithDropout(SmallEncoder(given), &training)));
  EXPECT_TRUE(at::equal(without, LogitsWithDropout(SmallEncoder(given), &evaluation)));
  given.Set("dropout_at_evaluation", true);
  EXPECT_FALSE(at::equal(without, LogitsWithDropout(SmallEncoder(given), &evaluation)));
}

// Logits of the small network `name`, for a batch of equal tokens.
at::Tensor Logits(const std::string& name, const catalogue::Parameters& parameters,
                  const std::string& encoding, const DropoutNumbers* numbers) {
  ParameterLayout layout;
  const auto network = CreateNetwork(name, parameters, encoding,
                                     EncodingParameters(encoding, false), {3, 2}, layout);
  EXPECT_TRUE(network.ok()) << network.status();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const at::Tensor ones = at::ones({1, 4, 5}, at::kLong);
  return (*network)->Forward(arena.Members(0, 1), {.tokens = ones},
                             at::arange(5, at::kLong).view({1, 1, 5}), 2, numbers, nullptr);
}

TEST(NetworkTest, EmbeddingNoiseHasTheRequestedSize) {
  DropoutNumbers numbers = {
      .seeds = {1}, .purpose = random::Purpose::kEvaluationDropout, .step = 3};
  for (const std::string name : {"encoder", "layerwise_encoder"}) {
    const auto logits = [&] { return Logits(name, Small(name), "sin_cos", &numbers); };
    numbers.embedding_noise = 0;
    const at::Tensor without = logits();
    EXPECT_TRUE(at::equal(without[0][0], without[0][1])) << name;
    numbers.embedding_noise = 1e-6;
    const double little = logits().sub(without).abs().max().item<double>();
    EXPECT_GT(little, 0) << name;
    EXPECT_LT(little, 1e-3) << name;
    numbers.embedding_noise = 0.1;
    EXPECT_FALSE(at::equal(logits()[0][0], logits()[0][1])) << name;
  }
}

// Records the largest allocation on this thread while it is installed.
class LargestTensor : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device /*device*/) override {
    bytes_ = std::max(bytes_, bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

TEST(NetworkTest, HoldsLogitsPredictsMemory) {
  constexpr int64_t kSequences = 2, kTokens = 200;
  catalogue::Parameters geometric;
  geometric.Set("attention", std::string("geometric"));
  struct {
    std::string network;
    catalogue::Parameters parameters;
    at::ScalarType dtype;
  } cases[] = {{"encoder", Small("encoder"), at::kFloat},
               {"encoder", Small("encoder"), at::kDouble},
               {"encoder", Small("encoder", geometric), at::kFloat},
               {"layerwise_encoder", Small("layerwise_encoder"), at::kFloat},
               {"layerwise_encoder", Small("layerwise_encoder"), at::kDouble}};
  for (const auto& [name, parameters, dtype] : cases) {
    ParameterLayout layout;
    const auto network = *CreateNetwork(name, parameters, "relative",
                                        EncodingParameters("relative", false), {3, 2}, layout);
    ParameterArena arena(layout, 1, dtype, at::kCPU);
    arena.Initialize(0, 1);
    const auto largest = std::make_shared<LargestTensor>();
    {
      const c10::NoGradGuard no_gradients;
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, largest);
      (void)network->Forward(
          arena.Members(0, 1), {.tokens = at::ones({1, kSequences, kTokens}, at::kLong)},
          at::arange(kTokens, at::kLong).view({1, 1, kTokens}), 2, nullptr, nullptr);
    }
    const at::Tensor sample = arena.Members(0, 1)[0];
    const int64_t logits =
        kSequences * /*heads=*/2 * kTokens * kTokens * static_cast<int64_t>(sample.element_size());
    EXPECT_EQ(network->HoldsLogits(sample), largest->bytes() >= logits)
        << name << " " << dtype << " makes a tensor of " << largest->bytes() << " bytes";
  }
}

// The released code of relational reasoning on Latin squares applies dropout after adding fixed
// encodings, and never turns it off.
TEST(LayerwiseEncoderTest, EncodingDropoutAppliesAtEvaluation) {
  const DropoutNumbers training = {.seeds = {1}, .step = 3};
  const DropoutNumbers evaluation = {
      .seeds = {1}, .purpose = random::Purpose::kEvaluationDropout, .step = 3};
  const std::string name = "layerwise_encoder";
  catalogue::Parameters given;
  given.Set("encoding_dropout", 0.1);
  for (const DropoutNumbers* numbers : {&training, &evaluation}) {
    EXPECT_FALSE(at::equal(Logits(name, Small(name), "sin_cos", numbers),
                           Logits(name, Small(name, given), "sin_cos", numbers)));
    EXPECT_TRUE(at::equal(Logits(name, Small(name), "rope", numbers),
                          Logits(name, Small(name, given), "rope", numbers)))
        << "it adds nothing to the features";
  }
}

// d_model is 16: Xavier's bound is sqrt(6 / (16 + 48)), that of a linear layer 1 / 4.
TEST(LayerwiseEncoderTest, AttentionStartsAsAModuleOrAsALinearLayer) {
  const auto largest = [](const std::string& initial, const std::string& parameter) {
    catalogue::Parameters given;
    given.Set("attention_initial", initial);
    ParameterLayout layout;
    EXPECT_TRUE(CreateNetwork("layerwise_encoder", Small("layerwise_encoder", given), "rope",
                              EncodingParameters("rope", false), {3, 2}, layout)
                    .ok());
    std::vector<double> row(static_cast<size_t>(layout.row_size()));
    InitializeRow(layout, /*weight_seed=*/1, absl::MakeSpan(row));
    double found = -1;
    for (const ParameterLayout::Slot& slot : layout.slots()) {
      if (slot.name != parameter) continue;
      for (int64_t i = 0; i < slot.size; ++i) {
        found = std::max(found, std::abs(row[static_cast<size_t>(slot.offset + i)]));
      }
    }
    return found;
  };
  EXPECT_NEAR(largest("xavier", "blocks.0.attention.inputs"), std::sqrt(6.0 / 64), 0.01);
  EXPECT_EQ(largest("xavier", "blocks.0.attention.inputs_bias"), 0);
  EXPECT_NEAR(largest("linear", "blocks.0.attention.inputs"), 0.25, 0.01);
  EXPECT_NEAR(largest("linear", "blocks.0.attention.inputs_bias"), 0.25, 0.03);
}

// Each depth is a block's last layer norm; depth 0 is the embeddings, which depend on one token
// alone. Depths do not depend on whether attention is kept.
TEST(EncoderTest, CaptureHoldsEveryBlocksFeatures) {
  ParameterLayout layout;
  const auto network = CreateNetwork("encoder", SmallEncoder(), "sin_cos",
                                     EncodingParameters("sin_cos", false), {3, 2}, layout);
  ASSERT_TRUE(network.ok()) << network.status();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const ParameterSet parameters = arena.Members(0, 1);
  const at::Tensor tokens = at::tensor(std::vector<int64_t>{0, 1, 2, 0, 2, 2}).view({1, 2, 3});
  const at::Tensor positions = at::tensor(std::vector<int64_t>{0, 1, 2}).view({1, 1, 3});
  Capture whole;
  Capture depths{.keep_attention = false};
  (void)(*network)->Forward(parameters, {.tokens = tokens}, positions, 1, nullptr, &whole);
  (void)(*network)->Forward(parameters, {.tokens = tokens}, positions, 1, nullptr, &depths);
  EXPECT_EQ(whole.attention_probabilities.size(), 2);
  EXPECT_TRUE(depths.attention_probabilities.empty());
  EXPECT_TRUE(depths.attention_logits.empty());
  ASSERT_EQ(depths.depths.size(), 3);
  for (size_t depth = 0; depth < 3; ++depth) {
    EXPECT_EQ(depths.depths[depth].sizes(), (std::vector<int64_t>{1, 2, 3, 16}));
    EXPECT_LT(whole.depths[depth].sub(depths.depths[depth]).abs().max().item<double>(), 1e-12);
  }
  EXPECT_TRUE(at::equal(depths.depths[1], depths.layer_outputs[1]));
  EXPECT_TRUE(at::equal(depths.depths[2], depths.layer_outputs[3]));
  // The sequences share their first and last tokens, but not the middle one.
  const at::Tensor first = depths.depths[0][0][0], second = depths.depths[0][0][1];
  EXPECT_TRUE(at::equal(first[0], second[0]));
  EXPECT_FALSE(at::equal(first[1], second[1]));
  EXPECT_TRUE(at::equal(first[2], second[2]));
  EXPECT_FALSE(at::equal(depths.depths[1][0][0][0], depths.depths[1][0][1][0]));
}

// Computation tokens are no tokens of the sequence. A state does not depend on later tokens.
TEST(RecurrentNetworkTest, DepthsAreThoseOfTheSequencesTokens) {
  for (const NetworkEntry* entry : NetworkEntries()) {
    if (!ReadsInOrder(entry->name)) continue;
    SCOPED_TRACE(entry->name);
    catalogue::Parameters given;
    given.Set("computation_steps", int64_t{2});
    ParameterLayout layout;
    const auto network = CreateNetwork(entry->name, Small(entry->name, given), "none",
                                       EncodingParameters("none", false), {3, 2}, layout);
    ASSERT_TRUE(network.ok()) << network.status();
    ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
    arena.Initialize(0, 1);
    Capture capture;
    const at::Tensor tokens =
        at::tensor(std::vector<int64_t>{0, 1, 1, 2, 2, 0, 1, 0, 2, 2}).view({1, 2, 5});
    const at::Tensor logits =
        (*network)->Forward(arena.Members(0, 1), {.tokens = tokens},
                            at::arange(5, at::kLong).view({1, 1, 5}), 2, nullptr, &capture);
    EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{1, 2, 2, 2}));
    EXPECT_TRUE(capture.attention_probabilities.empty());
    ASSERT_EQ(capture.depths.size(), 2);
    EXPECT_EQ(capture.depths[0].size(2), 5);
    EXPECT_EQ(capture.depths[1].sizes(), (std::vector<int64_t>{1, 2, 5, 16}));
    const at::Tensor first = capture.depths[1][0][0], second = capture.depths[1][0][1];
    EXPECT_TRUE(at::equal(first.narrow(0, 0, 2), second.narrow(0, 0, 2)));
    for (int64_t token = 2; token < 5; ++token)
      EXPECT_FALSE(at::equal(first[token], second[token]));
  }
}

TEST(OwnPositionsTest, SequencesMatchThemAlone) {
  for (const char* network_name : {"encoder", "layerwise_encoder"}) {
    for (const char* name : {"sin_cos", "learned", "rope", "relative", "alibi", "fire"}) {
      ParameterLayout layout;
      const auto network = CreateNetwork(network_name, Small(network_name), name,
                                         EncodingParameters(name, true), {4, 3}, layout);
      ASSERT_TRUE(network.ok()) << network.status();
      ParameterArena arena(layout, 2, at::kDouble, at::kCPU);
      for (int64_t p = 0; p < 2; ++p) arena.Initialize(p, static_cast<uint64_t>(p));
      const at::Tensor tokens = at::arange(30, at::kLong).remainder(4).view({2, 3, 5});
      // [P, S, B, n]
      const at::Tensor positions =
          at::arange(30, at::kDouble).square().remainder(97).view({2, 1, 3, 5});
      const ParameterSet parameters = arena.Members(0, 2);
      const at::Tensor together =
          (*network)->Forward(parameters, {.tokens = tokens}, positions, 2, nullptr, nullptr);
      together.square().sum().backward();
      const at::Tensor gradients = arena.gradients().clone();
      arena.gradients().zero_();
      for (int64_t b = 0; b < 3; ++b) {
        const at::Tensor alone = (*network)->Forward(parameters, {.tokens = tokens.narrow(1, b, 1)},
                                                     positions.select(2, b), 2, nullptr, nullptr);
        alone.square().sum().backward();
        EXPECT_LT(alone.sub(together.narrow(1, b, 1)).abs().max().item<double>(), 1e-12)
            << network_name << " " << name;
      }
      EXPECT_LT(arena.gradients().sub(gradients).abs().max().item<double>(),
                1e-12 * gradients.abs().max().item<double>() + 1e-12)
          << network_name << " " << name;
      Capture whole;
      const at::Tensor captured =
          (*network)->Forward(parameters, {.tokens = tokens}, positions, 2, nullptr, &whole);
      EXPECT_LT(captured.sub(together).abs().max().item<double>(), 1e-12);
      EXPECT_EQ(whole.attention_probabilities[0].sizes(), (std::vector<int64_t>{2, 3, 2, 5, 5}));
    }
  }
}

TEST(CreateNetworkTest, RecurrentNetworksRefuseEncodings) {
  ParameterLayout layout;
  const absl::Status refused = CreateNetwork("lstm", Small("lstm"), "rope",
                                             EncodingParameters("rope", false), {3, 2}, layout)
                                   .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("\"rope\" has no effect"), std::string::npos) << refused;
}

TEST(CreateNetworkTest, InitialWeightsIgnoreTheEncoding) {
  ParameterLayout none, relative;
  ASSERT_TRUE(CreateNetwork("encoder", SmallEncoder(), "none", EncodingParameters("none", false),
                            {3, 2}, none)
                  .ok());
  ASSERT_TRUE(CreateNetwork("encoder", SmallEncoder(), "relative",
                            EncodingParameters("relative", false), {3, 2}, relative)
                  .ok());
  std::vector<float> a(static_cast<size_t>(none.row_size()));
  std::vector<float> b(static_cast<size_t>(relative.row_size()));
  InitializeRow(none, 3, absl::MakeSpan(a));
  InitializeRow(relative, 3, absl::MakeSpan(b));
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

TEST(LayerwiseEncoderTest, EachBlockHasATableAndBlankCellsHaveNone) {
  ParameterLayout layout;
  const auto network =
      CreateNetwork("layerwise_encoder", Small("layerwise_encoder"), "learned",
                    EncodingParameters("learned", false),
                    {.input_columns = 6, .output_columns = 4, .has_blank = true}, layout);
  ASSERT_TRUE(network.ok()) << network.status();
  std::set<std::string> tables;
  for (const auto& slot : layout.slots()) {
    if (slot.name.ends_with("encoding.table")) tables.insert(slot.name);
    if (slot.name == "embedding") {
      EXPECT_EQ(slot.shape, (std::vector<int64_t>{5, 16}));
    }
  }
  EXPECT_EQ(tables, (std::set<std::string>{"blocks.0.encoding.table", "blocks.1.encoding.table"}));
}

TEST(LearnedTest, UntrainedTableGetsNoGradient) {
  for (const bool trained : {true, false}) {
    catalogue::Parameters given;
    given.Set("trained", trained);
    Pack pack("layerwise_encoder", Small("layerwise_encoder"), "learned",
              Resolved(EncodingEntries(), "learned", given), at::kDouble, 1);
    pack.arena().Initialize(0, 1);
    pack.Step(0, 1, 0);
    for (const auto& slot : pack.arena().layout().slots()) {
      if (!slot.name.ends_with("encoding.table")) continue;
      EXPECT_EQ(slot.trained, trained);
      const double largest =
          pack.arena().gradients()[0].narrow(0, slot.offset, slot.size).abs().max().item<double>();
      EXPECT_EQ(largest > 0, trained) << slot.name;
    }
  }
}

}  // namespace
}  // namespace lengthwise::models
