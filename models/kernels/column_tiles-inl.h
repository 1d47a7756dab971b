// Block layout for sums down the columns of [P, rows, width]. A block owns a chunk of one member's
// rows and a tile of their columns. A warp's threads own adjacent columns, so that their loads
// coalesce, and the block's warps take turns at the rows.
#ifndef LENGTHWISE_MODELS_KERNELS_COLUMN_TILES_INL_H_
#define LENGTHWISE_MODELS_KERNELS_COLUMN_TILES_INL_H_

#include <cstdint>

#include "models/kernels/rows_cuda.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

constexpr int kColumnWarps = 8;
constexpr int kColumnThreads = kColumnWarps * simt::kWarp;

// Of a member.
LENGTHWISE_EVERYWHERE int64_t Chunks(const RowsShape& shape) {
  return (shape.rows + kChunkRows - 1) / kChunkRows;
}

// `kAtOnce` columns per thread.
template <int kAtOnce>
struct ColumnTiles {
  static constexpr int kColumns = kAtOnce * simt::kWarp;

  static LENGTHWISE_EVERYWHERE int64_t TilesOfRow(const RowsShape& shape) {
    return (shape.width + kColumns - 1) / kColumns;
  }
  static int64_t Blocks(const RowsShape& shape) {
    return shape.members * Chunks(shape) * TilesOfRow(shape);
  }
};

// The calling thread's rows and columns.
template <int kAtOnce>
struct ColumnPlace {
  LENGTHWISE_DEVICE explicit ColumnPlace(const RowsShape& shape) {
    using Tiles = ColumnTiles<kAtOnce>;
    int64_t block = simt::Block();
    column =
        block % Tiles::TilesOfRow(shape) * Tiles::kColumns + simt::Thread() % simt::kWarp * kAtOnce;
    block /= Tiles::TilesOfRow(shape);
    chunk = block;
    member = block / Chunks(shape);
    first = member * shape.rows + block % Chunks(shape) * kChunkRows;
    const int64_t rest = (member + 1) * shape.rows - first;
    count = static_cast<int>(rest < kChunkRows ? rest : kChunkRows);
    warp = simt::Thread() / simt::kWarp;
    there = column < shape.width;
  }

  int64_t column;  // the thread's first column
  bool there;      // false: the thread's columns lie outside the row
  int64_t chunk;   // index over all members
  int64_t member;
  int64_t first;  // first row of the chunk, over all members
  int count;      // rows in the chunk
  int warp;       // first row in the chunk; the thread takes every kColumnWarps-th
};

// Adds up the warps' sums of each column and writes them to `parts` [chunks, width]. Every thread
// of the block must call it. `shared` holds kColumnThreads * kAtOnce floats.
template <int kAtOnce>
LENGTHWISE_DEVICE void WriteColumnSums(const RowsShape& shape, const ColumnPlace<kAtOnce>& place,
                                       const float (&sums)[kAtOnce], float* shared, float* parts) {
  LENGTHWISE_UNROLL
  for (int k = 0; k < kAtOnce; ++k) shared[simt::Thread() * kAtOnce + k] = sums[k];
  simt::Barrier();
  if (place.warp != 0 || !place.there) return;
  LENGTHWISE_UNROLL
  for (int k = 0; k < kAtOnce; ++k) {
    float sum = 0;
    for (int w = 0; w < kColumnWarps; ++w) {
      sum += shared[(w * simt::kWarp + simt::Thread()) * kAtOnce + k];
    }
    parts[place.chunk * shape.width + place.column + k] = sum;
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_COLUMN_TILES_INL_H_
