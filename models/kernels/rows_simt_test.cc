// Runs the kernels of rows_cuda.cu in simt_emulator.h, with several orders of threads and blocks,
// and compares them with the formulas in double precision. models/layers/fused_layers_cuda_test.cc
// runs them on a GPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/kernels/add_layer_norm_cuda-inl.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/bias_relu_cuda-inl.h"
#include "models/kernels/cross_entropy.h"
#include "models/kernels/cross_entropy_cuda-inl.h"
#include "models/kernels/parallel_for.h"
#include "models/kernels/rows_cuda.h"
#include "models/kernels/testing/simt_emulator.h"
#include "models/kernels/testing/simt_memory.h"

namespace lengthwise::kernels {
namespace {

using simt::Emulator;

constexpr float kEpsilon = 1e-5F;

const std::vector<RowsShape>& Shapes() {
  static const auto& shapes = *new std::vector<RowsShape>([] {
    std::vector<RowsShape> made;
    for (const int64_t members : {1, 3}) {
      for (const int64_t rows : {1, 7, 64, 65, 201}) {
        for (const int64_t width : {1, 3, 7, 64, 101, 132, 300}) {
          made.push_back({.members = members, .rows = rows, .width = width});
        }
      }
    }
    made.push_back({.members = 1, .rows = 9, .width = 501});
    made.push_back({.members = 2, .rows = 3, .width = kMaxCudaNormWidth});
    return made;
  }());
  return shapes;
}

std::string Name(const RowsShape& shape) {
  return absl::StrCat(shape.members, " members, ", shape.rows, " rows, width ", shape.width);
}

// Pseudo-random numbers in [-1, 1], shifted by `added`.
std::vector<float> Numbers(int64_t count, double seed, double added = 0) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(
        static_cast<float>(std::sin(12.9898 * static_cast<double>(i) + seed) + added));
  }
  return numbers;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected,
                double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (const double number : expected) largest = std::max(largest, std::abs(number));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << what << ", number " << i;
  }
}

using Results = std::vector<std::vector<float>>;

// --- residual and layer norm

struct NormProblem {
  explicit NormProblem(const RowsShape& of)
      : shape(of),
        a(Numbers(of.members * of.rows * of.width, 1)),
        b(ToFloats(Converted<BFloat16>(Numbers(of.members * of.rows * of.width, 2, 0.5)))),
        dy(Numbers(of.members * of.rows * of.width, 3, 0.5)),
        of_operand(
            ToFloats(Converted<BFloat16>(Numbers(of.members * of.rows * of.width, 6, 0.25)))),
        scale(Numbers(of.members * of.width, 4, 1)),
        offset(Numbers(of.members * of.width, 5)) {}

  RowsShape shape;
  // The gradient of y comes in two parts, that of y itself and that of its rounded copy.
  std::vector<float> a, b, dy, of_operand, scale, offset;
};

// Returns y, the gradients of the sum, of b if it is asked for, of scale and of offset, and y
// rounded.
template <typename T>
Results ComputeNorm(const NormProblem& problem, const Emulator::Options& options = {},
                    bool with_b = true) {
  const RowsShape& shape = problem.shape;
  const int64_t rows = shape.members * shape.rows, numbers = rows * shape.width;
  const std::vector<T> b = Converted<T>(problem.b);
  std::vector<float> y = Unwritten(numbers), x = Unwritten(numbers), r = Unwritten(rows);
  std::vector<float> dsum = Unwritten(numbers), dscale = Unwritten(shape.members * shape.width),
                     doffset = Unwritten(shape.members * shape.width);
  std::vector<T> db = Converted<T>(Unwritten(numbers));
  std::vector<BFloat16> operand = Unwritten<BFloat16>(numbers);
  const std::vector<BFloat16> of_operand = Converted<BFloat16>(problem.of_operand);
  std::vector<float> workspace = Unwritten(2 * shape.members * Chunks(shape) * shape.width);
  Emulator device(options);
  LaunchAddLayerNorm<T>(device, {.shape = shape,
                                 .epsilon = kEpsilon,
                                 .a = problem.a.data(),
                                 .b = b.data(),
                                 .scale = problem.scale.data(),
                                 .offset = problem.offset.data(),
                                 .result = {.y = y.data(), .x = x.data(), .r = r.data()},
                                 .operand = operand.data()});
  LaunchAddLayerNormBackward<T>(
      device,
      {.shape = shape,
       .x = x.data(),
       .r = r.data(),
       .scale = problem.scale.data(),
       .y_gradient = problem.dy.empty() ? nullptr : problem.dy.data(),
       .operand_gradient = of_operand.empty() ? nullptr : of_operand.data(),
       .gradients = {.sum = dsum.data(), .scale = dscale.data(), .offset = doffset.data()},
       .b_gradient = with_b ? db.data() : nullptr},
      workspace.data());
  EXPECT_EQ(device.problem(), "");
  EXPECT_LE(device.largest_shared_bytes(), 48 * 1024);
  return {y, dsum, ToFloats(db), dscale, doffset, ToFloats(operand)};
}

