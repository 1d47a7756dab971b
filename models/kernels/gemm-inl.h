// Matrix products, compiled per instruction set (hwy/foreach_target.h), for the layers of small
// networks: thousands of rows by a few dozen or hundred columns.
//
// Every element of a product is one sum in the order of the inner index. Its bits therefore do not
// depend on which rows are computed together.
#if defined(LENGTHWISE_MODELS_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_GEMM_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_GEMM_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "models/kernels/scratch.h"
#include "models/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace gemm {

// Register tile: kTileRows rows of kPanelVectors vectors. Sums, one row of b and a factor fit into
// AVX-512's 32 registers and into AVX2's 16.
constexpr int64_t kTileRows = 6;
constexpr int64_t kPanelVectors = kLanes == 16 ? 4 : 2;
constexpr int64_t kPanel = kPanelVectors * kLanes;

// Strided view: row-major, column-major or transposed.
struct Matrix {
  const float* data;
  int64_t row;
  int64_t column;

  const float* At(int64_t r, int64_t c) const { return data + r * row + c * column; }
};

HWY_INLINE int64_t Panels(int64_t columns) { return (columns + kPanel - 1) / kPanel; }
// Floats that Pack writes.
HWY_INLINE int64_t PackedSize(int64_t rows, int64_t columns) {
  return rows * Panels(columns) * kPanel;
}

// Copies `from` [rows, columns] into consecutive panels [rows, kPanel], the last padded with zeros,
// so that Tile's inner loop reads aligned, contiguous memory.
inline void Pack(const Matrix& from, int64_t rows, int64_t columns, float* HWY_RESTRICT to) {
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t count = std::min(kPanel, columns - first);
    for (int64_t r = 0; r < rows; ++r, to += kPanel) {
      const float* HWY_RESTRICT row = from.At(r, first);
      if (from.column == 1) {
        std::copy_n(row, count, to);
      } else {
        for (int64_t c = 0; c < count; ++c) to[c] = row[c * from.column];
      }
      std::fill(to + count, to + kPanel, 0.0F);
    }
  }
}

// Packs the matrices [rows, columns] of all members, PackedSize(rows, columns) floats each. They
// lie one after another, or as their transposes.
inline const float* PackMembers(const float* matrices, int64_t rows, int64_t columns,
                                int64_t members, bool transposed, Scratch& scratch) {
  const int64_t packed = PackedSize(rows, columns);
  float* to = scratch.Zeros(members * packed);
  for (int64_t p = 0; p < members; ++p) {
    Pack({matrices + p * rows * columns, transposed ? 1 : columns, transposed ? rows : 1}, rows,
         columns, to + p * packed);
  }
  return to;
}

// Epilogues: map a finished sum to the stored value. `row` and `column` are its place in the
// product.
struct AsItIs {
  HWY_INLINE FloatVector operator()(FloatVector sum, int64_t, int64_t) const { return sum; }
  HWY_INLINE float operator()(float sum, int64_t, int64_t) const { return sum; }
};

struct PlusBias {
  const float* bias;
  HWY_INLINE FloatVector operator()(FloatVector sum, int64_t, int64_t column) const {
    return hn::Add(sum, hn::LoadU(Floats(), bias + column));
  }
  HWY_INLINE float operator()(float sum, int64_t, int64_t column) const {
    return sum + bias[column];
  }
};

// max(sum + bias, 0). The comparison, unlike Max, propagates NaN.
struct PlusBiasRelu {
  const float* bias;
  HWY_INLINE FloatVector operator()(FloatVector sum, int64_t, int64_t column) const {
    const Floats d;
    const auto biased = hn::Add(sum, hn::LoadU(d, bias + column));
    return hn::IfThenZeroElse(hn::Lt(biased, hn::Zero(d)), biased);
  }
  HWY_INLINE float operator()(float sum, int64_t, int64_t column) const {
    const float biased = sum + bias[column];
    return biased < 0 ? 0 : biased;
  }
};

// Gradient of ReLU: 0 where `active` [rows, columns] is at most 0, otherwise the sum.
struct WhereActive {
  const float* active;
  int64_t stride;
  HWY_INLINE FloatVector operator()(FloatVector sum, int64_t row, int64_t column) const {
    const Floats d;
    const auto off = hn::Le(hn::LoadU(d, active + row * stride + column), hn::Zero(d));
    return hn::IfThenZeroElse(off, sum);
  }
  HWY_INLINE float operator()(float sum, int64_t row, int64_t column) const {
    return active[row * stride + column] <= 0 ? 0 : sum;
  }
};

