#include "random/stream.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "Random123/philox.h"
#include "gtest/gtest.h"

namespace lengthwise::random {
namespace {

TEST(StreamTest, MatchesThePublishedKnownAnswerOfPhilox4x32_10) {
  // Random123's kat_vectors: counter and key all ones bits.
  r123::Philox4x32::ctr_type counter{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}};
  r123::Philox4x32::key_type key{{0xffffffff, 0xffffffff}};
  const auto block = r123::Philox4x32()(counter, key);
  EXPECT_EQ(block[0], 0x408f276dU);
  EXPECT_EQ(block[1], 0x41c83b0eU);
  EXPECT_EQ(block[2], 0xa20bc7c6U);
  EXPECT_EQ(block[3], 0x6d5451fdU);
}

TEST(StreamTest, AddressDeterminesTheNumbers) {
  Stream a(7, Purpose::kTrainingSamples, 123, 4);
  Stream b(7, Purpose::kTrainingSamples, 123, 4);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.NextUint32(), b.NextUint32());
}

TEST(StreamTest, EveryPartOfTheAddressChangesTheNumbers) {
  std::set<uint64_t> first;
  first.insert(Stream(7, Purpose::kTrainingSamples, 123, 4).NextUint64());
  first.insert(Stream(8, Purpose::kTrainingSamples, 123, 4).NextUint64());
  first.insert(Stream(7ULL << 32, Purpose::kTrainingSamples, 123, 4).NextUint64());
  first.insert(Stream(7, Purpose::kTrainingPositions, 123, 4).NextUint64());
  first.insert(Stream(7, Purpose::kTrainingSamples, 124, 4).NextUint64());
  first.insert(Stream(7, Purpose::kTrainingSamples, 123 + (1ULL << 32), 4).NextUint64());
  first.insert(Stream(7, Purpose::kTrainingSamples, 123, 5).NextUint64());
  EXPECT_EQ(first.size(), 7U);
}

TEST(StreamTest, BelowIsUniform) {
  Stream stream(1, Purpose::kTrainingSamples, 0);
  std::vector<int> counts(5);
  const int draws = 100000;
  for (int i = 0; i < draws; ++i) ++counts.at(stream.Below(5));
  double chi_squared = 0;
  for (int count : counts) chi_squared += std::pow(count - draws / 5.0, 2) / (draws / 5.0);
  EXPECT_LT(chi_squared, 18.47);  // 4 degrees of freedom, p = 0.001
}

TEST(StreamTest, BetweenReachesBothEnds) {
  Stream stream(1, Purpose::kLengths, 0);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(stream.Between(-1, 1));
  EXPECT_EQ(seen, (std::set<int64_t>{-1, 0, 1}));
}

TEST(StreamTest, NormalHasTheMomentsOfANormal) {
  Stream stream(3, Purpose::kWeights, 0);
  const int draws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = stream.NextNormal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / draws, 0, 0.01);
  EXPECT_NEAR(squares / draws, 1, 0.015);
  EXPECT_NEAR(fourth / draws, 3, 0.12);
}

TEST(SampleWithoutReplacementTest, DrawsDifferentNumbersInRange) {
  Stream stream(5, Purpose::kTrainingPositions, 9);
  const std::vector<int64_t> drawn = SampleWithoutReplacement(stream, 2048, 80, true);
  EXPECT_EQ(drawn.size(), 80U);
  for (size_t i = 1; i < drawn.size(); ++i) EXPECT_LT(drawn[i - 1], drawn[i]);
  EXPECT_GE(drawn.front(), 0);
  EXPECT_LT(drawn.back(), 2048);
}

TEST(SampleWithoutReplacementTest, DrawsEverythingWhenCountIsBound) {
  Stream stream(5, Purpose::kTrainingPositions, 9);
  EXPECT_EQ(SampleWithoutReplacement(stream, 4, 4, true), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(SampleWithoutReplacementTest, AllOrderedPairsAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  const int draws = 24000;
  for (int i = 0; i < draws; ++i) {
    Stream stream(11, Purpose::kTrainingPositions, static_cast<uint64_t>(i));
    ++counts[SampleWithoutReplacement(stream, 4, 2, false)];
  }
  ASSERT_EQ(counts.size(), 12U);
  double chi_squared = 0;
  for (const auto& [pair, count] : counts) {
    chi_squared += std::pow(count - draws / 12.0, 2) / (draws / 12.0);
  }
  EXPECT_LT(chi_squared, 31.26);  // 11 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace lengthwise::random