std::vector<std::vector<double>> NormReference(const NormProblem& problem) {
  const RowsShape& shape = problem.shape;
  const auto width = static_cast<size_t>(shape.width);
  std::vector<double> y, dsum;
  std::vector<double> dscale(problem.scale.size()), doffset(problem.scale.size());
  for (size_t row = 0; row < problem.a.size() / width; ++row) {
    const size_t member = row / static_cast<size_t>(shape.rows);
    std::vector<double> dy(width);
    for (size_t c = 0; c < width; ++c) {
      if (!problem.dy.empty()) dy[c] += problem.dy[row * width + c];
      if (!problem.of_operand.empty()) dy[c] += problem.of_operand[row * width + c];
    }
    const float *a = &problem.a[row * width], *b = &problem.b[row * width],
                *scale = &problem.scale[member * width];
    double mean = 0, variance = 0, mean_dx = 0, along = 0;
    for (size_t c = 0; c < width; ++c) mean += (double{a[c]} + b[c]) / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c) {
      variance += std::pow(double{a[c]} + b[c] - mean, 2) / static_cast<double>(width);
    }
    const double r = 1 / std::sqrt(variance + kEpsilon);
    const auto x = [&](size_t c) { return (double{a[c]} + b[c] - mean) * r; };
    for (size_t c = 0; c < width; ++c) {
      y.push_back(x(c) * scale[c] + problem.offset[member * width + c]);
      mean_dx += double{dy[c]} * scale[c] / static_cast<double>(width);
      along += double{dy[c]} * scale[c] * x(c) / static_cast<double>(width);
      dscale[member * width + c] += dy[c] * x(c);
      doffset[member * width + c] += dy[c];
    }
    for (size_t c = 0; c < width; ++c) {
      dsum.push_back((double{dy[c]} * scale[c] - mean_dx - x(c) * along) * r);
    }
  }
  return {y, dsum, dsum, dscale, doffset, y};
}

template <typename T>
constexpr double kTolerance = 1e-5;
template <>
constexpr double kTolerance<BFloat16> = 1e-2;  // bfloat16 results

template <typename T>
void ExpectNormOfTheFormula(const NormProblem& problem) {
  const Results results = ComputeNorm<T>(problem);
  const auto expected = NormReference(problem);
  const std::array<const char*, 6> names = {"y", "sum", "b", "scale", "offset", "y rounded"};
  for (size_t i = 0; i < results.size(); ++i) {
    // A row of one number minus its mean is 0, and the sum's gradient is rounding error.
    if (problem.shape.width == 1 && (i == 1 || i == 2 || i == 3)) continue;
    const double tolerance = i == 2   ? kTolerance<T>
                             : i == 5 ? kTolerance<BFloat16>
                                      : kTolerance<float>;
    ExpectNear(results[i], expected[i], tolerance, names[i]);
  }
}

