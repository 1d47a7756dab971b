// The kernels of tensor_feed_forward_cuda.h and their launches. A block takes some rows of a member
// and has its weights in shared memory. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_INL_H_

#include <cstdint>

#include "models/kernels/bfloat16.h"
#include "models/kernels/simt.h"
#include "models/kernels/simt_matrix.h"
#include "models/kernels/sum_parts-inl.h"
#include "models/kernels/tensor_feed_forward_cuda.h"

namespace lengthwise::kernels {

// A warp of the forward pass takes 32 rows at a time, and all hidden features. A warp of the
// backward pass takes 32 hidden features of all rows, and keeps their weights and the sums of their
// gradients in registers.
constexpr int kFeedForwardThreads = 128, kFeedForwardBackwardThreads = 256;
constexpr int kRowsOfWarp = 32, kHiddenOfWarp = 32;
// Rows that a block of the backward pass has in shared memory.
constexpr int kTileRows = 64;
// Numbers from row to row in shared memory: odd multiples of 16 bytes, so that eight rows of a
// matrix lie in different banks.
constexpr int kFeaturesStride = kTensorFeatures + 8;
constexpr int kHiddenStride = kTensorHidden + 8;
constexpr int kTileStride = kTileRows + 8;

struct TensorFeedForwardCall {
  TensorFeedForwardInputs inputs;
  int64_t block_rows;  // that a block takes
  int64_t groups;      // blocks of a member
  BFloat16* y;         // of the forward pass
  // Of the backward pass.
  const BFloat16* y_gradient;
  BFloat16* x_gradient;
  float* parts;  // [P, groups, kTensorFeedForwardNumbers]
};

// What a thread works on.
struct FeedForwardPlace {
  LENGTHWISE_DEVICE explicit FeedForwardPlace(const TensorFeedForwardCall& call)
      : warp(simt::Thread() / simt::kWarp), g(simt::Lane() / 4), t(simt::Lane() % 4) {
    p = simt::Block() / call.groups;
    first = p * call.inputs.rows + simt::Block() % call.groups * call.block_rows;
    const int64_t of_block = first + call.block_rows, of_member = (p + 1) * call.inputs.rows;
    end = of_block < of_member ? of_block : of_member;
    up = call.inputs.up + p * kTensorFeatures * kTensorHidden;
    down = call.inputs.down + p * kTensorFeatures * kTensorHidden;
    up_bias = call.inputs.up_bias + p * call.inputs.up_stride;
  }

