// Scaled dot-product attention, forward and backward, in one pass over a CPU's caches: of the [n,
// n] tensors of each sequence and head, only a few rows exist at a time, and the backward pass
// recomputes them (Dao et al. 2022, FlashAttention, section 3.1; here rows are short enough for
// whole softmaxes). No LibTorch: memory comes from the caller.
//
//   logits[i, j] = scale ((q_i + u) . k_j + (q_i + w) . R_ij) + A_ij,    scale = 1 / sqrt(dh)
//   output_i = sum_j softmax_j(logits[i, :]) v_j
//
// with rotated queries and keys (rope; Su et al. 2021, section 3.2.2), a relative term R (u, w:
// Transformer-XL's content and position bias; Dai et al. 2019, section 3.3), an additive term A
// (alibi), both or neither. R and A are shared by the sequences of a batch.
//
// Shapes: P members, B sequences, H heads, n queries, m keys, dh numbers a head; float32.
//
// Results are the same bits for any number of threads and for any P: sums over sequences are those
// of fixed chunks of sequences, added in order. They may differ between instruction sets (chosen at
// run time, Highway's dynamic dispatch).
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

struct AttentionShape {
  int64_t members = 1;
  int64_t sequences = 1;
  int64_t heads = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t head_size = 1;
};

// One vector of dh adjacent numbers for each member, sequence, head and token; strides count
// numbers, so that a view of [P, B, n, d], or of queries, keys and values side by side, needs no
// copy.
template <typename T>
struct HeadVectors {
  T* data = nullptr;
  int64_t member = 0;
  int64_t sequence = 0;
  int64_t head = 0;
  int64_t token = 0;

  T* Item(int64_t p, int64_t b, int64_t h) const {
    return data + p * member + b * sequence + h * head;
  }
};

// Terms that an encoding adds to the logits. A null pointer is an absent term.
struct AttentionTerms {
  // A, [P, H, n, m], or [1, H, n, m] for all members.
  const float* additive = nullptr;
  bool additive_shared = false;
  // R as [P, H, dh, n, m], or for `toeplitz`, where R_ij depends on j - i alone, as [P, H, dh, n +
  // m
  // - 1] with the place j - i + n - 1.
  const float* relative = nullptr;
  bool toeplitz = false;
  // u and w, [P, H, dh]; given where R is. bias_stride is the numbers from one member's to the
  // next's; 0: H dh.
  const float* content_bias = nullptr;
  const float* position_bias = nullptr;
  int64_t bias_stride = 0;
  // Sines and then cosines of the angles of every token, [P, n, dh], where n = m and dh is even.
  // The features 2c and 2c + 1 of queries and keys are turned by the c-th angle, before u and w are
  // added.
  const float* rotation = nullptr;
  // Query i sees the keys 0 .. first_query + i alone, where `causal`; nothing is computed of the
  // others. first_query is the first query's place among the keys.
  bool causal = false;
  int64_t first_query = 0;
};

struct AttentionInputs {
  AttentionShape shape;
  HeadVectors<const float> queries, keys, values;
  AttentionTerms terms;
};

// Writes the output (vectors of dh for each query) and, unless null, `log_sum_exp` [P, B, H, n] of
// the logits' rows, which AttentionBackward needs.
void AttentionForward(const AttentionInputs& inputs, const HeadVectors<float>& output,
                      float* log_sum_exp, const ParallelFor& parallel_for);

// Destinations of the gradients, which are overwritten, not accumulated. Terms' gradients have the
// terms' shapes, except that `additive` is always [P, H, n, m]. Null: not computed.
struct AttentionGradients {
  HeadVectors<float> queries, keys, values;
  float* additive = nullptr;
  float* relative = nullptr;
  float* content_bias = nullptr;
  float* position_bias = nullptr;
};

// From the gradient of the output, and the output and `log_sum_exp` of AttentionForward. Beside the
// gradients it needs memory for a few sequences' queries, keys and values and for one head's R and
// A in each thread, and for copies of the gradients of R (B / 128, or B / 8 of a Toeplitz one) and
// of A (B / 8; not above 64 MiB for a member's, or one copy).
void AttentionBackward(const AttentionInputs& inputs, const HeadVectors<const float>& output,
                       const HeadVectors<const float>& output_gradient, const float* log_sum_exp,
                       const AttentionGradients& gradients, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_H_
