// Additions to simt.h for tensor cores: what the 32 lanes of a warp do together with small matrices
// of bfloat16. Every lane of the warp must call each function. Devices need compute capability 8.0.
//
// An operand of a product lies in the warp's registers as PTX documents it for mma.sync (m16n8k16
// and m16n8k8): a register holds two neighbouring numbers, and a [8, 8] matrix is one register of
// every lane. Lane 4 g + t has the columns 2 t and 2 t + 1 of row g; of a product's second operand,
// the rows 2 t and 2 t + 1 of column g. A result [16, 8] of float32 has the rows g and g + 8.
#ifndef LENGTHWISE_MODELS_KERNELS_SIMT_MATRIX_H_
#define LENGTHWISE_MODELS_KERNELS_SIMT_MATRIX_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "models/kernels/bfloat16.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels::simt {

LENGTHWISE_DEVICE int Lane() { return Thread() % kWarp; }
LENGTHWISE_DEVICE float Low(uint32_t x) { return ToFloat(BFloat16{static_cast<uint16_t>(x)}); }
LENGTHWISE_DEVICE float High(uint32_t x) {
  return ToFloat(BFloat16{static_cast<uint16_t>(x >> 16)});
}

#ifdef __CUDACC__

LENGTHWISE_DEVICE uint32_t Pack(float low, float high) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

LENGTHWISE_DEVICE float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Orders what the lanes of a warp read and write in shared memory before it and after it.
LENGTHWISE_DEVICE void WarpBarrier() { __syncwarp(); }

// The number of the lane that differs by the bits of `mask`.
LENGTHWISE_DEVICE float OfOther(int mask, float x) { return __shfl_xor_sync(0xFFFFFFFFU, x, mask); }

// d += a b for a [16, 16] and b [16, 8].
LENGTHWISE_DEVICE void AddProduct(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&d)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d += a b for a [16, 8] and b [8, 8].
LENGTHWISE_DEVICE void AddProduct(const uint32_t (&a)[2], uint32_t b, float (&d)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

LENGTHWISE_DEVICE uint32_t Transposed(uint32_t x) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// Loads kCount matrices [8, 8] from shared memory, each transposed if kTransposed. Lane 8 m + r
// gives the address of row r of matrix m, a multiple of 16 bytes; other lanes' do not matter.
template <int kCount, bool kTransposed>
LENGTHWISE_DEVICE void LoadMatrices(const BFloat16* row, uint32_t (&x)[kCount]) {
  static_assert(kCount == 2 || kCount == 4);
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kCount == 4 && kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kCount == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  } else if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(x[0]), "=r"(x[1])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(x[0]), "=r"(x[1])
                 : "r"(at)
                 : "memory");
  }
}

#else

inline uint32_t Pack(float low, float high) {
  return FromFloat<BFloat16>(low).bits | static_cast<uint32_t>(FromFloat<BFloat16>(high).bits)
                                             << 16;
}

inline float Exp2(float x) { return exp2f(x); }

// The operands of a lane in a Together call.
template <typename Operands>
Operands& OperandsOf(void* const* lanes, int lane) {
  return *static_cast<Operands*>(lanes[lane]);
}

// Number k of the register that has columns 2 t and 2 t + 1 of row g.
inline float Number(uint32_t x, int k) { return k == 0 ? Low(x) : High(x); }

inline bool RunNothing(void* const*) { return true; }
inline void WarpBarrier() { Together(&RunNothing, nullptr); }

struct ShuffleOperands {
  int mask;
  float x, y;
};
inline bool RunShuffle(void* const* lanes) {
  for (int l = 0; l < kWarp; ++l) {
    auto& mine = OperandsOf<ShuffleOperands>(lanes, l);
    mine.y = OperandsOf<ShuffleOperands>(lanes, l ^ mine.mask).x;
  }
  return true;
}
inline float OfOther(int mask, float x) {
  ShuffleOperands mine = {mask, x, 0};
  Together(&RunShuffle, &mine);
  return mine.y;
}

