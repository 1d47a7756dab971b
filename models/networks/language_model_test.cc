#include "models/networks/language_model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros_like.h"
#include "absl/strings/str_cat.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/positions.h"
#include "models/encodings/testing/test_formula.h"
#include "models/networks/catalogue.h"

namespace lengthwise::models {
namespace {

using catalogue::Resolved;

constexpr int64_t kBlocks = 2, kVocabulary = 7, kLongest = 14;

catalogue::Parameters Sized(int64_t blocks, int64_t d_model, int64_t heads,
                            catalogue::Parameters given = {}) {
  given.Set("blocks", blocks);
  given.Set("d_model", d_model);
  given.Set("heads", heads);
  return Resolved(NetworkEntries(), "causal_decoder", given);
}

struct EncodingCase {
  std::string name;
  bool randomized = false;
  bool per_block = false;
};

// A pack of small decoders, one per seed.
class Decoder {
 public:
  Decoder(const EncodingCase& encoding, at::ScalarType dtype, std::vector<uint64_t> seeds,
          const catalogue::Parameters& network = {}, uint64_t position_seed = 0) {
    catalogue::Parameters given;
    if (encoding.randomized) given.Set("randomized", true);
    if (encoding.per_block) given.Set("draws", std::string("per_block"));
    GiveFormula(encoding.name, given);
    const catalogue::Parameters options = Resolved(EncodingEntries(), encoding.name, given);
    auto model = CreateLanguageModel(
        "causal_decoder", Sized(kBlocks, 16, 2, network), encoding.name, options,
        {.input_columns = kVocabulary, .output_columns = kVocabulary, .longest_sequence = kLongest},
        layout_);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    arena_ = std::make_unique<ParameterArena>(layout_, static_cast<int64_t>(seeds.size()), dtype,
                                              at::kCPU);
    const PositionPolicy policy(options, kBlocks);
    std::vector<at::Tensor> positions;
    for (size_t p = 0; p < seeds.size(); ++p) {
      arena_->Initialize(static_cast<int64_t>(p), seeds[p]);
      positions.push_back(at::tensor(policy.DrawBatch(seeds[p], random::Purpose::kTrainingPositions,
                                                      position_seed, kLongest))
                              .view({policy.draws(), kLongest}));
    }
    positions_ = at::stack(positions);
  }

  void UseBfloat16Products() { model_ = WithBfloat16Products(std::move(model_)); }

  ParameterArena& arena() { return *arena_; }
  const LanguageModel& model() const { return *model_; }
  ParameterSet parameters() const { return arena_->Members(0, arena_->pack_size()); }
  const at::Tensor& positions() const { return positions_; }

  // Logits [P, B, n, V] of sequences [P, B, n].
  at::Tensor Forward(const at::Tensor& sequences, const DropoutNumbers* dropout = nullptr,
                     int64_t prompt = 0) const {
    const int64_t count = sequences.size(1), length = sequences.size(2);
    return model_
        ->Forward(parameters(),
                  {.tokens = sequences.flatten(1, 2),
                   .groups = {{.examples = count, .length = length, .prompt = prompt}}},
                  positions_, dropout, nullptr)
        .unflatten(1, {count, length});
  }

 private:
  ParameterLayout layout_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<ParameterArena> arena_;
  at::Tensor positions_;
};

// [P, count, length]
at::Tensor Tokens(uint64_t seed, int64_t members, int64_t count, int64_t length) {
  random::Stream stream(seed, random::Purpose::kTrainingSamples, 0);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < members * count * length; ++i) {
    tokens.push_back(static_cast<int64_t>(stream.Below(kVocabulary)));
  }
  return at::tensor(tokens).view({members, count, length});
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.sub(b).abs().max().item<double>();
}

// Rounding error to allow.
double Tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-12 : 2e-5; }

class LanguageModelTest : public testing::TestWithParam<EncodingCase> {};

catalogue::Parameters WholePrompts() {
  catalogue::Parameters network;
  network.Set("prompt_attention", std::string("bidirectional"));
  return network;
}