TEST(AddLayerNormSimtTest, MatchesTheFormulaInDouble) {
  for (const RowsShape& shape : Shapes()) {
    SCOPED_TRACE(Name(shape));
    const NormProblem problem(shape);
    ExpectNormOfTheFormula<float>(problem);
    ExpectNormOfTheFormula<BFloat16>(problem);
    // In float32 a and b share one gradient tensor, so that b_gradient is null.
    const Results all = ComputeNorm<float>(problem);
    const Results without = ComputeNorm<float>(problem, {}, /*with_b=*/false);
    for (const size_t i : {0, 1, 3, 4}) EXPECT_EQ(without[i], all[i]);
  }
}

TEST(AddLayerNormSimtTest, EitherGradientMayBeAbsent) {
  NormProblem of_y({.members = 2, .rows = 70, .width = 64});
  NormProblem of_operand = of_y;
  of_y.of_operand.clear();
  of_operand.dy.clear();
  ExpectNormOfTheFormula<BFloat16>(of_y);
  ExpectNormOfTheFormula<BFloat16>(of_operand);
}

// Moves each member's numbers apart, as parameters lie in an arena.
std::vector<float> Apart(const std::vector<float>& numbers, const RowsShape& shape) {
  std::vector<float> apart;
  for (int64_t p = 0; p < shape.members; ++p) {
    apart.insert(apart.end(), numbers.begin() + p * shape.width,
                 numbers.begin() + (p + 1) * shape.width);
    apart.insert(apart.end(), 5, NAN);
  }
  return apart;
}

TEST(AddLayerNormSimtTest, ParametersMayLieApart) {
  const RowsShape shape = {.members = 3, .rows = 7, .width = 70};
  const NormProblem problem(shape);
  NormProblem apart = problem;
  apart.shape.parameter_stride = shape.width + 5;
  apart.scale = Apart(problem.scale, shape);
  apart.offset = Apart(problem.offset, shape);
  EXPECT_EQ(ComputeNorm<float>(apart), ComputeNorm<float>(problem));
}

// --- bias and ReLU

struct ReluProblem {
  explicit ReluProblem(const RowsShape& of)
      : shape(of),
        rows(ToFloats(Converted<BFloat16>(Numbers(of.members * of.rows * of.width, 1)))),
        gradient(ToFloats(Converted<BFloat16>(Numbers(of.members * of.rows * of.width, 2, 0.75)))),
        bias(Numbers(of.members * of.width, 3)) {}

  RowsShape shape;
  std::vector<float> rows, gradient, bias;
};

// Returns the rows, their gradient and the bias gradient.
template <typename T>
Results ComputeRelu(const ReluProblem& problem, const Emulator::Options& options = {}) {
  const RowsShape& shape = problem.shape;
  std::vector<T> rows = Converted<T>(problem.rows), gradient = Converted<T>(problem.gradient);
  std::vector<float> dbias = Unwritten(shape.members * shape.width);
  std::vector<float> workspace = Unwritten(shape.members * Chunks(shape) * shape.width);
  Emulator device(options);
  LaunchBiasRelu(device, shape, problem.bias.data(), rows.data());
  LaunchBiasReluBackward<T>(device, shape, rows.data(), gradient.data(), dbias.data(),
                            workspace.data());
  EXPECT_EQ(device.problem(), "");
  EXPECT_LE(device.largest_shared_bytes(), 48 * 1024);
  return {ToFloats(rows), ToFloats(gradient), dbias};
}

template <typename T>
void ExpectReluOfTheFormula(const ReluProblem& problem) {
  const RowsShape& shape = problem.shape;
  std::vector<double> rows, gradient, dbias(problem.bias.size());
  for (size_t i = 0; i < problem.rows.size(); ++i) {
    const size_t c = i % static_cast<size_t>(shape.width);
    const size_t member = i / static_cast<size_t>(shape.rows * shape.width);
    const size_t parameter = member * static_cast<size_t>(shape.width) + c;
    rows.push_back(std::max(0.0, double{problem.rows[i]} + problem.bias[parameter]));
    gradient.push_back(rows.back() > 0 ? problem.gradient[i] : 0);
    dbias[parameter] += gradient.back();
  }
  const Results results = ComputeRelu<T>(problem);
  ExpectNear(results[0], rows, kTolerance<T>, "rows");
  ExpectNear(results[1], gradient, kTolerance<T>, "gradient");
  ExpectNear(results[2], dbias, kTolerance<float>, "bias");
}

