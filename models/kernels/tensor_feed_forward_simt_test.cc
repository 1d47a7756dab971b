// The kernels of tensor_feed_forward_cuda.h, as they are, in simt_emulator.h: against the formula
// in double precision, and in any order of threads. models/layers/fused_layers_cuda_test.cc runs
// them on a GPU.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/tensor_feed_forward-inl.h"
#include "models/kernels/testing/simt_emulator.h"
#include "models/kernels/testing/simt_memory.h"

namespace lengthwise::kernels {
namespace {

using simt::Emulator;

constexpr int64_t kFeatures = kTensorFeatures, kHidden = kTensorHidden;
constexpr int64_t kWeights = kFeatures * kHidden;
// Allows for operands rounded to 8 significant bits.
constexpr double kTolerance = 1e-2;

// Numbers in [-scale, scale] without a pattern, whose sums would cancel.
std::vector<float> Numbers(int64_t count, double seed, double scale) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const double x = 43758.5453 * std::sin(12.9898 * static_cast<double>(i) + seed);
    numbers.push_back(static_cast<float>(scale * (2 * (x - std::floor(x)) - 1)));
  }
  return numbers;
}

std::vector<float> Rounded(const std::vector<float>& numbers) {
  return ToFloats(Converted<BFloat16>(numbers));
}

std::vector<float> Part(const std::vector<float>& numbers, int64_t first, int64_t count) {
  return {numbers.begin() + first, numbers.begin() + first + count};
}

struct Problem {
  Problem(int64_t of_members, int64_t of_rows)
      : members(of_members),
        rows(of_rows),
        x(Rounded(Numbers(members * rows * kFeatures, 1, 1))),
        dy(Rounded(Numbers(members * rows * kFeatures, 2, 1))),
        up(Rounded(Numbers(members * kWeights, 3, 0.3))),
        down(Rounded(Numbers(members * kWeights, 4, 0.3))),
        up_bias(Numbers(members * kHidden, 5, 0.5)),
        down_bias(Numbers(members * kFeatures, 6, 0.5)) {}

  Problem Member(int64_t p) const {
    Problem member(1, rows);
    member.x = Part(x, p * rows * kFeatures, rows * kFeatures);
    member.dy = Part(dy, p * rows * kFeatures, rows * kFeatures);
    member.up = Part(up, p * kWeights, kWeights);
    member.down = Part(down, p * kWeights, kWeights);
    member.up_bias = Part(up_bias, p * kHidden, kHidden);
    member.down_bias = Part(down_bias, p * kFeatures, kFeatures);
    return member;
  }

  int64_t members, rows;
  // What the kernels read as bfloat16 is rounded to it.
  std::vector<float> x, dy, up, down, up_bias, down_bias;
};

struct Results {
  std::vector<float> y, x;
  std::vector<float> parameters;  // [P, kTensorFeedForwardNumbers]

  bool operator==(const Results&) const = default;
};

// Bias strides as in an arena if `apart` > 0.
Results Compute(const Problem& problem, int64_t block_rows, const Emulator::Options& options = {},
                int64_t apart = 0) {
  const auto distant = [&](const std::vector<float>& biases, int64_t width) {
    std::vector<float> spread;
    for (int64_t p = 0; p < problem.members; ++p) {
      const std::vector<float> of_member = Part(biases, p * width, width);
      spread.insert(spread.end(), of_member.begin(), of_member.end());
      spread.insert(spread.end(), static_cast<size_t>(apart), NAN);
    }
    return spread;
  };
  const std::vector<BFloat16> x = Converted<BFloat16>(problem.x),
                              dy = Converted<BFloat16>(problem.dy),
                              up = Converted<BFloat16>(problem.up),
                              down = Converted<BFloat16>(problem.down);
  const std::vector<float> up_bias = distant(problem.up_bias, kHidden),
                           down_bias = distant(problem.down_bias, kFeatures);
  TensorFeedForwardInputs inputs = {.members = problem.members,
                                    .rows = problem.rows,
                                    .x = x.data(),
                                    .up = up.data(),
                                    .down = down.data(),
                                    .up_bias = up_bias.data(),
                                    .down_bias = down_bias.data(),
                                    .up_stride = kHidden + apart,
                                    .down_stride = kFeatures + apart};
  std::vector<BFloat16> y = Unwritten<BFloat16>(static_cast<int64_t>(x.size())),
                        dx = Unwritten<BFloat16>(static_cast<int64_t>(x.size()));
  std::vector<float> workspace = Unwritten(FeedForwardPartNumbers(inputs, block_rows)),
                     parameters = Unwritten(problem.members * kTensorFeedForwardNumbers);
  Emulator device(options);
  LaunchTensorFeedForward(device, inputs, block_rows, y.data());
  inputs.down_bias = nullptr;
  LaunchTensorFeedForwardBackward(device, inputs, block_rows, dy.data(), dx.data(),
                                  parameters.data(), workspace.data());
  EXPECT_EQ(device.problem(), "");
  return {.y = ToFloats(y), .x = ToFloats(dx), .parameters = parameters};
}