TEST_P(LanguageModelTest, PromptAttendsToItselfInBothDirections) {
  if (GetParam().name == "formula") GTEST_SKIP() << "its factors need causal prompts";
  constexpr int64_t kPrompt = 4;
  const Decoder decoder(GetParam(), at::kDouble, {1}, WholePrompts());
  const at::Tensor sequences = Tokens(1, 1, 2, 9);
  const auto with_changed = [&](int64_t token) {
    at::Tensor changed = sequences.clone();
    changed.select(2, token).add_(1).remainder_(kVocabulary);
    return decoder.Forward(changed, nullptr, kPrompt);
  };
  const at::Tensor before = decoder.Forward(sequences, nullptr, kPrompt);
  const auto differs = [&](const at::Tensor& after, int64_t token) {
    return LargestDifference(before.select(2, token), after.select(2, token)) > 1e-9;
  };
  const at::Tensor prompt = with_changed(kPrompt - 1), answer = with_changed(6);
  for (int64_t token = 0; token < 9; ++token) {
    EXPECT_TRUE(differs(prompt, token)) << token;
    EXPECT_EQ(differs(answer, token), token >= 6) << token;
  }
}

// Compares the fused kernels' mask with the formula's, and the cache with both.
TEST_P(LanguageModelTest, DecodingMatchesTrainingForWholePrompts) {
  if (GetParam().name == "formula") GTEST_SKIP() << "its factors need causal prompts";
  constexpr int64_t kPrompt = 5;
  const Decoder fused(GetParam(), at::kFloat, {1, 2}, WholePrompts());
  const Decoder plain(GetParam(), at::kDouble, {1, 2}, WholePrompts());
  const at::Tensor sequences = Tokens(4, 2, 3, 9);
  const at::Tensor expected = plain.Forward(sequences, nullptr, kPrompt);
  EXPECT_LT(LargestDifference(fused.Forward(sequences, nullptr, kPrompt).to(at::kDouble), expected),
            1e-4);
  for (const Decoder* decoder : {&fused, &plain}) {
    const auto cache = decoder->model().StartDecoding(decoder->positions());
    int64_t seen = 0;
    for (const int64_t count : {kPrompt, int64_t{1}, int64_t{1}, int64_t{2}}) {
      const at::Tensor logits =
          decoder->model().Decode(decoder->parameters(), sequences.narrow(2, seen, count), *cache);
      seen += count;
      EXPECT_LT(LargestDifference(logits.to(at::kDouble), expected.select(2, seen - 1)), 1e-4)
          << seen;
    }
  }
}

TEST_P(LanguageModelTest, WholePromptGradientsMatchTheFormula) {
  if (GetParam().name == "formula") GTEST_SKIP() << "its factors need causal prompts";
  constexpr int64_t kPrompt = 5;
  const at::Tensor sequences = Tokens(4, 1, 3, 9);
  std::vector<at::Tensor> gradients;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Decoder decoder(GetParam(), dtype, {1}, WholePrompts());
    decoder.arena().gradients().zero_();
    decoder.Forward(sequences, nullptr, kPrompt)
        .narrow(2, kPrompt - 1, 4)
        .square()
        .sum()
        .backward();
    gradients.push_back(decoder.arena().gradients().to(at::kDouble));
  }
  EXPECT_LT(LargestDifference(gradients[0], gradients[1]),
            1e-3 * gradients[1].abs().max().item<double>());
}

TEST_P(LanguageModelTest, TokenSeesOnlyItselfAndEarlierTokens) {
  const Decoder decoder(GetParam(), at::kDouble, {1});
  const at::Tensor sequences = Tokens(1, 1, 2, 9);
  at::Tensor changed = sequences.clone();
  changed.select(2, 6).add_(1).remainder_(kVocabulary);
  const at::Tensor before = decoder.Forward(sequences), after = decoder.Forward(changed);
  EXPECT_LT(LargestDifference(before.narrow(2, 0, 6), after.narrow(2, 0, 6)), 1e-12);
  for (int64_t place = 6; place < 9; ++place) {
    EXPECT_GT(LargestDifference(before.select(2, place), after.select(2, place)), 1e-6) << place;
  }
}