TEST(BiasReluSimtTest, MatchesTheFormulaInDouble) {
  for (const RowsShape& shape : Shapes()) {
    SCOPED_TRACE(Name(shape));
    const ReluProblem problem(shape);
    ExpectReluOfTheFormula<float>(problem);
    ExpectReluOfTheFormula<BFloat16>(problem);
  }
}

TEST(BiasReluSimtTest, BiasMayLieApart) {
  for (const int64_t width : {7, 64}) {
    const ReluProblem problem({.members = 3, .rows = 9, .width = width});
    ReluProblem apart = problem;
    apart.shape.parameter_stride = width + 5;
    apart.bias = Apart(problem.bias, problem.shape);
    EXPECT_EQ(ComputeRelu<float>(apart), ComputeRelu<float>(problem));
  }
}

TEST(BiasReluSimtTest, NanPropagates) {
  ReluProblem problem({.rows = 3, .width = 8});
  problem.rows[5] = NAN;
  const Results results = ComputeRelu<float>(problem);
  EXPECT_TRUE(std::isnan(results[0][5]));
  EXPECT_EQ(std::count_if(results[0].begin(), results[0].end(), [](float x) { return x != x; }), 1);
}

// --- soft-max cross-entropy

struct ClassesProblem {
  explicit ClassesProblem(const RowsShape& of)
      : shape(of),
        logits(Numbers(of.members * of.rows * of.width, 1)),
        sum_gradients(Numbers(of.members, 4, 2)),
        mask(new bool[static_cast<size_t>(of.members * of.rows)]) {
    for (float& logit : logits) logit *= 10;
    for (int64_t r = 0; r < of.members * of.rows; ++r) {
      classes.push_back(r * 7 % of.width);
      mask[static_cast<size_t>(r)] = r % 3 != 1;
    }
  }

  CrossEntropyInputs Inputs() const {
    return {.logits = logits.data(), .classes = classes.data(), .mask = mask.get()};
  }

  RowsShape shape;
  std::vector<float> logits, sum_gradients;
  std::vector<int64_t> classes;
  std::unique_ptr<bool[]> mask;
};

// Returns the sums and the logits' gradient.
Results ComputeClasses(const ClassesProblem& problem, const Emulator::Options& options = {}) {
  const RowsShape& shape = problem.shape;
  std::vector<float> log_sum_exp = Unwritten(shape.members * shape.rows),
                     sums = Unwritten(3 * shape.members),
                     gradient = Unwritten(shape.members * shape.rows * shape.width),
                     workspace = Unwritten(3 * shape.members * CrossEntropyBlocks(shape));
  Emulator device(options);
  LaunchCrossEntropy(device, shape, problem.Inputs(),
                     {.log_sum_exp = log_sum_exp.data(), .sums = sums.data()}, workspace.data());
  LaunchCrossEntropyBackward(device, shape, problem.Inputs(), log_sum_exp.data(),
                             problem.sum_gradients.data(), gradient.data());
  EXPECT_EQ(device.problem(), "");
  return {sums, gradient};
}

Results ComputeClassesOnTheCpu(const ClassesProblem& problem) {
  const RowsShape& shape = problem.shape;
  std::vector<float> log_sum_exp = Unwritten(shape.members * shape.rows),
                     sums = Unwritten(3 * shape.members),
                     gradient = Unwritten(shape.members * shape.rows * shape.width);
  CrossEntropy(shape, problem.Inputs(), {.log_sum_exp = log_sum_exp.data(), .sums = sums.data()},
               Serially);
  CrossEntropyBackward(shape, problem.Inputs(), log_sum_exp.data(), problem.sum_gradients.data(),
                       gradient.data(), Serially);
  return {sums, gradient};
}