  int warp;
  int g, t;  // see simt_matrix.h
  int64_t p;
  int64_t first, end;  // rows, in [P rows]
  const BFloat16* up;
  const BFloat16* down;
  const float* up_bias;
};

// Begins to copy kRows rows to shared memory, zeros for those behind the first `there`, of which
// there is at least one. kThreads threads share it, of which this one is `thread`.
template <int kRows, int kWidth, int kStride, int kThreads>
LENGTHWISE_DEVICE void StageRows(const BFloat16* from, int64_t there, int thread, BFloat16* to) {
  constexpr int kEights = kWidth / 8;
  for (int i = thread; i < kRows * kEights; i += kThreads) {
    const int row = i / kEights, column = i % kEights * 8;
    simt::StartCopy(from + (row < there ? row : 0) * kWidth + column, row < there,
                    to + row * kStride + column);
  }
}

// Loads a square of 16 rows and columns from shared memory as four matrices, each transposed if
// kTransposed: two below each other and then those beside them, or the other way if kByRows.
template <int kStride, bool kByRows, bool kTransposed>
LENGTHWISE_DEVICE void LoadSquare(const BFloat16* at, uint32_t (&x)[4]) {
  const int lane = simt::Lane();
  const int row = kByRows ? lane % 8 + lane / 16 * 8 : lane % 16;
  const int column = kByRows ? lane / 8 % 2 * 8 : lane / 16 * 8;
  simt::LoadMatrices<4, kTransposed>(at + row * kStride + column, x);
}

// Adds a b [16, 16] to two neighbouring results.
LENGTHWISE_DEVICE void AddProducts(const uint32_t (&a)[4], const uint32_t (&b)[4], float (&left)[4],
                                   float (&right)[4]) {
  simt::AddProduct(a, b[0], b[1], left);
  simt::AddProduct(a, b[2], b[3], right);
}

constexpr int64_t kFeedForwardBytes =
    int64_t{4} * (FloatsOfRows(kTensorFeatures, kHiddenStride) +
                  FloatsOfRows(kTensorHidden, kFeaturesStride) + kTensorHidden +
                  FloatsOfRows(kFeedForwardThreads / simt::kWarp * kRowsOfWarp, kFeaturesStride));

LENGTHWISE_KERNEL_FOR(kFeedForwardThreads, 2)
void TensorFeedForwardKernel(TensorFeedForwardCall call) {
  const FeedForwardPlace place(call);
  simt::SharedArrays arrays;
  BFloat16* up = TakeRows(arrays, kTensorFeatures, kHiddenStride);
  BFloat16* down = TakeRows(arrays, kTensorHidden, kFeaturesStride);
  float* up_bias = arrays.Take(kTensorHidden);
  StageRows<kTensorFeatures, kTensorHidden, kHiddenStride, kFeedForwardThreads>(
      place.up, kTensorFeatures, simt::Thread(), up);
  StageRows<kTensorHidden, kTensorFeatures, kFeaturesStride, kFeedForwardThreads>(
      place.down, kTensorHidden, simt::Thread(), down);
  for (int i = simt::Thread(); i < kTensorHidden; i += kFeedForwardThreads) {
    up_bias[i] = place.up_bias[i];
  }
  constexpr int kWarps = kFeedForwardThreads / simt::kWarp;
  // The warp's next rows come while it computes.
  BFloat16* const next = TakeRows(arrays, kWarps * kRowsOfWarp, kFeaturesStride) +
                         place.warp * kRowsOfWarp * kFeaturesStride;
  const auto bring = [&](int64_t row) {
    if (row >= place.end) return;
    StageRows<kRowsOfWarp, kTensorFeatures, kFeaturesStride, simt::kWarp>(
        call.inputs.x + row * kTensorFeatures, place.end - row, simt::Lane(), next);
  };
  const int64_t first = place.first + place.warp * kRowsOfWarp;
  bring(first);
  simt::WaitForCopies();
  simt::Barrier();
  const float* down_bias = call.inputs.down_bias + place.p * call.inputs.down_stride;
  for (int64_t row = first; row < place.end; row += kWarps * kRowsOfWarp) {
    uint32_t x[2][4][4];  // first operands of two times sixteen rows
    float y[2][8][4];
    simt::WaitForCopies();
    simt::WarpBarrier();
    LENGTHWISE_UNROLL
    for (int m = 0; m < 2; ++m) {
      LENGTHWISE_UNROLL
      for (int k = 0; k < 4; ++k) {
        LoadSquare<kFeaturesStride, false, false>(next + 16 * (m * kFeaturesStride + k), x[m][k]);
      }
      LENGTHWISE_UNROLL
      for (int n = 0; n < 8; ++n) {
        LENGTHWISE_UNROLL
        for (int k = 0; k < 4; ++k) y[m][n][k] = down_bias[8 * n + 2 * place.t + k % 2];
      }
    }
    simt::WarpBarrier();
    bring(row + kWarps * kRowsOfWarp);
    for (int c = 0; c < kTensorHidden; c += 16) {
      float hidden[2][2][4];
      LENGTHWISE_UNROLL
      for (int i = 0; i < 16; ++i) {
        hidden[i / 8][i / 4 % 2][i % 4] = up_bias[c + i / 4 % 2 * 8 + 2 * place.t + i % 2];
      }
      uint32_t b[4], a[2][4];
      LENGTHWISE_UNROLL
      for (int k = 0; k < 4; ++k) {
        LoadSquare<kHiddenStride, false, true>(up + 16 * k * kHiddenStride + c, b);
        LENGTHWISE_UNROLL
        for (int m = 0; m < 2; ++m) AddProducts(x[m][k], b, hidden[m][0], hidden[m][1]);
      }
      LENGTHWISE_UNROLL
      for (int i = 0; i < 16; ++i) {
        float& h = hidden[i / 8][i / 4 % 2][i % 4];
        if (h < 0) h = 0;
      }
      LENGTHWISE_UNROLL
      for (int m = 0; m < 2; ++m) AsOperand(hidden[m][0], hidden[m][1], a[m]);
      LENGTHWISE_UNROLL
      for (int n = 0; n < 4; ++n) {
        LoadSquare<kFeaturesStride, false, true>(down + c * kFeaturesStride + 16 * n, b);
        LENGTHWISE_UNROLL
        for (int m = 0; m < 2; ++m) AddProducts(a[m], b, y[m][2 * n], y[m][2 * n + 1]);
      }
    }
    LENGTHWISE_UNROLL
    for (int i = 0; i < 32; ++i) {
      const int m = i / 16, n = i / 2 % 8, r = i % 2;
      const int64_t to = row + 16 * m + place.g + 8 * r;
      if (to >= place.end) continue;
      PutTwo(y[m][n][2 * r], y[m][n][2 * r + 1],
             call.y + to * kTensorFeatures + 8 * n + 2 * place.t);
    }
  }
}

constexpr int64_t kFeedForwardBackwardBytes =
    int64_t{4} *
    (FloatsOfRows(kTensorFeatures, kHiddenStride) + 4 * FloatsOfRows(kTileRows, kFeaturesStride) +
     FloatsOfRows(kTensorHidden, kTileStride) + kFeedForwardBackwardThreads);

// Hidden features are rows of a warp's matrices: then they are first operands of the products that
// are summed over rows, as they come.
LENGTHWISE_KERNEL_FOR(kFeedForwardBackwardThreads, 1)
void TensorFeedForwardBackwardKernel(TensorFeedForwardCall call) {
  const FeedForwardPlace place(call);
  const int g = place.g, t = place.t, first_hidden = place.warp * kHiddenOfWarp;
  simt::SharedArrays arrays;
  BFloat16* up = TakeRows(arrays, kTensorFeatures, kHiddenStride);
  // Rows of x and of the gradient of y: of a tile, and of the next one, which come meanwhile.
  BFloat16* const tiles = TakeRows(arrays, 4 * kTileRows, kFeaturesStride);
  BFloat16* gradients = TakeRows(arrays, kTensorHidden, kTileStride);  // of hidden features
  float* of_threads = arrays.Take(kFeedForwardBackwardThreads);
  StageRows<kTensorFeatures, kTensorHidden, kHiddenStride, kFeedForwardBackwardThreads>(
      place.up, kTensorFeatures, simt::Thread(), up);
  simt::WaitForCopies();
  simt::Barrier();
  // The warp's rows of up, transposed, and of down.
  uint32_t rows_of_up[2][4][4], rows_of_down[2][4][4];
  float bias[4];
  LENGTHWISE_UNROLL
  for (int i = 0; i < 2; ++i) {
    LENGTHWISE_UNROLL
    for (int k = 0; k < 4; ++k) {
      LoadSquare<kHiddenStride, true, true>(up + 16 * k * kHiddenStride + first_hidden + 16 * i,
                                            rows_of_up[i][k]);
      LENGTHWISE_UNROLL
      for (int r = 0; r < 4; ++r) {
        rows_of_down[i][k][r] =
            Two(place.down + (first_hidden + 16 * i + g + r % 2 * 8) * kTensorFeatures + 16 * k +
                2 * t + r / 2 * 8);
      }
    }
  }
  LENGTHWISE_UNROLL
  for (int i = 0; i < 4; ++i) bias[i] = place.up_bias[first_hidden + 8 * i + g];
  // Sums over the rows: of the weights' gradients [32, 64], and of the biases'.
  float of_up[2][8][4] = {}, of_down[2][8][4] = {}, of_bias[4] = {}, of_down_bias = 0;

  constexpr int kTileNumbers = kTileRows * kFeaturesStride;
  const auto bring = [&](int64_t tile, BFloat16* to) {
    if (tile >= place.end) return;
    const int64_t from = tile * kTensorFeatures, there = place.end - tile;
    StageRows<kTileRows, kTensorFeatures, kFeaturesStride, kFeedForwardBackwardThreads>(
        call.inputs.x + from, there, simt::Thread(), to);
    StageRows<kTileRows, kTensorFeatures, kFeaturesStride, kFeedForwardBackwardThreads>(
        call.y_gradient + from, there, simt::Thread(), to + kTileNumbers);
  };
  bring(place.first, tiles);
  int odd = 0;
  for (int64_t tile = place.first; tile < place.end; tile += kTileRows, odd = 1 - odd) {
    const BFloat16* const x = tiles + odd * 2 * kTileNumbers;
    const BFloat16* const dy = x + kTileNumbers;
    simt::WaitForCopies();
    simt::Barrier();
    bring(tile + kTileRows, tiles + (1 - odd) * 2 * kTileNumbers);
    for (int row = 0; row < kTileRows; row += 16) {
      float hidden[2][2][4], gradient[2][2][4] = {};
      uint32_t b[4], hidden_rows[2][4], gradient_rows[2][4];
      LENGTHWISE_UNROLL
      for (int i = 0; i < 16; ++i) hidden[i / 8][i / 4 % 2][i % 4] = bias[i / 8 * 2 + i % 4 / 2];
      LENGTHWISE_UNROLL
      for (int k = 0; k < 4; ++k) {
        LoadSquare<kFeaturesStride, true, false>(x + row * kFeaturesStride + 16 * k, b);
        LENGTHWISE_UNROLL
        for (int i = 0; i < 2; ++i) AddProducts(rows_of_up[i][k], b, hidden[i][0], hidden[i][1]);
        LoadSquare<kFeaturesStride, true, false>(dy + row * kFeaturesStride + 16 * k, b);
        LENGTHWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
          AddProducts(rows_of_down[i][k], b, gradient[i][0], gradient[i][1]);
        }
      }
      LENGTHWISE_UNROLL
      for (int i = 0; i < 16; ++i) {
        float& h = hidden[i / 8][i / 4 % 2][i % 4];
        float& d = gradient[i / 8][i / 4 % 2][i % 4];
        if (h <= 0) h = d = 0;
        of_bias[i / 8 * 2 + i % 4 / 2] += d;
      }
      LENGTHWISE_UNROLL
      for (int i = 0; i < 2; ++i) {
        AsOperand(hidden[i][0], hidden[i][1], hidden_rows[i]);
        AsOperand(gradient[i][0], gradient[i][1], gradient_rows[i]);
        LENGTHWISE_UNROLL
        for (int r = 0; r < 4; ++r) {
          PutBits(gradient_rows[i][r], gradients +
                                           (first_hidden + 16 * i + g + r % 2 * 8) * kTileStride +
                                           row + 2 * t + r / 2 * 8);
        }
      }
      LENGTHWISE_UNROLL
      for (int n = 0; n < 4; ++n) {
        LoadSquare<kFeaturesStride, false, true>(dy + row * kFeaturesStride + 16 * n, b);
        LENGTHWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
          AddProducts(hidden_rows[i], b, of_down[i][2 * n], of_down[i][2 * n + 1]);
        }
        LoadSquare<kFeaturesStride, false, true>(x + row * kFeaturesStride + 16 * n, b);
        LENGTHWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
          AddProducts(gradient_rows[i], b, of_up[i][2 * n], of_up[i][2 * n + 1]);
        }
      }
    }
    for (int row = simt::Thread() / kTensorFeatures; row < kTileRows;
         row += kFeedForwardBackwardThreads / kTensorFeatures) {
      of_down_bias += ToFloat(dy[row * kFeaturesStride + simt::Thread() % kTensorFeatures]);
    }
    simt::Barrier();
    // The gradient of x: half of the tile's rows and a quarter of the features for each warp.
    const int half = place.warp % 2 * 32, quarter = place.warp / 2 * 16;
    float dx[2][2][4] = {};
    for (int c = 0; c < kTensorHidden; c += 16) {
      uint32_t a[4], b[4];
      LoadSquare<kHiddenStride, true, false>(up + quarter * kHiddenStride + c, b);
      LENGTHWISE_UNROLL
      for (int i = 0; i < 2; ++i) {
        LoadSquare<kTileStride, true, true>(gradients + c * kTileStride + half + 16 * i, a);
        AddProducts(a, b, dx[i][0], dx[i][1]);
      }
    }
    LENGTHWISE_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int n = i / 2 % 2, r = i % 2;
      const int64_t to = tile + half + i / 4 * 16 + g + 8 * r;
      if (to >= place.end) continue;
      PutTwo(dx[i / 4][n][2 * r], dx[i / 4][n][2 * r + 1],
             call.x_gradient + to * kTensorFeatures + quarter + 8 * n + 2 * t);
    }
  }

  float* part = call.parts + simt::Block() * kTensorFeedForwardNumbers;
  float* down_part = part + kTensorFeatures * kTensorHidden;
  float* bias_part = down_part + kTensorFeatures * kTensorHidden;
  LENGTHWISE_UNROLL
  for (int i = 0; i < 64; ++i) {
    const int m = i / 32, n = i / 4 % 8, k = i % 4;
    const int hidden = first_hidden + 16 * m + g + k / 2 * 8, feature = 8 * n + 2 * t + k % 2;
    part[feature * kTensorHidden + hidden] = of_up[m][n][k];
    down_part[hidden * kTensorFeatures + feature] = of_down[m][n][k];
  }
  simt::AddOther(1, of_bias);
  simt::AddOther(2, of_bias);
  if (t == 0) {
    LENGTHWISE_UNROLL
    for (int i = 0; i < 4; ++i) bias_part[first_hidden + 8 * i + g] = of_bias[i];
  }
  of_threads[simt::Thread()] = of_down_bias;
  simt::Barrier();
  if (simt::Thread() >= kTensorFeatures) return;
  for (int i = simt::Thread() + kTensorFeatures; i < kFeedForwardBackwardThreads;
       i += kTensorFeatures) {
    of_down_bias += of_threads[i];
  }
  bias_part[kTensorHidden + simt::Thread()] = of_down_bias;
}