TEST_P(LanguageModelTest, GroupedExamplesMatchThemAlone) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder decoder(GetParam(), dtype, {1});
    const std::vector<at::Tensor> sequences = {Tokens(1, 1, 2, 5), Tokens(2, 1, 1, 9),
                                               Tokens(3, 1, 3, 4)};
    ExampleGroups examples;
    std::vector<at::Tensor> tokens, alone;
    for (const at::Tensor& group : sequences) {
      examples.groups.push_back({group.size(1), group.size(2)});
      tokens.push_back(group.flatten(1, 2));
      for (int64_t i = 0; i < group.size(1); ++i) {
        alone.push_back(decoder.Forward(group.narrow(1, i, 1)).squeeze(1));
        alone.back().square().sum().backward();
      }
    }
    examples.tokens = at::cat(tokens, 1);
    const at::Tensor gradients_alone = decoder.arena().gradients().clone();
    decoder.arena().gradients().zero_();
    const at::Tensor together = decoder.model().Forward(decoder.parameters(), examples,
                                                        decoder.positions(), nullptr, nullptr);
    together.square().sum().backward();
    EXPECT_LT(LargestDifference(together, at::cat(alone, 1)), Tolerance(dtype));
    const double largest = gradients_alone.abs().max().item<double>();
    EXPECT_GT(largest, 1e-2);
    EXPECT_LT(LargestDifference(decoder.arena().gradients(), gradients_alone),
              Tolerance(dtype) * largest);
  }
}

// Two groups of equal length; the second has the positions of other tokens.
TEST_P(LanguageModelTest, GroupUsesPositionsFromItsFirst) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder decoder(GetParam(), dtype, {1});
    Decoder other(GetParam(), dtype, {1}, {}, /*position_seed=*/9);
    const at::Tensor first = Tokens(1, 1, 2, 5), second = Tokens(2, 1, 3, 5);
    const ExampleGroups examples = {
        .tokens = at::cat({first.flatten(1, 2), second.flatten(1, 2)}, 1),
        .groups = {{2, 5}, {.examples = 3, .length = 5, .first_position = 7}}};
    const at::Tensor positions =
        at::cat({decoder.positions().narrow(2, 0, 7), other.positions().narrow(2, 0, 5)}, 2);
    const at::Tensor together =
        decoder.model().Forward(decoder.parameters(), examples, positions, nullptr, nullptr);
    together.square().sum().backward();
    const at::Tensor gradients = decoder.arena().gradients().clone();
    decoder.arena().gradients().zero_();
    const auto alone = [&](const at::Tensor& sequences, const at::Tensor& own) {
      const at::Tensor logits = decoder.model().Forward(
          decoder.parameters(),
          {.tokens = sequences.flatten(1, 2), .groups = {{sequences.size(1), sequences.size(2)}}},
          own, nullptr, nullptr);
      logits.square().sum().backward();
      return logits;
    };
    const at::Tensor apart =
        at::cat({alone(first, decoder.positions()), alone(second, other.positions())}, 1);
    EXPECT_LT(LargestDifference(together, apart), Tolerance(dtype));
    const double largest = gradients.abs().max().item<double>();
    EXPECT_LT(LargestDifference(gradients, decoder.arena().gradients()),
              Tolerance(dtype) * largest);
  }
}

TEST_P(LanguageModelTest, PackMatchesItsMembers) {
  Decoder pack(GetParam(), at::kDouble, {3, 8});
  const at::Tensor sequences = Tokens(1, 2, 3, 6);
  const at::Tensor together = pack.Forward(sequences);
  together.square().sum().backward();
  for (int64_t p = 0; p < 2; ++p) {
    Decoder alone(GetParam(), at::kDouble, {p == 0 ? 3U : 8U});
    const at::Tensor logits = alone.Forward(sequences.narrow(0, p, 1));
    logits.square().sum().backward();
    EXPECT_LT(LargestDifference(logits, together.narrow(0, p, 1)), 1e-12);
    EXPECT_LT(LargestDifference(alone.arena().gradients()[0], pack.arena().gradients()[p]), 1e-11);
  }
}

