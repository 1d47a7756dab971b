// Transformer decoder of decimal addition (Zhou et al. 2024, E.2 and Table E.1): causal, with
// RMS norms around its layers, a gated feed-forward layer and no biases.
//
//   h = E[token] sqrt(d) + encoding
//   per block:  h = h + N(MHA(N(h)));  h = h + N((gelu(x G) * (x V)) O), x = N(h)
//   logits = N(h) U
//
// The looped decoder applies its blocks, one function f, several times: h = f(h + e) with the
// embeddings e of the first line, from h = 0.
//
// This is norm = "sandwich". "residual_post" has h = N(h + f(N(h))), "primer" one norm before
// attention and one after the feed-forward layer (models/networks/normed_residual.h). U is a matrix
// of its own or, if tied, the transposed E.
//
// E and U start as N(0, 1/d), the other matrices as N(0, 1/fan_in) truncated at two standard
// deviations. The paper specifies neither, nor the factor sqrt(d), which is Vaswani et al.'s.
// Optional dropout follows the embeddings, attention and feed-forward layers. The encoding's
// parameters come after the network's own, so that models with different encodings start from the
// same network weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "c10/core/GradMode.h"
#include "models/attention/attention.h"
#include "models/attention/attention_cache.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/norms.h"
#include "models/layers/recompute.h"
#include "models/networks/catalogue.h"
#include "models/networks/factory.h"
#include "models/networks/normed_residual.h"
#include "models/networks/parameterized_layers.h"

namespace lengthwise::models {
namespace {

using Groups = std::vector<ExampleGroups::Group>;

// Parameters of one block. One matrix holds queries, keys and values; another holds gate and value.
struct Block {
  Block(ParameterLayout& layout, const std::string& prefix, const BlockNorms& norms, int64_t d,
        int64_t d_ff)
      : attention(layout, prefix + "attention", norms.attention, d),
        inputs(AddWeight(layout, prefix + "attention.inputs", d, 3 * d)),
        output(AddWeight(layout, prefix + "attention.output", d, d)),
        feed_forward(layout, prefix + "feed_forward", norms.feed_forward, d),
        up(AddWeight(layout, prefix + "feed_forward.inputs", d, 2 * d_ff)),
        down(AddWeight(layout, prefix + "feed_forward.output", d_ff, d)) {}

  NormedResidual attention;
  ParameterId inputs, output;
  NormedResidual feed_forward;
  ParameterId up, down;
};

class Cache : public DecodingCache {
 public:
  at::Tensor positions;  // [P, S, T]
  int64_t seen = 0;
  std::vector<AttentionCache> layers;
};

// Splits [P, 1, N, f] into the groups' [P, examples, length, f]. A single split operation, so that
// its gradient is written once.
std::vector<at::Tensor> Split(const at::Tensor& features, const Groups& groups) {
  std::vector<int64_t> sizes;
  for (const auto& group : groups) sizes.push_back(group.examples * group.length);
  std::vector<at::Tensor> parts = features.squeeze(1).split_with_sizes(sizes, 1);
  for (size_t g = 0; g < groups.size(); ++g) {
    parts[g] = parts[g].unflatten(1, {groups[g].examples, groups[g].length});
  }
  return parts;
}

// Inverse of Split.
at::Tensor Join(std::vector<at::Tensor> parts) {
  for (at::Tensor& part : parts) part = part.flatten(1, 2);
  return (parts.size() == 1 ? parts[0] : at::cat(parts, 1)).unsqueeze(1);
}

// Index into the positions for each of the N tokens.
at::Tensor Places(const Groups& groups, bool own, const at::TensorOptions& options) {
  std::vector<at::Tensor> places;
  for (const auto& group : groups) {
    if (own) {
      places.push_back(at::arange(group.first_position,
                                  group.first_position + group.examples * group.length, options));
      continue;
    }
    places.push_back(at::arange(group.first_position, group.first_position + group.length, options)
                         .expand({group.examples, group.length})
                         .reshape({group.examples * group.length}));
  }
  return places.size() == 1 ? places[0] : at::cat(places);
}

class CausalDecoder : public LanguageModel {
 public:
  explicit CausalDecoder(const NetworkParts& parts)
      : heads_(parts.parameters.Int("heads")),
        d_model_(parts.parameters.Int("d_model")),
        loops_(parts.parameters),
        gelu_(parts.parameters.String("gelu") == "tanh" ? Gelu::kTanh : Gelu::kExact),
        tied_(parts.parameters.Bool("tied")),
        dropout_rate_(parts.parameters.Double("dropout")),
        whole_prompts_(parts.parameters.String("prompt_attention") == "bidirectional"),
        recompute_activations_(parts.parameters.Bool("recompute_activations")) {
    const int64_t d_ff = FeedForwardFeatures(parts.parameters, d_model_);
    const Initializer normal = {.kind = Initializer::Kind::kNormal,
                                .stddev = 1 / std::sqrt(static_cast<double>(d_model_))};
    const BlockNorms norms = BlockNormsOf(parts.parameters.String("norm"));
    embedding_ = parts.layout.Add("embedding", {parts.shape.input_columns, d_model_}, normal);
    for (int64_t b = 0; b < parts.parameters.Int("blocks"); ++b) {
      blocks_.emplace_back(parts.layout, absl::StrCat("blocks.", b, "."), norms, d_model_, d_ff);
    }
    final_norm_ = parts.layout.Add("norm.scale", {d_model_}, {.kind = Initializer::Kind::kOnes});
    if (!tied_) {
      output_ = parts.layout.Add("output", {d_model_, parts.shape.output_columns}, normal);
    }
    encoding_ = parts.make_encoding({.causal = !whole_prompts_});
    if (!whole_prompts_) encoding_ = MakeCausal(std::move(encoding_));
  }

