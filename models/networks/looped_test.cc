// The looped networks against the ones that they loop.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/networks/language_model.h"
#include "models/networks/network.h"

namespace lengthwise::models::looped {
namespace {

using catalogue::Resolved;

constexpr int64_t kWidth = 16, kTokens = 7, kAnswers = 2;

catalogue::Parameters Given(int64_t blocks) {
  catalogue::Parameters given;
  given.Set("blocks", blocks);
  given.Set("heads", int64_t{2});
  given.Set("d_model", kWidth);
  return given;
}

catalogue::Parameters Looped(int64_t blocks, int64_t loops, double per_token, bool inject) {
  catalogue::Parameters given = Given(blocks);
  given.Set("loops", loops);
  given.Set("loops_per_token", per_token);
  given.Set("inject_input", inject);
  return given;
}

// A pack of an encoder or a decoder in double precision. Sequences end with an answer of kAnswers
// tokens.
class Tried {
 public:
  Tried(const std::string& name, const catalogue::Parameters& given,
        const std::string& encoding = "none", int64_t members = 1) {
    const catalogue::Parameters parameters = Resolved(NetworkEntries(), name, given);
    const catalogue::Parameters options = Resolved(EncodingEntries(), encoding, {});
    if (absl::EndsWith(name, "decoder")) {
      model_ = CreateLanguageModel(
                   name, parameters, encoding, options,
                   {.input_columns = kTokens, .output_columns = kTokens, .longest_sequence = 20},
                   layout_)
                   .value();
    } else {
      network_ = CreateNetwork(name, parameters, encoding, options,
                               {.input_columns = kTokens, .output_columns = 3}, layout_)
                     .value();
    }
    arena_ = std::make_unique<ParameterArena>(layout_, members, at::kDouble, at::kCPU);
    for (int64_t p = 0; p < members; ++p) arena_->Initialize(p, static_cast<uint64_t>(p + 1));
  }

  ParameterArena& arena() { return *arena_; }
  const LanguageModel& model() const { return *model_; }
  ParameterSet parameters() const { return arena_->Members(0, arena_->pack_size()); }

  // `tokens` are [P, B, n].
  at::Tensor Logits(const at::Tensor& tokens, const DropoutNumbers* dropout = nullptr,
                    Capture* capture = nullptr) const {
    const int64_t n = tokens.size(2);
    const at::Tensor positions = at::arange(n, at::kLong).expand({tokens.size(0), 1, n});
    if (network_ != nullptr) {
      return network_->Forward(parameters(), {.tokens = tokens}, positions, kAnswers, dropout,
                               capture);
    }
    return model_->Forward(
        parameters(),
        {.tokens = tokens.flatten(1, 2),
         .groups = {{.examples = tokens.size(1), .length = n, .prompt = n - kAnswers}}},
        positions, dropout, capture);
  }

  // Elements of a parameter, by name.
  at::Tensor Part(const std::string& name, const at::Tensor& of) const {
    for (const auto& slot : layout_.slots()) {
      if (slot.name == name) return of[0].narrow(0, slot.offset, slot.size);
    }
    ADD_FAILURE() << "no parameter " << name;
    return of[0];
  }
  const std::vector<ParameterLayout::Slot>& slots() const { return layout_.slots(); }