// Compares with each sequence alone, in training and, token by token, with the cache.
TEST_P(LanguageModelTest, SequencesMayHaveTheirOwnPositions) {
  constexpr int64_t kLength = 6;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder decoder(GetParam(), dtype, {1});
    const Decoder other(GetParam(), dtype, {1}, {}, /*position_seed=*/9);
    const at::Tensor sequences = Tokens(1, 1, 2, kLength);
    std::vector<at::Tensor> alone;
    for (const Decoder* positioned : {static_cast<const Decoder*>(&decoder), &other}) {
      const auto i = static_cast<int64_t>(alone.size());
      alone.push_back(decoder.model().Forward(
          decoder.parameters(), {.tokens = sequences.select(1, i), .groups = {{1, kLength}}},
          positioned->positions(), nullptr, nullptr));
      alone.back().square().sum().backward();
    }
    const at::Tensor expected = at::cat(alone, 1).detach();
    const at::Tensor gradients = decoder.arena().gradients().clone();
    decoder.arena().gradients().zero_();
    const at::Tensor positions = at::cat(
        {decoder.positions().narrow(2, 0, kLength), other.positions().narrow(2, 0, kLength)}, 2);
    const at::Tensor together =
        decoder.model().Forward(decoder.parameters(),
                                {.tokens = sequences.flatten(1, 2),
                                 .groups = {{.examples = 2, .length = kLength}},
                                 .own_positions = true},
                                positions, nullptr, nullptr);
    together.square().sum().backward();
    EXPECT_LT(LargestDifference(together, expected), Tolerance(dtype));
    EXPECT_LT(LargestDifference(decoder.arena().gradients(), gradients),
              Tolerance(dtype) * gradients.abs().max().item<double>());

    // The positions of a token are written just before it.
    const at::Tensor known = at::stack({decoder.positions(), other.positions()}, 2);
    const at::Tensor written = at::zeros_like(known);
    const auto cache = decoder.model().StartDecoding(written);
    int64_t seen = 0;
    for (const int64_t count : {3, 1, 1, 1}) {
      written.narrow(3, seen, count).copy_(known.narrow(3, seen, count));
      const at::Tensor decoded =
          decoder.model().Decode(decoder.parameters(), sequences.narrow(2, seen, count), *cache);
      seen += count;
      EXPECT_LT(LargestDifference(decoded, expected.unflatten(1, {2, kLength}).select(2, seen - 1)),
                Tolerance(dtype));
    }
  }
}

// Lengths of the chunks in which a sequence is passed to the cache.
using Chunks = std::vector<int64_t>;

// Logits of Decode after each chunk of sequences [P, B, n]: [P, B, chunks, V].
at::Tensor Decoded(const Decoder& decoder, const at::Tensor& sequences, const Chunks& chunks) {
  const ParameterSet parameters = decoder.parameters();
  const auto cache = decoder.model().StartDecoding(decoder.positions());
  std::vector<at::Tensor> logits;
  int64_t seen = 0;
  for (const int64_t count : chunks) {
    logits.push_back(decoder.model().Decode(parameters, sequences.narrow(2, seen, count), *cache));
    seen += count;
  }
  return at::stack(logits, 2);
}

// Logits of Forward at the same tokens.
at::Tensor Recomputed(const Decoder& decoder, const at::Tensor& sequences, const Chunks& chunks) {
  const at::Tensor logits = decoder.Forward(sequences).detach();
  std::vector<at::Tensor> last;
  int64_t seen = 0;
  for (const int64_t count : chunks) last.push_back(logits.select(2, (seen += count) - 1));
  return at::stack(last, 2);
}

TEST_P(LanguageModelTest, CachedDecodingMatchesForward) {
  const std::vector<Chunks> ways = {
      Chunks(kLongest, 1), {kLongest}, {8, 1, 1, 1, 1}, {1, 4, 1, 3, 1}, {5, 6}};
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    for (const int64_t members : {1, 2}) {
      const Decoder decoder(GetParam(), dtype,
                            members == 1 ? std::vector<uint64_t>{4} : std::vector<uint64_t>{4, 5});
      const at::Tensor sequences = Tokens(2, members, 3, kLongest);
      for (const Chunks& chunks : ways) {
        EXPECT_LT(LargestDifference(Decoded(decoder, sequences, chunks),
                                    Recomputed(decoder, sequences, chunks)),
                  Tolerance(dtype))
            << members << " members, " << chunks.size() << " chunks";
      }
    }
  }
}