// Multiplies kRows rows of `a` by a packed panel. With kAdd, sums continue from the values in `to`.
// Stores finish(sum, row, column); `row` and `column` are those of the tile's first element.
template <int kRows, bool kAdd, typename Finish>
HWY_INLINE void Tile(const Matrix& a, int64_t inner, const float* HWY_RESTRICT panel,
                     const Finish& finish, int64_t row, int64_t column, float* HWY_RESTRICT to,
                     int64_t stride) {
  const Floats d;
  FloatVector sums[kRows][kPanelVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) {
      sums[r][v] = kAdd ? hn::LoadU(d, to + r * stride + v * kLanes) : hn::Zero(d);
    }
  }
  const float* HWY_RESTRICT x = a.data;
  for (int64_t k = 0; k < inner; ++k, panel += kPanel, x += a.column) {
    FloatVector b[kPanelVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) b[v] = hn::Load(d, panel + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, x[r * a.row]);
#pragma GCC unroll 4
      for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = hn::MulAdd(factor, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) {
      hn::StoreU(finish(sums[r][v], row + r, column + v * kLanes), d, to + r * stride + v * kLanes);
    }
  }
}

// Tile for the panel's first `columns` columns. A narrower panel goes through a padded buffer, so
// that nothing is read or written outside `to`.
template <int kRows, bool kAdd, typename Finish>
HWY_NOINLINE void Part(const Matrix& a, int64_t inner, const float* panel, const Finish& finish,
                       int64_t row, int64_t column, int64_t columns, float* to, int64_t stride) {
  if (columns >= kPanel) {
    Tile<kRows, kAdd>(a, inner, panel, finish, row, column, to, stride);
    return;
  }
  HWY_ALIGN float sums[kRows * kPanel] = {};
  if (kAdd) {
    for (int64_t r = 0; r < kRows; ++r) std::copy_n(to + r * stride, columns, sums + r * kPanel);
  }
  Tile<kRows, kAdd>(a, inner, panel, AsItIs(), 0, 0, sums, kPanel);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      to[r * stride + c] = finish(sums[r * kPanel + c], row + r, column + c);
    }
  }
}

// to [rows, columns] = finish(a [rows, inner] b [inner, columns]), or with kAdd, finish(to + a b).
// `packed` is b, packed.
template <bool kAdd, typename Finish>
void Multiply(const Matrix& a, int64_t rows, int64_t inner, const float* packed, int64_t columns,
              const Finish& finish, float* to, int64_t stride) {
  for (int64_t c = 0; c < columns; c += kPanel, packed += inner * kPanel) {
    const int64_t width = columns - c;
    const auto part = [&](auto count, int64_t r) {
      Part<decltype(count)::value, kAdd>({a.At(r, 0), a.row, a.column}, inner, packed, finish, r, c,
                                         width, to + r * stride + c, stride);
    };
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) {
      part(std::integral_constant<int, kTileRows>(), r);
    }
    [&]<int... kLess>(std::integer_sequence<int, kLess...>) {
      ((rows - r == kLess + 1 ? part(std::integral_constant<int, kLess + 1>(), r) : void()), ...);
    }
    (std::make_integer_sequence<int, kTileRows - 1>());
  }
}

// Rows per packed block of b: the panel stays in L1 cache while all columns of a are multiplied
// with it.
constexpr int64_t kSummedRows = 128;

// to [columns of a, columns of b] += a^T b over `rows` rows; a and b are contiguous. `packed` is
// scratch of PackedSize(kSummedRows, columns of b) floats.
inline void AddTransposedProduct(const float* a, int64_t a_columns, const float* b,
                                 int64_t b_columns, int64_t rows, float* packed, float* to) {
  for (int64_t first = 0; first < rows; first += kSummedRows) {
    const int64_t count = std::min(kSummedRows, rows - first);
    Pack({b + first * b_columns, b_columns, 1}, count, b_columns, packed);
    Multiply</*kAdd=*/true>({a + first * a_columns, 1, a_columns}, a_columns, count, packed,
                            b_columns, AsItIs(), to, b_columns);
  }
}

// sums [columns] += each row of `a`, in order.
inline void AddRows(const float* a, int64_t rows, int64_t columns, float* HWY_RESTRICT sums) {
  for (int64_t r = 0; r < rows; ++r, a += columns) AddNumbers(a, columns, sums);
}

}  // namespace gemm
}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