// The formula, and its gradients by the chain rule.
struct Expected {
  explicit Expected(const Problem& problem)
      : y(problem.x.size()),
        x(problem.x.size()),
        parameters(static_cast<size_t>(problem.members * kTensorFeedForwardNumbers)) {
    for (int64_t p = 0; p < problem.members; ++p) {
      const float* up = problem.up.data() + p * kWeights;
      const float* down = problem.down.data() + p * kWeights;
      double* d_up = parameters.data() + p * kTensorFeedForwardNumbers;
      double* d_down = d_up + kWeights;
      double* d_up_bias = d_down + kWeights;
      double* d_down_bias = d_up_bias + kHidden;
      for (int64_t row = p * problem.rows; row < (p + 1) * problem.rows; ++row) {
        const float* in = problem.x.data() + row * kFeatures;
        const float* gradient = problem.dy.data() + row * kFeatures;
        double* out = y.data() + row * kFeatures;
        for (int64_t f = 0; f < kFeatures; ++f) {
          out[f] += problem.down_bias[static_cast<size_t>(p * kFeatures + f)];
          d_down_bias[f] += gradient[f];
        }
        for (int64_t k = 0; k < kHidden; ++k) {
          double hidden = problem.up_bias[static_cast<size_t>(p * kHidden + k)], of_hidden = 0;
          for (int64_t f = 0; f < kFeatures; ++f) {
            hidden += double{in[f]} * up[f * kHidden + k];
            of_hidden += double{gradient[f]} * down[k * kFeatures + f];
          }
          if (hidden <= 0) continue;
          d_up_bias[k] += of_hidden;
          for (int64_t f = 0; f < kFeatures; ++f) {
            out[f] += hidden * down[k * kFeatures + f];
            x[static_cast<size_t>(row * kFeatures + f)] += of_hidden * up[f * kHidden + k];
            d_up[f * kHidden + k] += in[f] * of_hidden;
            d_down[k * kFeatures + f] += hidden * gradient[f];
          }
        }
      }
    }
  }

  std::vector<double> y, x, parameters;
};

// The root mean square of the errors is at most kTolerance of that of the numbers, and no error is
// above four times as much of the largest number.
void ExpectNear(const float* actual, const double* expected, int64_t count, const char* what) {
  double squares = 0, error_squares = 0, largest = 0, largest_error = 0;
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << what << ", number " << i;
    const double error = std::abs(actual[i] - expected[i]);
    squares += expected[i] * expected[i];
    error_squares += error * error;
    largest = std::max(largest, std::abs(expected[i]));
    largest_error = std::max(largest_error, error);
  }
  EXPECT_LE(std::sqrt(error_squares), kTolerance * std::sqrt(squares)) << what;
  EXPECT_LE(largest_error, 4 * kTolerance * largest) << what;
}

