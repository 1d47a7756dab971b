#include "tasks/chomsky/function_task.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/chomsky/testing/chi_squared.h"

namespace lengthwise::tasks::chomsky {
namespace {

random::Stream Stream(uint32_t row) {
  return random::Stream(5, random::Purpose::kTrainingSamples, 0, row);
}

TEST(UniformTokensTest, EveryPlaceOfALongStringIsUniform) {
  constexpr size_t kLength = 70;  // bits take more than two 32-bit random words
  for (const int32_t size : {2, 3, 5}) {
    std::vector<std::vector<int64_t>> counts(kLength,
                                             std::vector<int64_t>(static_cast<size_t>(size)));
    std::vector<int32_t> tokens(kLength);
    for (uint32_t row = 0; row < 5000; ++row) {
      random::Stream stream = Stream(row);
      DrawTokens(stream, size, absl::MakeSpan(tokens));
      for (size_t i = 0; i < kLength; ++i) ++counts[i].at(static_cast<size_t>(tokens[i]));
    }
    for (size_t i = 0; i < kLength; ++i) EXPECT_TRUE(FitsUniform(counts[i])) << size << " " << i;
  }
}

// Tests the boundary between two 32-bit random words.
TEST(UniformTokensTest, NeighbouringBitsAreIndependent) {
  std::vector<int64_t> pairs(4);
  std::vector<int32_t> tokens(34);
  for (uint32_t row = 0; row < 20000; ++row) {
    random::Stream stream = Stream(row);
    DrawBits(stream, absl::MakeSpan(tokens));
    ++pairs.at(static_cast<size_t>(2 * tokens[31] + tokens[32]));
  }
  EXPECT_TRUE(FitsUniform(pairs));
}

TEST(UniformTokensTest, LongerStringsExtendShorterOnes) {
  std::vector<int32_t> shorter(33), longer(64);
  random::Stream a = Stream(0), b = Stream(0);
  DrawBits(a, absl::MakeSpan(shorter));
  DrawBits(b, absl::MakeSpan(longer));
  longer.resize(shorter.size());
  EXPECT_EQ(shorter, longer);
}

}  // namespace
}  // namespace lengthwise::tasks::chomsky
