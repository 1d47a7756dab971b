#include "worker/evaluation/chunking.h"

#include "gtest/gtest.h"

namespace lengthwise::worker::evaluation {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

TEST(ChunkingTest, AttentionOfLongSequencesDominates) {
  // 8 heads x 1000 x 1000 logits of 4 bytes are 32 MB a copy.
  const SequenceSize size = {.tokens = 1000, .heads = 8, .d_model = 64};
  EXPECT_GE(BytesPerSequence(size), 2 * 32'000'000);
  EXPECT_LE(BytesPerSequence(size), 6 * 32'000'000);
  EXPECT_EQ(BytesPerSequence({.tokens = 1000, .heads = 8, .d_model = 64, .bytes_per_number = 8}),
            2 * BytesPerSequence(size));
}

TEST(ChunkingTest, MemoryGrowsWithTheLengthAloneWhereLogitsAreNotHeld) {
  const SequenceSize size = {.tokens = 1500, .heads = 8, .d_model = 64, .holds_logits = false};
  SequenceSize twice = size;
  twice.tokens = 3000;
  EXPECT_EQ(BytesPerSequence(twice), 2 * BytesPerSequence(size));
  // The feed-forward's hidden layer alone is 1.5 MB.
  EXPECT_GE(BytesPerSequence(size), 1500 * 256 * 4);
  EXPECT_GE(SequencesPerChunk(size, 1, 256 * kMebibyte), 20);
}

TEST(ChunkingTest, AChunkStaysBelowTheMemory) {
  for (const int64_t tokens : {2, 40, 200, 1000}) {
    for (const int64_t members : {1, 3}) {
      const SequenceSize size = {.tokens = tokens, .heads = 8, .d_model = 64};
      const int64_t sequences = SequencesPerChunk(size, members, 1024 * kMebibyte);
      EXPECT_LE(sequences * members * BytesPerSequence(size), 1024 * kMebibyte);
      EXPECT_GT((sequences + 1) * members * BytesPerSequence(size), 1024 * kMebibyte);
    }
  }
}

TEST(ChunkingTest, OneSequenceIsAlwaysTaken) {
  EXPECT_EQ(SequencesPerChunk({.tokens = 5000, .heads = 8, .d_model = 64}, 30, kMebibyte), 1);
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
