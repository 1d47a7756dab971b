// How blocks of a GPU divide [P, rows, width] where sums go down the columns: a block has a chunk
// of one member's rows and a tile of their columns. A warp's threads have neighbouring columns, the
// same in all rows, and the block's warps take turns at the rows.
#ifndef LENGTHWISE_MODELS_KERNELS_COLUMN_TILES_INL_H_
#define LENGTHWISE_MODELS_KERNELS_COLUMN_TILES_INL_H_

#include <cstdint>

#include "models/kernels/row_chunks.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// Rows of a chunk, of which there are `Chunks(shape)` a member: so many that a member alone fills a
// GPU, so few that the parts of its sums are soon added up.
constexpr int64_t kChunkRows = 64;
constexpr int kColumnWarps = 8;
constexpr int kColumnThreads = kColumnWarps * simt::kWarp;

LENGTHWISE_EVERYWHERE int64_t Chunks(const RowsShape& shape) {
  return (shape.rows + kChunkRows - 1) / kChunkRows;
}

// `kAtOnce` columns a thread.
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

// The thread's place.
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

  int64_t column;  // the first of the thread's
  bool there;      // whether there are such columns
  int64_t chunk;   // counted over all members
  int64_t member;
  int64_t first;  // row of the chunk, counted over all members
  int count;      // rows of the chunk
  int warp;       // its first row in the chunk; then every kColumnWarps-th
};

// Adds the warps' sums of the thread's columns up and writes them to `parts` [chunks, width]. All
// threads come here; `shared` has kColumnThreads * kAtOnce floats.
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
