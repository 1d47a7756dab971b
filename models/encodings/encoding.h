// Interface of positional encodings. An encoding gives at most an addition to the embeddings, a
// rotation of queries and keys, and a term of the attention logits; or it gives positions as
// vectors. Networks ask for these and never for the encoding's name. A term that depends on queries
// and keys has two forms: tensor operations, for every device and type, and numbers for a fused
// kernel.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ENCODING_H_
#define LENGTHWISE_MODELS_ENCODINGS_ENCODING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Rotation and logits' term as a fused kernel takes them (layouts in kernels/attention.h).
// Undefined tensors are absent. n is the number of tokens, `count` the number of queries (rows).
struct AttentionTerms {
  at::Tensor additive;  // [P or 1, H, count, n]
  // R as [P, H, dh, count, n]; if `toeplitz` and count = n, as [P, H, dh, 2n - 1].
  at::Tensor relative;
  bool toeplitz = false;
  // Recomputes R without a gradient, so that the backward pass need not keep a large R. The
  // operations that made R must not save it either.
  std::function<at::Tensor()> remake_relative;
  at::Tensor content_bias, position_bias;  // [P, H, dh]
  // In place of R, where R_ij = PE(p_j - p_i) W_R: PE(p) of all tokens [P, n, d], and W_R [P, d, H
  // dh]. See TermsWithoutR.
  at::Tensor sinusoids, projection;
  at::Tensor rotation;  // [P, n, dh]; needs count = n
  // True: token i sees only tokens 0 .. i.
  bool causal = false;
};

// Shapes: P members, B sequences, n tokens, H heads, d = d_model, dh = d / H.
//
// Immutable after construction; all methods are thread-safe. Positions are double [P, n], exact for
// integers, the same for all sequences of a batch. Where sequences have their own, [P, B, n],
// EmbeddingTermOf and Attend (attention.h) call these methods with each sequence as a member. Terms
// and rotations of a block get that block's positions. Angles are computed in double precision.
class Encoding {
 public:
  virtual ~Encoding() = default;

  // Addition to the embeddings, [P, 1, n, d] in the parameters' type; undefined for none. `block`
  // is 0 except in networks that add the encoding in every block.
  virtual at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                                   const at::Tensor& positions) const {
    return {};
  }

  // Angles of the tokens in block `block`: sines, then cosines, [P, n, dh] in the parameters' type;
  // undefined for none.
  virtual at::Tensor Rotation(const ParameterSet& parameters, int64_t block,
                              const at::Tensor& positions) const {
    return {};
  }

  // Rotates queries and keys [P, B, H, n, dh] of block `block` in place. Their type is the
  // parameters', or bfloat16 (layers/layers.h), and is kept.
  void Rotate(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
              at::Tensor& queries, at::Tensor& keys) const;

  // Addition to the scaled logits q.k / sqrt(dh) of block `block`, not scaled again: broadcastable
  // to [P, B, H, n, n] (rows are queries); undefined for none. Queries and keys are those after
  // Rotate. The term is at least float32 if it has numbers of its own.
  virtual at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions, const at::Tensor& queries,
                               const at::Tensor& keys) const;

  // Rotation and LogitTerm as numbers for rows first .. first + count - 1, in the parameters' type.
  // An encoding that overrides LogitTerm must override this. `count` is n unless RowsAtOnce is
  // smaller.
  virtual AttentionTerms Terms(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions, int64_t first, int64_t count) const {
    return {.additive = Bias(parameters, block, positions, first, count),
            .rotation = Rotation(parameters, block, positions)};
  }

  // Terms of all rows for kernels that need no R. An encoding whose R is not that of differences
  // between positions, or that has none, gives its Terms.
  virtual AttentionTerms TermsWithoutR(const ParameterSet& parameters, int64_t block,
                                       const at::Tensor& positions) const {
    return Terms(parameters, block, positions, 0, positions.size(1));
  }

  // Positions as vectors [P, n, vector_size()] in the parameters' type, for networks that attend by
  // them or append them to their input (EncodingContext::as_vectors). Encodings whose entry has
  // `gives_vectors` must override both.
  virtual at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const {
    return {};
  }
  virtual int64_t vector_size() const { return 0; }

  // Rows per call of Terms that keep its memory bounded, for `members` members and n = `tokens`: at
  // least 1; `tokens` if all fit.
  virtual int64_t RowsAtOnce(int64_t members, int64_t tokens) const { return tokens; }

  // True if Terms are the same for all blocks with the same positions, so that a network may
  // compute them once.
  virtual bool SameInEveryBlock() const { return false; }

  // Multiplies features of queries and keys, before all else: returns `qkv` [P, B, k, 3 d] as
  // Attend takes it, of the tokens first .. first + k - 1 at `positions` [P, k]. All tokens, unless
  // those before are cached.
  virtual at::Tensor Scaled(const ParameterSet& parameters, int64_t block,
                            const at::Tensor& positions, int64_t first,
                            const at::Tensor& qkv) const {
    return qkv;
  }

  // The positions that rotations and terms take, for those that EmbeddingTerm takes.
  virtual at::Tensor PositionsOfTerms(const at::Tensor& positions) const { return positions; }

 protected:
  // What LogitTerm and Terms are made of, unless they are overridden: the addition to the scaled
  // logits of block `block` that depends on neither queries nor keys, for queries first .. first +
  // count - 1 and all keys. [P or 1, H, count, n] in the parameters' type; undefined for none.
  // Differentiable in the parameters.
  virtual at::Tensor Bias(const ParameterSet& parameters, int64_t block,
                          const at::Tensor& positions, int64_t first, int64_t count) const {
    return {};
  }
};

