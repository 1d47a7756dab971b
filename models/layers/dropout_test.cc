#include "models/layers/dropout.h"

#include <cmath>
#include <vector>

#include "ATen/ops/allclose.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "ATen/ops/zeros.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

constexpr double kRate = 0.1;

at::Tensor Dropped(const std::vector<uint64_t>& seeds, int64_t sequences, uint32_t site,
                   uint64_t step, int64_t first_sequence = 0) {
  return Dropout(at::ones({static_cast<int64_t>(seeds.size()), sequences, 50, 20}, at::kDouble),
                 kRate, site, {.seeds = seeds, .step = step, .first_sequence = first_sequence});
}

TEST(DropoutTest, DropsAtItsRateAndScalesTheRest) {
  const at::Tensor dropped = Dropped({3}, 40, 0, 1);
  const double numbers = 40 * 50 * 20;
  const double zeros = dropped.eq(0).sum().item<double>();
  EXPECT_NEAR(zeros / numbers, kRate, 5 * std::sqrt(kRate * (1 - kRate) / numbers));
  EXPECT_EQ(dropped.eq(1 / (1 - kRate)).sum().item<double>(), numbers - zeros);
}

TEST(DropoutTest, ItsMaskIsAFunctionOfItsPlace) {
  const at::Tensor mask = Dropped({3}, 8, 2, 5);
  EXPECT_TRUE(at::equal(mask, Dropped({3}, 8, 2, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({4}, 8, 2, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({3}, 8, 1, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({3}, 8, 2, 6)));
  EXPECT_FALSE(at::equal(mask[0][0], mask[0][1]));
}

TEST(DropoutTest, ChunksAndPacksDropWhatTheirPartsDrop) {
  const at::Tensor whole = Dropped({3}, 8, 2, 5);
  EXPECT_TRUE(at::equal(whole.narrow(1, 5, 3), Dropped({3}, 3, 2, 5, 5)));
  EXPECT_TRUE(at::equal(whole, Dropped({9, 3}, 8, 2, 5).narrow(0, 1, 1)));
}

at::Tensor Noise(double deviation, const std::vector<uint64_t>& seeds, int64_t sequences,
                 uint64_t step, int64_t first_sequence = 0) {
  const DropoutNumbers numbers = {.seeds = seeds,
                                  .purpose = random::Purpose::kEvaluationDropout,
                                  .step = step,
                                  .first_sequence = first_sequence,
                                  .embedding_noise = deviation};
  return AddEmbeddingNoise(
      at::zeros({static_cast<int64_t>(seeds.size()), sequences, 50, 20}, at::kDouble), &numbers);
}

TEST(EmbeddingNoiseTest, IsNormalWithItsDeviation) {
  const at::Tensor noise = Noise(0.1, {3}, 40, 1);
  const double numbers = 40 * 50 * 20;
  EXPECT_NEAR(noise.mean().item<double>(), 0, 5 * 0.1 / std::sqrt(numbers));
  EXPECT_NEAR(noise.std().item<double>(), 0.1, 5 * 0.1 / std::sqrt(2 * numbers));
  // In a normal distribution, 4.55 % lie beyond two standard deviations.
  const double far = noise.abs().gt(0.2).sum().item<double>() / numbers;
  EXPECT_NEAR(far, 0.0455, 5 * std::sqrt(0.0455 / numbers));
}

TEST(EmbeddingNoiseTest, IsAFunctionOfItsPlace) {
  const at::Tensor noise = Noise(1, {3}, 8, 5);
  EXPECT_TRUE(at::equal(noise, Noise(1, {3}, 8, 5)));
  EXPECT_FALSE(at::equal(noise, Noise(1, {4}, 8, 5)));
  EXPECT_FALSE(at::equal(noise, Noise(1, {3}, 8, 6)));
  EXPECT_FALSE(at::equal(noise[0][0], noise[0][1]));
  EXPECT_TRUE(at::allclose(Noise(0.25, {3}, 8, 5), noise.mul(0.25), 1e-12));
}

TEST(EmbeddingNoiseTest, ChunksAndPacksGetWhatTheirPartsGet) {
  const at::Tensor whole = Noise(1, {3}, 8, 5);
  EXPECT_TRUE(at::equal(whole.narrow(1, 5, 3), Noise(1, {3}, 3, 5, 5)));
  EXPECT_TRUE(at::equal(whole, Noise(1, {9, 3}, 8, 5).narrow(0, 1, 1)));
  EXPECT_TRUE(at::equal(whole, Noise(1, {3, 3}, 8, 5).narrow(0, 1, 1)));
}

TEST(EmbeddingNoiseTest, NoneIsAddedUnlessAskedFor) {
  const at::Tensor embeddings = at::zeros({1, 2, 3, 4}, at::kDouble);
  EXPECT_TRUE(AddEmbeddingNoise(embeddings, nullptr).is_same(embeddings));
  const DropoutNumbers numbers = {.seeds = {3}};
  EXPECT_TRUE(AddEmbeddingNoise(embeddings, &numbers).is_same(embeddings));
}

}  // namespace
}  // namespace lengthwise::models