  at::Tensor Forward(const ParameterSet& parameters, const ExampleGroups& examples,
                     const at::Tensor& positions, const DropoutNumbers* dropout,
                     Capture* capture) const override {
    if (loops_.per_token > 0 && examples.groups.size() > 1) {
      return ForwardOneByOne(parameters, examples, positions, dropout);
    }
    // Shared with the backward pass, which recomputes blocks.
    const auto step = std::make_shared<Step>(
        Step{.groups = examples.groups,
             .own_positions = examples.own_positions,
             .positions = positions,
             .dropout = dropout == nullptr ? std::nullopt : std::optional(*dropout)});
    const bool recompute =
        recompute_activations_ && capture == nullptr && c10::GradMode::is_enabled();
    if (!recompute) step->terms = TermsOfAllBlocks(parameters, *step, capture);
    const at::Tensor embedded =
        Drop(EmbedTokens(parameters, examples.tokens.unsqueeze(1),
                         positions.select(1, 0).narrow(1, 0, examples.Positions()),
                         Places(step->groups, examples.own_positions, examples.tokens.options())),
             0, *step);
    at::Tensor h = embedded;
    if (capture != nullptr) capture->depths.push_back(h);
    const size_t layers = Layers(examples.groups[0].prompt);
    for (size_t layer = 0; layer < layers; ++layer) {
      h = WithInput(h, embedded, layer);
      if (recompute) {
        h = Recomputed(parameters, h,
                       [this, layer, step](const ParameterSet& leaves, const at::Tensor& features) {
                         return BlockOfStep(leaves, layer, *step, features, nullptr);
                       });
      } else {
        h = BlockOfStep(parameters, layer, *step, h, capture);
      }
      if (capture != nullptr) capture->depths.push_back(h);
    }
    const at::Tensor logits = Logits(parameters, h, capture);
    if (capture != nullptr) SeparateExamples(step->groups, *capture);
    return logits.squeeze(1);
  }

  std::unique_ptr<DecodingCache> StartDecoding(const at::Tensor& positions) const override {
    auto cache = std::make_unique<Cache>();
    cache->positions = positions;
    return cache;
  }

  at::Tensor Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                    DecodingCache& given_cache) const override {
    const c10::NoGradGuard no_gradients;
    auto& cache = static_cast<Cache&>(given_cache);
    const int64_t count = tokens.size(2);
    if (cache.seen == 0) AddLayers(parameters, tokens.size(1), count, cache);
    const at::Tensor embedded =
        EmbedTokens(parameters, tokens, cache.positions.select(1, 0).narrow(-1, cache.seen, count),
                    at::arange(count, tokens.options()));
    const auto keep = [](const at::Tensor& features, uint32_t) { return features; };
    at::Tensor h = embedded;
    for (size_t layer = 0; layer < cache.layers.size(); ++layer) {
      const auto attend = [&](const at::Tensor& qkv) {
        return cache.layers[layer].Attend(parameters, qkv);
      };
      h = ApplyBlock(parameters, layer, WithInput(h, embedded, layer), attend, keep, nullptr);
    }
    cache.seen += count;
    return Logits(parameters, h.narrow(2, count - 1, 1), nullptr).squeeze(2);
  }

 private:
  // Applications of a block to examples whose prompts have `prompt` tokens. Layer i applies block
  // i % blocks.
  size_t Layers(int64_t prompt) const {
    return blocks_.size() * static_cast<size_t>(loops_.Of(prompt));
  }

  // The input of a layer, from the output of the one before it.
  at::Tensor WithInput(const at::Tensor& h, const at::Tensor& embedded, size_t layer) const {
    const bool starts_loop = layer > 0 && layer % blocks_.size() == 0;
    return loops_.inject_input && starts_loop ? h.add(embedded) : h;
  }