TEST(CrossEntropySimtTest, CpuAndGpuMatchTheFormulaInDouble) {
  for (const RowsShape& shape : Shapes()) {
    SCOPED_TRACE(Name(shape));
    const ClassesProblem problem(shape);
    const auto width = static_cast<size_t>(shape.width);
    std::vector<double> losses(static_cast<size_t>(shape.members)), gradient;
    std::vector<double> right(losses.size()), counted(losses.size());
    for (size_t r = 0; r < problem.classes.size(); ++r) {
      const size_t member = r / static_cast<size_t>(shape.rows);
      const auto target = static_cast<size_t>(problem.classes[r]);
      const float* logits = &problem.logits[r * width];
      double sum = 0;
      for (size_t c = 0; c < width; ++c) sum += std::exp(double{logits[c]});
      losses[member] += std::log(sum) - logits[target];
      counted[member] += problem.mask[r];
      right[member] +=
          problem.mask[r] && std::max_element(logits, logits + width) == logits + target;
      for (size_t c = 0; c < width; ++c) {
        gradient.push_back(problem.sum_gradients[member] *
                           (std::exp(double{logits[c]}) / sum - (c == target)));
      }
    }
    for (const Results& results : {ComputeClasses(problem), ComputeClassesOnTheCpu(problem)}) {
      for (size_t member = 0; member < losses.size(); ++member) {
        const float* sums = &results[0][3 * member];
        EXPECT_NEAR(sums[0], losses[member], 1e-5 * std::max(1.0, losses[member]));
        EXPECT_EQ(sums[1], right[member]);
        EXPECT_EQ(sums[2], counted[member]);
      }
      // Logits of up to 10 have float errors of 1e-6, which the exponential carries over.
      ExpectNear(results[1], gradient, 1e-5, "logits");
    }
  }
}

// --- all of them

template <typename Problem, typename Compute>
void ExpectTheSameBitsInAnyOrder(const Problem& problem, const Compute& compute) {
  const Results expected = compute(problem, Emulator::Options{});
  for (const Emulator::Options& options :
       {Emulator::Options{.order = Emulator::Order::kBackward},
        Emulator::Options{.order = Emulator::Order::kShuffled, .seed = 3}}) {
    EXPECT_EQ(compute(problem, options), expected);
  }
}

TEST(RowsSimtTest, ThreadAndBlockOrderDoesNotMatter) {
  const RowsShape shape = {.members = 2, .rows = 150, .width = 72};
  ExpectTheSameBitsInAnyOrder(NormProblem(shape), [](const auto& problem, const auto& options) {
    return ComputeNorm<BFloat16>(problem, options);
  });
  ExpectTheSameBitsInAnyOrder(ReluProblem(shape), [](const auto& problem, const auto& options) {
    return ComputeRelu<float>(problem, options);
  });
  ExpectTheSameBitsInAnyOrder(ClassesProblem(shape), [](const auto& problem, const auto& options) {
    return ComputeClasses(problem, options);
  });
}

// Returns the first member's part of each result.
Results OfFirstMember(const Results& results, int64_t members) {
  Results parts;
  for (const std::vector<float>& result : results) {
    const auto size = static_cast<int64_t>(result.size()) / members;
    parts.emplace_back(result.begin(), result.begin() + size);
  }
  return parts;
}

// The first member's inputs do not depend on the number of members.
TEST(RowsSimtTest, PackMatchesItsMembers) {
  const RowsShape alone = {.members = 1, .rows = 150, .width = 72};
  const RowsShape pack = {.members = 3, .rows = 150, .width = 72};
  EXPECT_EQ(OfFirstMember(ComputeNorm<float>(NormProblem(pack)), 3),
            ComputeNorm<float>(NormProblem(alone)));
  EXPECT_EQ(OfFirstMember(ComputeRelu<float>(ReluProblem(pack)), 3),
            ComputeRelu<float>(ReluProblem(alone)));
  ClassesProblem classes(alone);
  EXPECT_EQ(OfFirstMember(ComputeClasses(ClassesProblem(pack)), 3), ComputeClasses(classes));
}

}  // namespace
}  // namespace lengthwise::kernels