// Blocks of `block_rows` rows that share a member's, and the numbers of all their partial sums.
inline int64_t FeedForwardGroups(const TensorFeedForwardInputs& inputs, int64_t block_rows) {
  return (inputs.rows + block_rows - 1) / block_rows;
}
inline int64_t FeedForwardPartNumbers(const TensorFeedForwardInputs& inputs, int64_t block_rows) {
  return inputs.members * FeedForwardGroups(inputs, block_rows) * kTensorFeedForwardNumbers;
}

template <typename Launcher>
void LaunchTensorFeedForward(Launcher& launcher, const TensorFeedForwardInputs& inputs,
                             int64_t block_rows, BFloat16* y) {
  const int64_t groups = FeedForwardGroups(inputs, block_rows);
  const TensorFeedForwardCall call = {
      .inputs = inputs, .block_rows = block_rows, .groups = groups, .y = y};
  launcher.Launch(&TensorFeedForwardKernel, inputs.members * groups, kFeedForwardThreads,
                  kFeedForwardBytes, call);
}

template <typename Launcher>
void LaunchTensorFeedForwardBackward(Launcher& launcher, const TensorFeedForwardInputs& inputs,
                                     int64_t block_rows, const BFloat16* y_gradient,
                                     BFloat16* x_gradient, float* gradients, float* workspace) {
  const int64_t groups = FeedForwardGroups(inputs, block_rows);
  const TensorFeedForwardCall call = {.inputs = inputs,
                                      .block_rows = block_rows,
                                      .groups = groups,
                                      .y_gradient = y_gradient,
                                      .x_gradient = x_gradient,
                                      .parts = workspace};
  launcher.Launch(&TensorFeedForwardBackwardKernel, inputs.members * groups,
                  kFeedForwardBackwardThreads, kFeedForwardBackwardBytes, call);
  LaunchSum(launcher, workspace, inputs.members, groups, kTensorFeedForwardNumbers, gradients);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_INL_H_