TEST_P(LanguageModelTest, BatchedDecodingMatchesSingleSequences) {
  const Decoder decoder(GetParam(), at::kDouble, {4});
  const at::Tensor sequences = Tokens(2, 1, 3, 12);
  const Chunks chunks = {6, 1, 1, 1, 1, 1, 1};
  const at::Tensor batch = Decoded(decoder, sequences, chunks);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_LT(LargestDifference(Decoded(decoder, sequences.narrow(1, i, 1), chunks),
                                batch.narrow(1, i, 1)),
              1e-12);
  }
}

// Largest difference relative to the largest number.
double Share(const at::Tensor& a, const at::Tensor& b) {
  return LargestDifference(a, b) / b.abs().max().item<double>();
}

// bfloat16 has eight significant bits: rounding errs by at most 2^-9 of a number, and several
// layers by a few times that. float32 would err by less than 1e-6.
TEST_P(LanguageModelTest, Bfloat16OnlyRoundsLogitsAndGradients) {
  const at::Tensor sequences = Tokens(1, 1, 3, kLongest);
  Decoder exact(GetParam(), at::kFloat, {1}), rounded(GetParam(), at::kFloat, {1});
  rounded.UseBfloat16Products();
  std::vector<at::Tensor> logits;
  for (Decoder* decoder : {&exact, &rounded}) {
    logits.push_back(decoder->Forward(sequences));
    EXPECT_EQ(logits.back().scalar_type(), at::kFloat);
    logits.back().square().mean().backward();
  }
  EXPECT_GT(Share(logits[1], logits[0]), 1e-4);
  EXPECT_LT(Share(logits[1], logits[0]), 0.05);
  EXPECT_LT(Share(rounded.arena().gradients(), exact.arena().gradients()), 0.1);
  for (const auto& slot : rounded.arena().layout().slots()) {
    const at::Tensor gradient = rounded.arena().gradients()[0].narrow(0, slot.offset, slot.size);
    if (slot.shape.size() < 2 || slot.name == "embedding" ||
        slot.name.find("encoding") != std::string::npos) {
      continue;
    }
    // The gradient is the result of a product in bfloat16.
    EXPECT_TRUE(at::equal(gradient.to(at::kBFloat16).to(at::kFloat), gradient)) << slot.name;
    EXPECT_GT(gradient.abs().max().item<double>(), 0) << slot.name;
  }
  EXPECT_LT(Share(Decoded(rounded, sequences, {8, 1, 1, 1, 1, 1, 1}),
                  Recomputed(exact, sequences, {8, 1, 1, 1, 1, 1, 1})),
            0.05);
}