 private:
  ParameterLayout layout_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<ParameterArena> arena_;
};

// [members, count, length]
at::Tensor Tokens(int64_t members, int64_t count, int64_t length) {
  return at::arange(members * count * length, at::kLong)
      .square()
      .remainder(kTokens)
      .view({members, count, length});
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.sub(b).abs().max().item<double>();
}

// The parameter of a network of `blocks` blocks that has the place of one in a deeper network.
std::string Shared(const std::string& name, int64_t blocks) {
  if (!absl::StartsWith(name, "blocks.")) return name;
  std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits('.', 2));
  return absl::StrCat("blocks.", std::stoi(parts[1]) % blocks, ".", parts[2]);
}

// Gives `deep` the parameters of `looped`, block after block.
void Unroll(Tried& looped, int64_t blocks, Tried& deep) {
  for (const auto& slot : deep.slots()) {
    deep.Part(slot.name, deep.arena().parameters())
        .copy_(looped.Part(Shared(slot.name, blocks), looped.arena().parameters()));
  }
}

class LoopedTest : public testing::TestWithParam<std::string> {
 protected:
  std::string looped() const { return "looped_" + GetParam(); }
  std::string plain() const { return GetParam() == "encoder" ? "encoder" : "causal_decoder"; }
};

TEST_P(LoopedTest, GradientIsThatOfATiedStack) {
  constexpr int64_t kBlocks = 2, kLoops = 3;
  const DropoutNumbers dropout = {.seeds = {5}, .step = 1};
  for (const std::string encoding : {"none", "relative", "fire"}) {
    SCOPED_TRACE(encoding);
    catalogue::Parameters given = Looped(kBlocks, kLoops, 0, /*inject=*/false);
    catalogue::Parameters deep_given = Given(kBlocks * kLoops);
    for (catalogue::Parameters* each : {&given, &deep_given}) each->Set("dropout", 0.2);
    Tried loop(looped(), given, encoding), stack(plain(), deep_given, encoding);
    Unroll(loop, kBlocks, stack);
    const at::Tensor tokens = Tokens(1, 3, 6);
    const at::Tensor logits = loop.Logits(tokens, &dropout);
    const at::Tensor expected = stack.Logits(tokens, &dropout);
    EXPECT_LT(Difference(logits, expected), 1e-12);
    logits.square().sum().backward();
    expected.square().sum().backward();
    for (const auto& slot : loop.slots()) {
      at::Tensor sum;
      for (const auto& part : stack.slots()) {
        if (Shared(part.name, kBlocks) != slot.name) continue;
        const at::Tensor gradient = stack.Part(part.name, stack.arena().gradients());
        sum = sum.defined() ? sum.add(gradient) : gradient;
      }
      EXPECT_LT(Difference(loop.Part(slot.name, loop.arena().gradients()), sum), 1e-10)
          << slot.name;
    }
    EXPECT_GT(loop.arena().gradients().abs().max().item<double>(), 1e-2);
  }
}

// Without positions, the blocks alone are a plain network whose embeddings are the loop's input:
// its table has them, as every token occurs once.
TEST_P(LoopedTest, EveryLoopReadsTheEmbeddings) {
  constexpr int64_t kBlocks = 2, kLoops = 3;
  Tried loop(looped(), Looped(kBlocks, kLoops, 0, /*inject=*/true)),
      blocks(plain(), Given(kBlocks));
  const at::Tensor tokens = at::arange(kTokens, at::kLong).view({1, 1, kTokens});
  Capture capture;
  (void)loop.Logits(tokens, nullptr, &capture);
  ASSERT_EQ(capture.depths.size(), kBlocks * kLoops + 1);
  EXPECT_EQ(capture.attention_probabilities.size(), kBlocks * kLoops);
  const at::Tensor embedded = capture.depths[0].detach();
  for (size_t t = 1; t < kLoops; ++t) {
    Unroll(loop, kBlocks, blocks);
    const at::Tensor input = capture.depths[t * kBlocks].detach().add(embedded);
    blocks.Part("embedding", blocks.arena().parameters())
        .copy_(input.flatten().div(std::sqrt(static_cast<double>(kWidth))));
    Capture once;
    (void)blocks.Logits(tokens, nullptr, &once);
    EXPECT_LT(Difference(once.depths.back(), capture.depths[(t + 1) * kBlocks]), 1e-12) << t;
  }
}

TEST_P(LoopedTest, LoopsFollowTheLengthOfTheInput) {
  const Tried by_length(looped(), Looped(1, 1, 0.5, true));
  for (const auto& [input, loops] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {6, 4}, {9, 6}}) {
    const Tried constant(looped(), Looped(1, loops, 0, true));
    const at::Tensor tokens = Tokens(1, 2, input + kAnswers);
    Capture capture;
    EXPECT_LT(Difference(by_length.Logits(tokens, nullptr, &capture), constant.Logits(tokens)),
              1e-12);
    EXPECT_EQ(capture.depths.size(), static_cast<size_t>(loops) + 1) << input;
  }
}

