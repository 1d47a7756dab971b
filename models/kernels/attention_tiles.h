// Divides the work of attention_cuda.cu into tiles, as a function of the shape alone.
//
// Heads here are tiny (8 numbers) and sequences short (2 to 120 tokens), so a block of threads that
// took one head of one sequence would be mostly idle. A block takes a tile of the tokens of
// *several sequences*, as many as fill its threads; they have R and A in common, which are read
// once for all of them. A thread owns one token of one sequence (a query, or a key), with its
// vectors and sums in registers, and meets the tokens of the other kind in tiles that the block has
// brought into shared memory. A head of more than 16 numbers is two or four threads' together, each
// with some of the features ("lanes"), so that registers suffice. Gradients of R and A are made by
// threads that own a pair of a query and a key, or a diagonal of such pairs, and go through the
// sequences of a batch.
//
// Tiles are chosen so that a block stays within the 48 KiB of shared memory that every device
// grants without being asked.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_TILES_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_TILES_H_

#include <algorithm>
#include <cstdint>

#include "models/kernels/attention.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// Pairs that a thread works on at once: as many sums are under way independently of each other.
constexpr int kStep = 4;

// A head's numbers as threads share them: kLanes threads hold kWidth each. Vectors in shared memory
// are followed by four unused floats, so that neighbouring vectors begin in different banks.
template <int kWidthOfLane, int kLanesOfHead>
struct HeadOf {
  static constexpr int kWidth = kWidthOfLane;
  static constexpr int kLanes = kLanesOfHead;
  static constexpr int kFeatures = kWidth * kLanes;
  static constexpr int kStride = kFeatures + 4;
};

// Calls body(HeadOf<..>()) with the narrowest that holds `head_size`.
template <typename Body>
void WithHead(int64_t head_size, const Body& body) {
  if (head_size <= 8) return body(HeadOf<8, 1>());
  if (head_size <= 16) return body(HeadOf<16, 1>());
  if (head_size <= 32) return body(HeadOf<16, 2>());
  return body(HeadOf<16, 4>());
}

inline int64_t DividedUp(int64_t count, int64_t by) { return (count + by - 1) / by; }

// `count` in equal parts of at most `limit`: how much a part has.
inline int Balanced(int64_t count, int64_t limit) {
  return static_cast<int>(DividedUp(count, DividedUp(count, limit)));
}

// Threads of a block are a multiple of this: whole warps, and whole vectors where they read memory.
template <typename Head>
constexpr int kThreadsUnit = std::max(simt::kWarp, Head::kFeatures);

inline int RoundedUp(int count, int to) { return (count + to - 1) / to * to; }

// Tiling of a block that holds `own` tokens of `sequences` sequences and iterates over tiles of
// `others` tokens (a multiple of kStep) of the same sequences.
struct TokenTiles {
  int threads = 0;
  int own = 0;
  int others = 0;
  int sequences = 0;
  // Counts for one head.
  int64_t own_tiles = 0;
  int64_t sequence_groups = 0;
  int64_t shared_bytes = 0;

  int64_t BlocksOfHead() const { return own_tiles * sequence_groups; }
};

// Numbers of each thread that SumOverTokens adds up at once.
constexpr int kSumsAtOnce = 4;
constexpr int64_t kSharedBytes = 48 * 1024;
// Threads of a TokenTiles block.
constexpr int kTokenThreads = 128;
// Own tokens are limited to about this many if every pair has its own R, whose tile grows with own
// times others.
constexpr int64_t kOwnWithRelative = 16;

// Floats of R that a block holds for a tile of queries and keys: a row of keys for each query, four
// floats apart so that neighbouring rows begin in different banks, or the diagonals.
LENGTHWISE_EVERYWHERE int64_t RelativeTileFloats(bool toeplitz, int64_t queries, int64_t keys,
                                                 int64_t stride) {
  return toeplitz ? (queries + keys - 1) * stride : queries * (keys * stride + 4);
}
// The same of A: rows are one float apart.
LENGTHWISE_EVERYWHERE int64_t AdditiveTileFloats(int64_t queries, int64_t keys) {
  return queries * (keys + 1);
}

// Floats that a block of `own` tokens needs at once; for each of the others `vectors`, and as many
// `numbers` beside them.
template <typename Head>
int64_t TokenTileFloats(const AttentionTerms& terms, const TokenTiles& tiles, int vectors,
                        int numbers) {
  const int64_t own = tiles.own, others = tiles.others;
  // Every array begins at a multiple of four.
  int64_t floats = tiles.sequences * own * Head::kStride +
                   tiles.sequences * others * (vectors * Head::kStride + numbers) + 4 * 8;
  if (terms.relative != nullptr) {
    floats += std::max(RelativeTileFloats(terms.toeplitz, own, others, Head::kStride),
                       RelativeTileFloats(terms.toeplitz, others, own, Head::kStride));
    // SumOverTokens.
    floats += kTokenThreads * (kSumsAtOnce + 1);
  }
  if (terms.additive != nullptr) {
    floats += std::max(AdditiveTileFloats(own, others), AdditiveTileFloats(others, own));
  }
  return floats;
}