struct ProductOperands {
  uint32_t a[4], b[2];
  float* d;
};
template <int kDepth>
bool RunProduct(void* const* lanes) {
  float a[16][kDepth], b[kDepth][8];
  for (int l = 0; l < kWarp; ++l) {
    const auto& mine = OperandsOf<ProductOperands>(lanes, l);
    const int g = l / 4, t = l % 4;
    for (int k = 0; k < 2; ++k) {
      for (int r = 0; r < kDepth / 4; ++r) {
        a[g + r % 2 * 8][2 * t + k + r / 2 * 8] = Number(mine.a[r], k);
      }
      for (int r = 0; r < kDepth / 8; ++r) b[2 * t + k + 8 * r][g] = Number(mine.b[r], k);
    }
  }
  for (int l = 0; l < kWarp; ++l) {
    float* d = OperandsOf<ProductOperands>(lanes, l).d;
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < kDepth; ++k) d[r] += a[l / 4 + r / 2 * 8][k] * b[k][l % 4 * 2 + r % 2];
    }
  }
  return true;
}
inline void AddProduct(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&d)[4]) {
  ProductOperands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, d};
  Together(&RunProduct<16>, &mine);
}
inline void AddProduct(const uint32_t (&a)[2], uint32_t b, float (&d)[4]) {
  ProductOperands mine = {{a[0], a[1]}, {b}, d};
  Together(&RunProduct<8>, &mine);
}

struct TransposeOperands {
  uint32_t x, y;
};
inline bool RunTranspose(void* const* lanes) {
  for (int l = 0; l < kWarp; ++l) {
    const auto bits = [&](int row, int column) {
      const uint32_t x = OperandsOf<TransposeOperands>(lanes, 4 * row + column / 2).x;
      return column % 2 == 0 ? x & 0xFFFF : x >> 16;
    };
    const int g = l / 4, t = l % 4;
    OperandsOf<TransposeOperands>(lanes, l).y = bits(2 * t, g) | bits(2 * t + 1, g) << 16;
  }
  return true;
}
inline uint32_t Transposed(uint32_t x) {
  TransposeOperands mine = {x, 0};
  Together(&RunTranspose, &mine);
  return mine.y;
}

struct MatrixOperands {
  const BFloat16* row;
  uint32_t* x;
};
template <int kCount, bool kTransposed>
bool RunLoad(void* const* lanes) {
  for (int l = 0; l < kWarp; ++l) {
    for (int m = 0; m < kCount; ++m) {
      const auto bits = [&](int row, int column) -> uint32_t {
        return OperandsOf<MatrixOperands>(lanes, 8 * m + row).row[column].bits;
      };
      const int g = l / 4, t = l % 4;
      OperandsOf<MatrixOperands>(lanes, l).x[m] = kTransposed
                                                      ? bits(2 * t, g) | bits(2 * t + 1, g) << 16
                                                      : bits(g, 2 * t) | bits(g, 2 * t + 1) << 16;
    }
  }
  return true;
}
template <int kCount, bool kTransposed>
void LoadMatrices(const BFloat16* row, uint32_t (&x)[kCount]) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) ReportOddAddress();
  MatrixOperands mine = {row, x};
  Together(&RunLoad<kCount, kTransposed>, &mine);
}

#endif

}  // namespace lengthwise::kernels::simt

namespace lengthwise::kernels {

using Eight = simt::Several<BFloat16, 8>;

// Two neighbours by one access: their address must be a multiple of four.
LENGTHWISE_DEVICE uint32_t Two(const BFloat16* at) {
  const auto two = simt::Load<2>(at);
  uint32_t x;
  memcpy(&x, &two, sizeof(x));
  return x;
}
LENGTHWISE_DEVICE void PutBits(uint32_t bits, BFloat16* at) {
  simt::Several<BFloat16, 2> two;
  memcpy(&two, &bits, sizeof(two));
  simt::Store(two, at);
}
LENGTHWISE_DEVICE void PutTwo(float low, float high, BFloat16* at) {
  PutBits(simt::Pack(low, high), at);
}

// Two neighbouring results [16, 8] as a first operand [16, 16].
LENGTHWISE_DEVICE void AsOperand(const float (&left)[4], const float (&right)[4],
                                 uint32_t (&a)[4]) {
  a[0] = simt::Pack(left[0], left[1]);
  a[1] = simt::Pack(left[2], left[3]);
  a[2] = simt::Pack(right[0], right[1]);
  a[3] = simt::Pack(right[2], right[3]);
}

// Floats of shared memory that hold `rows` rows of bfloat16, and these rows.
LENGTHWISE_EVERYWHERE constexpr int FloatsOfRows(int rows, int stride) { return rows * stride / 2; }
LENGTHWISE_DEVICE BFloat16* TakeRows(simt::SharedArrays& arrays, int rows, int stride) {
  return reinterpret_cast<BFloat16*>(arrays.Take(FloatsOfRows(rows, stride)));
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_SIMT_MATRIX_H_