std::vector<EncodingCase> EncodingCases() {
  std::vector<EncodingCase> cases;
  for (const EncodingEntry* entry : EncodingEntries()) {
    if (!entry->is_added) continue;
    cases.push_back({.name = entry->name});
    if (entry->uses_positions()) cases.push_back({.name = entry->name, .randomized = true});
    for (const auto& parameter : entry->parameters) {
      if (parameter.name == "draws" && !parameter.omitted)
        cases.push_back({entry->name, true, true});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Encodings, LanguageModelTest, testing::ValuesIn(EncodingCases()),
                         [](const auto& test) {
                           return absl::StrCat(test.param.per_block ? "per_block_" : "",
                                               test.param.randomized ? "randomized_" : "",
                                               test.param.name);
                         });

catalogue::Parameters With(const std::string& name, catalogue::ParameterValue value) {
  catalogue::Parameters given;
  given.Set(name, std::move(value));
  return given;
}

// Expects equal logits and gradients of both decoders, for two groups of examples.
void ExpectTheSame(Decoder& decoder, Decoder& other, const DropoutNumbers* dropout) {
  const at::Tensor tokens = at::cat({Tokens(1, 1, 2, 5), Tokens(2, 1, 2, 3)}, 2).flatten(1);
  const ExampleGroups examples = {.tokens = tokens, .groups = {{2, 5}, {2, 3}}};
  std::vector<at::Tensor> logits;
  for (Decoder* each : {&decoder, &other}) {
    logits.push_back(
        each->model().Forward(each->parameters(), examples, each->positions(), dropout, nullptr));
    logits.back().square().sum().backward();
  }
  EXPECT_LT(LargestDifference(logits[0], logits[1]), 1e-12);
  EXPECT_GT(decoder.arena().gradients().abs().max().item<double>(), 1e-2);
  EXPECT_LT(LargestDifference(decoder.arena().gradients(), other.arena().gradients()), 1e-12);
}

TEST(CausalDecoderTest, CheckpointingKeepsGradients) {
  const DropoutNumbers dropout = {.seeds = {3}, .step = 2};
  for (const std::string encoding :
       {"none", "learned", "relative", "fire", "kerple_log", "formula"}) {
    SCOPED_TRACE(encoding);
    catalogue::Parameters network = With("dropout", 0.2);
    Decoder kept({.name = encoding}, at::kDouble, {1}, network);
    network.Set("recompute_activations", true);
    Decoder recomputed({.name = encoding}, at::kDouble, {1}, network);
    ExpectTheSame(kept, recomputed, &dropout);
  }
}

TEST(CausalDecoderTest, CheckpointingWorksInBfloat16) {
  catalogue::Parameters network;
  Decoder kept({.name = "relative"}, at::kFloat, {1}, network);
  network.Set("recompute_activations", true);
  Decoder recomputed({.name = "relative"}, at::kFloat, {1}, network);
  for (Decoder* decoder : {&kept, &recomputed}) {
    decoder->UseBfloat16Products();
    decoder->Forward(Tokens(1, 1, 2, 5)).square().sum().backward();
  }
  EXPECT_TRUE(at::equal(kept.arena().gradients(), recomputed.arena().gradients()));
}

// Captured attention is computed with tensors, as on devices without fused kernels.
TEST(CausalDecoderTest, Bfloat16TensorAttentionMatchesTheKernels) {
  for (const std::string encoding : {"none", "rope", "relative", "shaw", "alibi", "fire"}) {
    Decoder decoder({.name = encoding}, at::kFloat, {1});
    decoder.UseBfloat16Products();
    const at::Tensor sequences = Tokens(1, 1, 3, 9);
    Capture capture;
    const at::Tensor logits = decoder.model().Forward(
        decoder.parameters(), {.tokens = sequences.flatten(1), .groups = {{3, 9}}},
        decoder.positions(), nullptr, &capture);
    EXPECT_LT(Share(logits.unflatten(1, {3, 9}), decoder.Forward(sequences)), 0.05) << encoding;
    for (const at::Tensor& probabilities : capture.attention_probabilities) {
      EXPECT_EQ(probabilities.scalar_type(), at::kFloat) << encoding;
      EXPECT_LT(LargestDifference(probabilities.sum(-1), at::ones({1, 3, 2, 9})), 1e-6);
    }
  }
}

TEST(CausalDecoderTest, TiedOutputUsesTheEmbedding) {
  Decoder tied({.name = "none"}, at::kDouble, {1}, With("tied", true));
  Decoder untied({.name = "none"}, at::kDouble, {1});
  const int64_t table = kVocabulary * 16;
  const auto& slots = untied.arena().layout().slots();
  EXPECT_EQ(untied.arena().layout().parameter_count(),
            tied.arena().layout().parameter_count() + table);
  ASSERT_EQ(slots.back().name, "output");
  // The untied decoder gets the transposed table, so that both must agree.
  at::Tensor row = untied.arena().parameters()[0];
  row.narrow(0, slots.back().offset, table)
      .copy_(row.narrow(0, slots[0].offset, table).view({kVocabulary, 16}).t().flatten());
  const at::Tensor sequences = Tokens(1, 1, 2, 5);
  EXPECT_LT(LargestDifference(tied.Forward(sequences), untied.Forward(sequences)), 1e-12);
}

TEST(CausalDecoderTest, DropoutDependsOnTheExamplesIndex) {
  const Decoder decoder({.name = "none"}, at::kDouble, {1}, With("dropout", 0.3));
  const at::Tensor sequences = Tokens(1, 1, 4, 5);
  const DropoutNumbers training = {.seeds = {3}, .step = 2};
  const at::Tensor dropped = decoder.Forward(sequences, &training);
  EXPECT_GT(LargestDifference(dropped, decoder.Forward(sequences)), 1e-3);
  DropoutNumbers second_half = training;
  second_half.first_sequence = 2;
  EXPECT_LT(LargestDifference(decoder.Forward(sequences.narrow(1, 2, 2), &second_half),
                              dropped.narrow(1, 2, 2)),
            1e-12);
  DropoutNumbers evaluation = training;
  evaluation.purpose = random::Purpose::kEvaluationDropout;
  EXPECT_TRUE(at::equal(decoder.Forward(sequences, &evaluation), decoder.Forward(sequences)));
}

TEST(CausalDecoderTest, CaptureHoldsAttentionAndBlockFeatures) {
  const Decoder decoder({.name = "alibi"}, at::kDouble, {1});
  const at::Tensor sequences = Tokens(1, 1, 3, 5);
  Capture capture;
  const at::Tensor logits = decoder.model().Forward(
      decoder.parameters(), {.tokens = sequences.flatten(1), .groups = {{3, 5}}},
      decoder.positions(), nullptr, &capture);
  EXPECT_LT(LargestDifference(logits.unflatten(1, {3, 5}), decoder.Forward(sequences)), 1e-12);
  ASSERT_EQ(capture.attention_probabilities.size(), kBlocks);
  for (const at::Tensor& probabilities : capture.attention_probabilities) {
    EXPECT_EQ(probabilities.sizes(), (std::vector<int64_t>{1, 3, 2, 5, 5}));
    EXPECT_EQ(probabilities.triu(1).abs().max().item<double>(), 0);
  }
  ASSERT_EQ(capture.depths.size(), kBlocks + 1);
  // Each block has two norms before its layers and two after; one more follows the last block.
  ASSERT_EQ(capture.layer_outputs.size(), 4 * kBlocks + 1);
  for (const auto* kept : {&capture.depths, &capture.layer_outputs}) {
    for (const at::Tensor& features : *kept) {
      EXPECT_EQ(features.sizes(), (std::vector<int64_t>{1, 3, 5, 16}));
    }
  }
}

TEST(CreateLanguageModelTest, EachNetworkIsListedByItsTaskKinds) {
  for (const NetworkEntry* entry : NetworkEntries()) {
    const bool text = entry->Learns(tasks::TaskKind::kText);
    EXPECT_TRUE(!text || entry->task_kinds.size() == 1) << entry->name;
    const catalogue::Parameters parameters = Resolved(NetworkEntries(), entry->name, {});
    const catalogue::Parameters none = Resolved(EncodingEntries(), "none", {});
    ParameterLayout layout, other_layout;
    const absl::Status model =
        CreateLanguageModel(entry->name, parameters, "none", none,
                            {.input_columns = 4, .output_columns = 4, .longest_sequence = 10},
                            layout)
            .status();
    EXPECT_EQ(absl::IsNotFound(model), !text) << entry->name << ": " << model;
    const absl::Status network =
        CreateNetwork(entry->name, parameters, "none", none,
                      {.input_columns = 4, .output_columns = 3, .longest_sequence = 10},
                      other_layout)
            .status();
    EXPECT_EQ(absl::IsNotFound(network), text) << entry->name << ": " << network;
  }
}

TEST(CreateLanguageModelTest, RefusesInvalidCombinations) {
  ParameterLayout layout;
  const NetworkShape shape = {.input_columns = 4, .output_columns = 4, .longest_sequence = 3000};
  EXPECT_EQ(CreateLanguageModel("causal_encoder", {}, "none", {}, shape, layout).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CreateLanguageModel("encoder", {}, "none", {}, shape, layout).status().code(),
            absl::StatusCode::kNotFound);
  catalogue::Parameters randomized;
  randomized.Set("randomized", true);
  const absl::Status too_long =
      CreateLanguageModel("causal_decoder", Sized(1, 8, 2), "rope",
                          Resolved(EncodingEntries(), "rope", randomized), shape, layout)
          .status();
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(too_long.message().find("3000"), std::string::npos) << too_long;
  EXPECT_EQ(CreateLanguageModel("causal_decoder", Sized(1, 8, 3), "none",
                                Resolved(EncodingEntries(), "none", {}), shape, layout)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lengthwise::models