// An encoding around `inner`, which must outlive it and does whatever is not overridden. But
// TermsWithoutR are Terms, which may be overridden.
class EncodingDecorator : public Encoding {
 public:
  explicit EncodingDecorator(const Encoding& inner) : inner_(inner) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    return inner_.EmbeddingTerm(parameters, block, positions);
  }
  at::Tensor Rotation(const ParameterSet& parameters, int64_t block,
                      const at::Tensor& positions) const override {
    return inner_.Rotation(parameters, block, positions);
  }
  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override {
    return inner_.LogitTerm(parameters, block, positions, queries, keys);
  }
  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    return inner_.Terms(parameters, block, positions, first, count);
  }
  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    return inner_.RowsAtOnce(members, tokens);
  }
  bool SameInEveryBlock() const override { return inner_.SameInEveryBlock(); }
  at::Tensor Scaled(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                    int64_t first, const at::Tensor& qkv) const override {
    return inner_.Scaled(parameters, block, positions, first, qkv);
  }
  at::Tensor PositionsOfTerms(const at::Tensor& positions) const override {
    return inner_.PositionsOfTerms(positions);
  }

 protected:
  const Encoding& inner_;
};

// EmbeddingTerm at positions [P, n], or [P, B, n] if sequences have their own: [P, 1 or B, n, d].
inline at::Tensor EmbeddingTermOf(const Encoding& encoding, const ParameterSet& parameters,
                                  int64_t block, const at::Tensor& positions) {
  if (positions.dim() == 2) return encoding.EmbeddingTerm(parameters, block, positions);
  const at::Tensor term = encoding.EmbeddingTerm(parameters, block, positions.flatten(1, 2));
  return term.defined() ? term.squeeze(1).unflatten(1, {positions.size(1), positions.size(2)})
                        : term;
}

struct EncodingShape {
  int64_t blocks = 0;
  int64_t heads = 0;
  int64_t d_model = 0;
  // dh if it is not d_model / heads; 0 if it is.
  int64_t head_size = 0;
  // True if the network adds the encoding in every block, so that each block has its own table.
  bool in_every_block = false;
  // True if tokens see no later tokens.
  bool causal = false;
  // Most tokens of any sequence in training or evaluation.
  int64_t longest_sequence = 0;

  int64_t HeadSize() const { return head_size == 0 ? d_model / heads : head_size; }
};

// Creates an encoding of the catalogue and adds its parameters to the layout, named "encoding." or
// "blocks.{b}.encoding.". `parameters` come from catalogue::Resolve. Returns NOT_FOUND for an
// unknown name.
absl::StatusOr<std::unique_ptr<Encoding>> CreateEncoding(absl::string_view name,
                                                         const catalogue::Parameters& parameters,
                                                         const EncodingShape& shape,
                                                         ParameterLayout& layout);

// Factory functions of the encodings; each encoding's own file defines its CreateNAME. `parameters`
// are resolved with the encoding's entry and have passed its check.
#define LENGTHWISE_CREATE(Name)                                                   \
  std::unique_ptr<Encoding> Create##Name(const catalogue::Parameters& parameters, \
                                         const EncodingShape& shape, ParameterLayout& layout);
LENGTHWISE_ENCODINGS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ENCODING_H_