  // Groups have different numbers of layers.
  at::Tensor ForwardOneByOne(const ParameterSet& parameters, const ExampleGroups& examples,
                             const at::Tensor& positions, const DropoutNumbers* dropout) const {
    DropoutNumbers numbers = dropout == nullptr ? DropoutNumbers() : *dropout;
    std::vector<at::Tensor> logits;
    int64_t first = 0;
    for (const ExampleGroups::Group& group : examples.groups) {
      const int64_t count = group.examples * group.length;
      logits.push_back(Forward(parameters,
                               {.tokens = examples.tokens.narrow(1, first, count),
                                .groups = {group},
                                .own_positions = examples.own_positions},
                               positions, dropout == nullptr ? nullptr : &numbers, nullptr));
      first += count;
      numbers.first_sequence += group.examples;
    }
    return at::cat(logits, 1);
  }

  void AddLayers(const ParameterSet& parameters, int64_t sequences, int64_t prompt,
                 Cache& cache) const {
    const size_t layers = Layers(prompt);
    cache.layers.reserve(layers);
    for (size_t layer = 0; layer < layers; ++layer) {
      const size_t b = layer % blocks_.size();
      cache.layers.emplace_back(*encoding_, static_cast<int64_t>(b), heads_, d_model_, sequences,
                                encoding_->PositionsOfTerms(OfBlock(cache.positions, b)),
                                parameters[embedding_]);
    }
  }

  static at::Tensor OfBlock(const at::Tensor& positions, size_t b) {
    return positions.select(1, positions.size(1) == 1 ? 0 : static_cast<int64_t>(b));
  }

  // Slices positions [P, T]: [P, length] or, with own ones, [P, examples, length].
  static at::Tensor OfGroup(const at::Tensor& positions, bool own,
                            const ExampleGroups::Group& group) {
    if (!own) return positions.narrow(1, group.first_position, group.length);
    return positions.narrow(1, group.first_position, group.examples * group.length)
        .unflatten(1, {group.examples, group.length});
  }

  // Embeds `tokens` [P, B, k] as [P, B, k, d]. The j-th token has position places[j] or, if the
  // positions are [P, B, k], its own.
  at::Tensor EmbedTokens(const ParameterSet& parameters, const at::Tensor& tokens,
                         const at::Tensor& positions, const at::Tensor& places) const {
    const double scale = std::sqrt(static_cast<double>(d_model_));
    const at::Tensor h = Embed(tokens, parameters[embedding_].mul(scale));
    const at::Tensor term = EmbeddingTermOf(*encoding_, parameters, 0, positions);
    if (!term.defined()) return h;
    return h.add(positions.dim() == 3 ? term : term.index_select(2, places));
  }

  // Runs a layer's block. `attend` maps queries, keys and values [P, B, n, 3 d] to [P, B, n, d].
  at::Tensor ApplyBlock(
      const ParameterSet& parameters, size_t layer, const at::Tensor& h,
      absl::FunctionRef<at::Tensor(const at::Tensor&)> attend,
      absl::FunctionRef<at::Tensor(const at::Tensor& features, uint32_t site)> drop,
      Capture* capture) const {
    const Block& block = blocks_[layer % blocks_.size()];
    const uint32_t site = DropoutSite(layer);
    const auto attention = [&](const at::Tensor& x) {
      return drop(
          Linear(attend(Linear(Operand(x), parameters[block.inputs])), parameters[block.output]),
          site);
    };
    const auto feed_forward = [&](const at::Tensor& x) {
      return drop(GatedFeedForward(
                      x, {.inputs = parameters[block.up], .output = parameters[block.down]}, gelu_),
                  site + 1);
    };
    return block.feed_forward(parameters, block.attention(parameters, h, attention, capture),
                              feed_forward, capture);
  }

  // State shared by the blocks of one forward pass.
  struct Step {
    Groups groups;
    bool own_positions = false;
    at::Tensor positions;  // [P, S, T]
    std::optional<DropoutNumbers> dropout;
    // One per group if all blocks have the same terms; otherwise empty.
    std::vector<AttentionTerms> terms;
  };

  // Calls `use` with the encoding of a group's attention, masked for its prompts.
  template <typename Use>
  auto WithEncodingOf(const ExampleGroups::Group& group, Use use) const {
    return whole_prompts_ ? use(PromptMasked(*encoding_, heads_, group.prompt)) : use(*encoding_);
  }