TEST_P(LoopedTest, PackMatchesItsMembers) {
  Tried pack(looped(), Looped(1, 1, 0.5, true), "relative", 2);
  const at::Tensor tokens = Tokens(2, 3, 6), together = pack.Logits(tokens);
  together.square().sum().backward();
  for (int64_t p = 0; p < 2; ++p) {
    Tried alone(looped(), Looped(1, 1, 0.5, true), "relative");
    alone.arena().Initialize(0, static_cast<uint64_t>(p + 1));
    const at::Tensor logits = alone.Logits(tokens.narrow(0, p, 1));
    logits.square().sum().backward();
    EXPECT_LT(Difference(logits, together.narrow(0, p, 1)), 1e-12);
    EXPECT_LT(Difference(alone.arena().gradients()[0], pack.arena().gradients()[p]), 1e-11);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LoopedTest, testing::Values("encoder", "decoder"),
                         [](const auto& test) { return test.param; });

TEST(LoopedDecoderTest, GroupsOfOtherPromptsMatchThemAlone) {
  catalogue::Parameters given = Looped(1, 1, 0.5, true);
  given.Set("dropout", 0.2);
  DropoutNumbers dropout = {.seeds = {5}, .step = 1};
  for (const bool recompute : {false, true}) {
    given.Set("recompute_activations", recompute);
    Tried together("looped_decoder", given, "relative"), alone("looped_decoder", given, "relative");
    const at::Tensor first = Tokens(1, 2, 5), second = Tokens(1, 3, 9);
    const at::Tensor logits =
        together.model().Forward(together.parameters(),
                                 {.tokens = at::cat({first.flatten(1), second.flatten(1)}, 1),
                                  .groups = {{.examples = 2, .length = 5, .prompt = 3},
                                             {.examples = 3, .length = 9, .prompt = 7}}},
                                 at::arange(9, at::kLong).view({1, 1, 9}), &dropout, nullptr);
    dropout.first_sequence = 0;
    const at::Tensor of_first = alone.Logits(first, &dropout);
    dropout.first_sequence = 2;
    const at::Tensor of_second = alone.Logits(second, &dropout);
    dropout.first_sequence = 0;
    EXPECT_LT(Difference(logits, at::cat({of_first, of_second}, 1)), 1e-12);
    logits.square().sum().backward();
    of_first.square().sum().add(of_second.square().sum()).backward();
    EXPECT_LT(Difference(together.arena().gradients(), alone.arena().gradients()), 1e-10);
  }
}

TEST(LoopedDecoderTest, DecodingMatchesForward) {
  for (const std::string encoding : {"none", "relative", "rope", "fire"}) {
    const Tried decoder("looped_decoder", Looped(2, 1, 0.5, true), encoding);
    const at::Tensor tokens = Tokens(1, 3, 7 + kAnswers);
    const at::Tensor expected = decoder.Logits(tokens).unflatten(1, {3, 7 + kAnswers});
    const auto cache =
        decoder.model().StartDecoding(at::arange(7 + kAnswers, at::kLong).view({1, 1, -1}));
    int64_t seen = 0;
    for (const int64_t count : {7, 1, 1}) {
      const at::Tensor logits =
          decoder.model().Decode(decoder.parameters(), tokens.narrow(2, seen, count), *cache);
      seen += count;
      EXPECT_LT(Difference(logits, expected.select(2, seen - 1)), 1e-12) << encoding << seen;
    }
  }
}

TEST(LoopsTest, AreAtLeastOneAndRounded) {
  const auto loops = [](int64_t constant, double per_token, int64_t n) {
    return Loops(Looped(1, constant, per_token, true)).Of(n);
  };
  EXPECT_EQ(loops(8, 0, 500), 8);
  EXPECT_EQ(loops(0, 1, 40), 40);
  EXPECT_EQ(loops(1, 1, 40), 41);
  EXPECT_EQ(loops(0, 0.25, 1), 1);
  EXPECT_EQ(loops(0, 0.1, 30), 3);
  EXPECT_EQ(Loops(Given(3)).Of(500), 1) << "a network that is not looped";
}

TEST(LoopsTest, NoLoopsAreRefused) {
  ParameterLayout layout;
  const absl::Status refused =
      CreateNetwork("looped_encoder",
                    Resolved(NetworkEntries(), "looped_encoder", Looped(1, 0, 0, true)), "none",
                    Resolved(EncodingEntries(), "none", {}), {3, 2}, layout)
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(std::string(refused.message()), "network.loops: got 0")) << refused;
}

}  // namespace
}  // namespace lengthwise::models::looped
