// A positional encoding: at most an addition to the embeddings, a rotation of queries and keys, and
// a term added to the attention logits; or the positions as vectors. Networks ask for these and
// never for the encoding's name. Rotation and term exist twice: as operations on tensors, for every
// device and type, and as the numbers that a fused kernel takes.
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
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// What rotation and logits' term are made of, in a fused kernel's layouts (kernels/attention.h);
// undefined tensors are absent. n tokens, of which `count` ask: the rows.
struct AttentionTerms {
  at::Tensor additive;  // [P or 1, H, count, n]
  // R as [P, H, dh, count, n]; with `toeplitz` and count = n as [P, H, dh, 2n - 1].
  at::Tensor relative;
  bool toeplitz = false;
  // Where R is large and soon made: makes it again, without a gradient, so that no R has to be kept
  // for the backward pass. So R must not come from operations that keep it for theirs.
  std::function<at::Tensor()> remake_relative;
  at::Tensor content_bias, position_bias;  // [P, H, dh]
  at::Tensor rotation;                     // [P, n, dh]; where it is given, count = n
  // Token i sees the tokens 0 .. i alone.
  bool causal = false;
};

// Shapes: P members, B sequences, n tokens, H heads, d = d_model, dh = d / H.
//
// Immutable after construction; methods may be called from any thread. Positions are int64 [P, n],
// at least 0, one draw for all sequences of a batch; a term or rotation of a block gets that
// block's. Angles are computed in double precision.
class Encoding {
 public:
  virtual ~Encoding() = default;

  // What to add to the embeddings, [P, 1, n, d] in the parameters' type, or an undefined tensor for
  // nothing. `block` is 0 but in networks that add the encoding in every block.
  virtual at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                                   const at::Tensor& positions) const {
    return {};
  }

  // Rotates queries and keys [P, B, H, n, dh] of block `block` in place of the originals, in their
  // type: the parameters', or bfloat16 (layers/products.h).
  virtual void Rotate(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                      at::Tensor& queries, at::Tensor& keys) const {}

  // What to add to the scaled logits q.k / sqrt(dh) of block `block`: broadcastable to [P, B, H, n,
  // n] (rows are queries), or an undefined tensor for nothing. It is not scaled again. Queries and
  // keys are those of Rotate; the term is at least float32 where it has numbers of its own.
  virtual at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions, const at::Tensor& queries,
                               const at::Tensor& keys) const {
    return {};
  }

  // Rotate and LogitTerm as numbers for the rows first .. first + count - 1, in the parameters'
  // type. An encoding that has one of those must have this. `count` is n but where RowsAtOnce says
  // less.
  virtual AttentionTerms Terms(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions, int64_t first, int64_t count) const {
    return {};
  }

  // The positions as vectors [P, n, vector_size()] in the parameters' type, for networks that
  // attend by them or read them beside their input (EncodingContext::as_vectors). An encoding whose
  // entry says that it gives vectors must have both.
  virtual at::Tensor Vectors(const ParameterSet& parameters, const at::Tensor& positions) const {
    return {};
  }
  virtual int64_t vector_size() const { return 0; }

  // How many rows' terms fit into a sensible amount of memory for `members` members and n `tokens`,
  // at least 1; tokens where all do.
  virtual int64_t RowsAtOnce(int64_t members, int64_t tokens) const { return tokens; }

  // Whether Terms are the same for every block that has the same positions, so that a network may
  // ask once.
  virtual bool SameInEveryBlock() const { return false; }
};

struct EncodingShape {
  int64_t blocks = 0;
  int64_t heads = 0;
  int64_t d_model = 0;
  // dh where it is not d_model / heads; 0 where it is.
  int64_t head_size = 0;
  // Whether the network adds the encoding in every block, so that each has a table of its own.
  bool in_every_block = false;
  // Whether tokens see none behind them.
  bool causal = false;
  // Most tokens of any sequence in training or evaluation.
  int64_t longest_sequence = 0;

  int64_t HeadSize() const { return head_size == 0 ? d_model / heads : head_size; }
};

// Creates an encoding of the catalogue and adds its parameters to the layout, named "encoding." or
// "blocks.{b}.encoding.". NOT_FOUND for an unknown name. `parameters` come from catalogue::Resolve.
absl::StatusOr<std::unique_ptr<Encoding>> CreateEncoding(absl::string_view name,
                                                         const catalogue::Parameters& parameters,
                                                         const EncodingShape& shape,
                                                         ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ENCODING_H_