  // Computes terms once for all blocks. Returns nothing if blocks differ or the fused kernels are
  // not used.
  std::vector<AttentionTerms> TermsOfAllBlocks(const ParameterSet& parameters, const Step& step,
                                               const Capture* capture) const {
    const int64_t members = step.positions.size(0);
    const bool keep = capture != nullptr && capture->keep_attention;
    if (keep || !CanFuse(parameters[embedding_]) || !encoding_->SameInEveryBlock() ||
        step.positions.size(1) > 1) {
      return {};
    }
    const at::Tensor given = step.positions.select(1, 0);
    std::vector<AttentionTerms> terms;
    for (const auto& group : step.groups) {
      // Too many rows for memory: Attend computes terms for some rows at a time.
      if (!c10::GradMode::is_enabled() &&
          encoding_->RowsAtOnce(members, group.length) < group.length) {
        return {};
      }
      const at::Tensor positions =
          encoding_->PositionsOfTerms(OfGroup(given, step.own_positions, group));
      if (positions.dim() == 3) return {};
      terms.push_back(WithEncodingOf(group, [&](const Encoding& encoding) {
        return encoding.Terms(parameters, 0, positions, 0, group.length);
      }));
    }
    return terms;
  }

  // `h` is [P, 1, N, d].
  at::Tensor BlockOfStep(const ParameterSet& parameters, size_t layer, const Step& step,
                         const at::Tensor& h, Capture* capture) const {
    const size_t b = layer % blocks_.size();
    return ApplyBlock(
        parameters, layer, h,
        [&](const at::Tensor& qkv) { return AttendInGroups(parameters, b, step, qkv, capture); },
        [&](const at::Tensor& features, uint32_t site) { return Drop(features, site, step); },
        capture);
  }

  // `qkv` is [P, 1, N, 3 d].
  at::Tensor AttendInGroups(const ParameterSet& parameters, size_t b, const Step& step,
                            const at::Tensor& qkv, Capture* capture) const {
    const bool keep = capture != nullptr && capture->keep_attention;
    const at::Tensor positions = OfBlock(step.positions, b);
    AttentionMaps maps;
    std::vector<at::Tensor> parts = Split(qkv, step.groups);
    for (size_t g = 0; g < parts.size(); ++g) {
      if (!step.terms.empty()) {
        const at::Tensor places =
            encoding_->PositionsOfTerms(OfGroup(positions, step.own_positions, step.groups[g]));
        parts[g] = FusedAttention(
            encoding_->Scaled(parameters, static_cast<int64_t>(b), places, 0, parts[g]), heads_,
            step.terms[g]);
        continue;
      }
      parts[g] = WithEncodingOf(step.groups[g], [&](const Encoding& encoding) {
        return Attend(encoding, parameters, static_cast<int64_t>(b), heads_,
                      OfGroup(positions, step.own_positions, step.groups[g]), parts[g],
                      keep ? &maps : nullptr);
      });
    }
    if (keep) {
      capture->attention_logits.push_back(maps.logits);
      capture->attention_probabilities.push_back(maps.probabilities);
    }
    return Join(std::move(parts));
  }

  at::Tensor Drop(const at::Tensor& features, uint32_t site, const Step& step) const {
    if (dropout_rate_ == 0 || !step.dropout.has_value() || !step.dropout->training()) {
      return features;
    }
    DropoutNumbers of_group = *step.dropout;
    std::vector<at::Tensor> parts = Split(features, step.groups);
    for (at::Tensor& part : parts) {
      part = Dropout(part, dropout_rate_, site, of_group);
      of_group.first_sequence += part.size(1);
    }
    return Join(std::move(parts));
  }

  at::Tensor Logits(const ParameterSet& parameters, const at::Tensor& h, Capture* capture) const {
    const at::Tensor last = RmsNorm(h, parameters[final_norm_]);
    if (capture != nullptr) capture->layer_outputs.push_back(last);
    return Linear(last, tied_ ? parameters[embedding_].transpose(1, 2) : parameters[output_]);
  }

  // A capture has a single group.
  static void SeparateExamples(const Groups& groups, Capture& capture) {
    for (std::vector<at::Tensor>* kept : {&capture.layer_outputs, &capture.depths}) {
      for (at::Tensor& features : *kept) features = Split(features, groups)[0];
    }
  }

  int64_t heads_;
  int64_t d_model_;
  Loops loops_;
  Gelu gelu_;
  bool tied_;
  double dropout_rate_;
  bool whole_prompts_;
  bool recompute_activations_;
  ParameterId embedding_ = 0;
  std::vector<Block> blocks_;
  ParameterId final_norm_ = 0;
  ParameterId output_ = 0;
  // Causal, unless prompts attend to themselves in both directions.
  std::unique_ptr<Encoding> encoding_;
};

}  // namespace

int64_t ExampleGroups::Positions() const {
  int64_t positions = 0;
  for (const Group& group : groups) {
    const int64_t examples = own_positions ? group.examples : 1;
    positions = std::max(positions, group.first_position + examples * group.length);
  }
  return positions;
}

std::unique_ptr<LanguageModel> CreateCausalDecoder(const NetworkParts& parts) {
  return std::make_unique<CausalDecoder>(parts);
}

}  // namespace lengthwise::models