void ExpectClose(const Problem& problem, const Results& actual) {
  const Expected expected(problem);
  const auto count = static_cast<int64_t>(expected.x.size());
  ExpectNear(actual.y.data(), expected.y.data(), count, "output");
  ExpectNear(actual.x.data(), expected.x.data(), count, "gradient of x");
  for (int64_t p = 0; p < problem.members; ++p) {
    int64_t first = p * kTensorFeedForwardNumbers;
    const auto compare = [&](int64_t numbers, const char* what) {
      ExpectNear(actual.parameters.data() + first, expected.parameters.data() + first, numbers,
                 what);
      first += numbers;
    };
    compare(kWeights, "gradient of up");
    compare(kWeights, "gradient of down");
    compare(kHidden, "gradient of up_bias");
    compare(kFeatures, "gradient of down_bias");
  }
}

TEST(TensorFeedForwardTest, EveryNumberOfRowsAgreesWithTheFormula) {
  for (const int64_t rows : {1, 15, 16, 17, 33, 63, 64, 65, 128, 129, 193, 257}) {
    SCOPED_TRACE(absl::StrCat(rows, " rows"));
    const Problem problem(1 + rows % 2, rows);
    ExpectClose(problem, Compute(problem, /*block_rows=*/128));
  }
}

TEST(TensorFeedForwardTest, EverySizeOfABlockAgreesWithTheFormula) {
  const Problem problem(1, 700);
  for (const int64_t block_rows : {int64_t{128}, int64_t{512}, kTensorBlockRows}) {
    SCOPED_TRACE(absl::StrCat(block_rows, " rows a block"));
    ExpectClose(problem, Compute(problem, block_rows));
  }
}

// A missing barrier, or a sum in the order in which threads come, would show.
TEST(TensorFeedForwardTest, TheOrderOfThreadsAndBlocksChangesNoBit) {
  const Problem problem(2, 201);
  const Results expected = Compute(problem, 128);
  for (const Emulator::Options& options :
       {Emulator::Options{.order = Emulator::Order::kBackward},
        Emulator::Options{.order = Emulator::Order::kShuffled, .seed = 1},
        Emulator::Options{.order = Emulator::Order::kShuffled, .seed = 2}}) {
    EXPECT_TRUE(Compute(problem, 128, options) == expected);
  }
}

TEST(TensorFeedForwardTest, APackIsItsMembersBitForBit) {
  const Problem pack(3, 150);
  const Results together = Compute(pack, 128);
  for (int64_t p = 0; p < 3; ++p) {
    const int64_t numbers = pack.rows * kFeatures;
    const Results alone = Compute(pack.Member(p), 128);
    EXPECT_EQ(alone.y, Part(together.y, p * numbers, numbers));
    EXPECT_EQ(alone.x, Part(together.x, p * numbers, numbers));
    EXPECT_EQ(alone.parameters,
              Part(together.parameters, p * kTensorFeedForwardNumbers, kTensorFeedForwardNumbers));
  }
}

TEST(TensorFeedForwardTest, BiasesMayLieApart) {
  const Problem problem(2, 40);
  EXPECT_TRUE(Compute(problem, 128, {}, /*apart=*/5) == Compute(problem, 128));
}

TEST(TensorFeedForwardTest, NanStaysNan) {
  Problem problem(1, 20);
  problem.x[3 * kFeatures + 7] = NAN;
  const Results results = Compute(problem, 128);
  for (int64_t i = 0; i < 20 * kFeatures; ++i) {
    EXPECT_EQ(std::isnan(results.y[static_cast<size_t>(i)]), i / kFeatures == 3) << i;
  }
  EXPECT_FALSE(std::isnan(results.parameters[6 * kHidden])) << "of up: x is a number";
  EXPECT_TRUE(std::isnan(results.parameters[7 * kHidden]));
  EXPECT_TRUE(std::isnan(results.parameters[kWeights])) << "of down";
}

// An H100 has 227 KiB for the blocks of a multiprocessor, of which each takes 1 KiB more than it
// asks for.
TEST(TensorFeedForwardTest, BlocksFitTogether) {
  EXPECT_LE(2 * (kFeedForwardBytes + 1024), 227 * 1024);
  EXPECT_LE(kFeedForwardBackwardBytes + 1024, 163 * 1024) << "the most that an A100 has";
}

}  // namespace
}  // namespace lengthwise::kernels