// Large tiles of the others first: the wider, the fewer barriers.
template <typename Head>
TokenTiles MakeTokenTiles(const AttentionShape& shape, const AttentionTerms& terms, int64_t own,
                          int64_t others, int vectors, int numbers) {
  const int64_t slots = kTokenThreads / Head::kLanes;
  const bool pairs_differ = terms.relative != nullptr && !terms.toeplitz;
  int64_t own_limit = pairs_differ ? std::max(kOwnWithRelative, slots / shape.sequences) : slots;
  int64_t sequences_limit = shape.sequences;
  for (;;) {
    TokenTiles tiles = {.threads = kTokenThreads, .own = Balanced(own, own_limit)};
    tiles.sequences = static_cast<int>(std::min(sequences_limit, slots / tiles.own));
    tiles.own_tiles = DividedUp(own, tiles.own);
    tiles.sequence_groups = DividedUp(shape.sequences, tiles.sequences);
    for (int most = 32; most >= kStep; most /= 2) {
      tiles.others = RoundedUp(Balanced(others, most), kStep);
      tiles.shared_bytes = static_cast<int64_t>(sizeof(float)) *
                           TokenTileFloats<Head>(terms, tiles, vectors, numbers);
      if (tiles.shared_bytes <= kSharedBytes) return tiles;
    }
    if (tiles.sequences > 1) {
      sequences_limit = tiles.sequences / 2;
    } else {
      own_limit = tiles.own / 2;
    }
  }
}

// A block's pairs of `queries` and `keys`, for the gradients of R and A: `sequences` of a chunk of
// the batch are in shared memory at once (a multiple of kStep). The chunks' sums are added up
// behind.
struct PairTiles {
  int threads = 0;
  int queries = 0;
  int keys = 0;
  int sequences = 0;
  int64_t query_tiles = 0;
  int64_t key_tiles = 0;
  int64_t chunks = 0;
  int64_t chunk_sequences = 0;
  int64_t shared_bytes = 0;
};

constexpr int kPairThreads = 256;
// Chunks are made until a member has as many blocks as keep a GPU of 108 or 132 multiprocessors
// busy, but no smaller than this many sequences, and not more for larger packs.
constexpr int64_t kBlocksOfMember = 128;
constexpr int64_t kLeastChunk = 8;

inline void MakeChunks(int64_t sequences, int64_t blocks, int64_t& chunks,
                       int64_t& chunk_sequences) {
  const int64_t most = DividedUp(sequences, kLeastChunk);
  chunk_sequences =
      DividedUp(sequences, std::clamp<int64_t>(DividedUp(kBlocksOfMember, blocks), 1, most));
  chunks = DividedUp(sequences, chunk_sequences);
}

template <typename Head>
PairTiles MakePairTiles(const AttentionShape& shape) {
  const int64_t slots = kPairThreads / Head::kLanes;
  for (int64_t most = 16;; most /= 2) {
    PairTiles tiles = {.queries = Balanced(shape.queries, most)};
    tiles.keys = Balanced(shape.keys, slots / 16);
    tiles.threads = RoundedUp(tiles.queries * tiles.keys * Head::kLanes, kThreadsUnit<Head>);
    tiles.query_tiles = DividedUp(shape.queries, tiles.queries);
    tiles.key_tiles = DividedUp(shape.keys, tiles.keys);
    MakeChunks(shape.sequences, shape.heads * tiles.query_tiles * tiles.key_tiles, tiles.chunks,
               tiles.chunk_sequences);
    const int64_t floats_of_sequence =
        tiles.queries * (3 * Head::kStride + 2) + tiles.keys * 2 * Head::kStride;
    for (tiles.sequences = 2 * kStep; tiles.sequences >= kStep; tiles.sequences /= 2) {
      tiles.shared_bytes =
          static_cast<int64_t>(sizeof(float)) * (tiles.sequences * floats_of_sequence + 4 * 8);
      if (tiles.shared_bytes <= kSharedBytes) return tiles;
    }
  }
}

// A block's diagonals of pairs, key - query the same, for the gradient of an R that depends on that
// alone: it goes through the queries of a chunk of the batch, `queries` of one sequence at a time
// (a multiple of kStep).
struct DiagonalTiles {
  int threads = 0;
  int diagonals = 0;
  int queries = 0;
  int64_t diagonal_tiles = 0;
  int64_t chunks = 0;
  int64_t chunk_sequences = 0;
  int64_t shared_bytes = 0;

  // That the diagonals of a tile meet.
  LENGTHWISE_EVERYWHERE int Keys() const { return queries + diagonals - 1; }
};

template <typename Head>
DiagonalTiles MakeDiagonalTiles(const AttentionShape& shape) {
  DiagonalTiles tiles = {
      .diagonals = Balanced(shape.queries + shape.keys - 1, kTokenThreads / Head::kLanes)};
  tiles.threads = RoundedUp(tiles.diagonals * Head::kLanes, kThreadsUnit<Head>);
  tiles.diagonal_tiles = DividedUp(shape.queries + shape.keys - 1, tiles.diagonals);
  MakeChunks(shape.sequences, shape.heads * tiles.diagonal_tiles, tiles.chunks,
             tiles.chunk_sequences);
  for (int most = 32;; most /= 2) {
    tiles.queries = RoundedUp(Balanced(shape.queries, most), kStep);
    const int64_t floats =
        tiles.queries * (3 * Head::kStride + 2) + tiles.Keys() * 2 * Head::kStride;
    tiles.shared_bytes = static_cast<int64_t>(sizeof(float)) * (floats + 4 * 8);
    if (tiles.shared_bytes <= kSharedBytes || most == kStep) return tiles;
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_TILES_H_
