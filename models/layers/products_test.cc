// Compares products that are cut into pieces with LibTorch's in double precision, and their bits on
// several threads.
#include "models/layers/products.h"

#include <string>
#include <vector>

#include "ATen/ops/equal.h"
#include "ATen/ops/matmul.h"
#include "gtest/gtest.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/testing/layer_cases.h"

namespace lengthwise::models {
namespace {

struct Operands {
  std::vector<int64_t> a, b;
  // Each is the transposed view of a tensor of that shape.
  bool transposed = false;
};

// Products that stay whole, products cut by rows, by columns and by matrices, and those of the
// gradients.
std::vector<Operands> Cases() {
  std::vector<Operands> cases = {
      {{1, 1}, {1, 1}},
      {{3, 5}, {5, 2}},
      {{1, 300}, {300, 4000}},
      {{1000, 64}, {64, 70}},
      {{70, 300}, {300, 1030}},
      {{3, 7, 5}, {3, 5, 9}},
      {{1, 900, 33}, {1, 33, 64}},
      {{40, 100, 60}, {40, 60, 90}},
      {{2, 500, 64}, {2, 64, 300}},
      {{2, 1, 3, 4, 6}, {2, 5, 3, 6, 7}},
      {{0, 6}, {6, 4}},
      {{4, 0}, {0, 5}},
  };
  const size_t count = cases.size();
  for (size_t i = 0; i < count; ++i) {
    Operands transposed = cases[i];
    transposed.transposed = true;
    std::swap(transposed.a.end()[-1], transposed.a.end()[-2]);
    std::swap(transposed.b.end()[-1], transposed.b.end()[-2]);
    cases.push_back(transposed);
  }
  return cases;
}

at::Tensor View(const at::Tensor& tensor, const Operands& of) {
  return of.transposed ? tensor.transpose(-1, -2) : tensor;
}

TEST(MatrixProductTest, AgreesWithLibTorchInDouble) {
  for (const Operands& of : Cases()) {
    const Tensors inputs = {Numbers(of.a, 1).add(0.5), Numbers(of.b, 2)};
    const auto ours = [&](const Tensors& x) {
      return MatrixProduct(View(x[0], of), View(x[1], of));
    };
    const auto plain = [&](const Tensors& x) { return at::matmul(View(x[0], of), View(x[1], of)); };
    if (inputs[0].numel() == 0) {
      EXPECT_TRUE(at::equal(ours(inputs), plain(inputs)));
      continue;
    }
    ExpectClose(Differentiate(inputs, at::kFloat, ours), Differentiate(inputs, at::kDouble, plain),
                testing::PrintToString(of.a));
  }
}

TEST(MatrixProductTest, AddsTheBias) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t columns : {5, 2000}) {
      const Tensors inputs = {Numbers({members, 300, 40}, 1).add(0.5),
                              Numbers({members, 40, columns}, 2), Numbers({members, columns}, 3)};
      const auto plain = [](const Tensors& x) {
        return at::matmul(x[0], x[1]).add(x[2].unsqueeze(1));
      };
      const auto pack = [](const Tensors& x) { return MatrixProduct(x[0], x[1], x[2]); };
      const auto alone = [](const Tensors& x) {
        return MatrixProduct(x[0].squeeze(0), x[1].squeeze(0), x[2].squeeze(0)).unsqueeze(0);
      };
      const Tensors expected = Differentiate(inputs, at::kDouble, plain);
      ExpectClose(Differentiate(inputs, at::kFloat, pack), expected, "pack");
      if (members == 1) ExpectClose(Differentiate(inputs, at::kFloat, alone), expected, "alone");
    }
  }
}

TEST(MatrixProductTest, Bfloat16IsFloat32RoundedOnce) {
  const auto expect = [](const Tensors& inputs, const Function& product) {
    const auto in_float32 = [&](Tensors x) {
      for (at::Tensor& tensor : x) tensor = tensor.to(at::kFloat);
      return product(x).to(at::kBFloat16);
    };
    const Tensors actual = Differentiate(inputs, at::kBFloat16, product),
                  expected = Differentiate(inputs, at::kBFloat16, in_float32);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(actual[i].scalar_type(), at::kBFloat16);
      EXPECT_TRUE(at::equal(actual[i], expected[i]))
          << inputs[0].sizes() << " by " << inputs[1].sizes() << ", tensor " << i;
    }
  };
  for (const Operands& of : Cases()) {
    // The gradients of a broadcast operand are added up in its type.
    if (of.a.size() > 3) continue;
    expect({Numbers(of.a, 1).add(0.5), Numbers(of.b, 2)},
           [&](const Tensors& x) { return MatrixProduct(View(x[0], of), View(x[1], of)); });
  }
  expect({Numbers({3, 300, 40}, 1), Numbers({3, 40, 2000}, 2), Numbers({3, 2000}, 3)},
         [](const Tensors& x) { return MatrixProduct(x[0], x[1], x[2]); });
}

TEST(MatrixProductTest, BitsDoNotDependOnTheNumberOfThreads) {
  for (const Operands& of : Cases()) {
    const Tensors inputs = {Numbers(of.a, 1).add(0.5), Numbers(of.b, 2)};
    const auto ours = [&](const Tensors& x) {
      return MatrixProduct(View(x[0], of), View(x[1], of));
    };
    SetThreads(1);
    const Tensors expected = Differentiate(inputs, at::kFloat, ours);
    for (const int threads : {2, 3, 5, 8}) {
      SetThreads(threads);
      const Tensors actual = Differentiate(inputs, at::kFloat, ours);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(at::equal(actual[i], expected[i]))
            << testing::PrintToString(of.a) << ", " << threads << " threads, tensor " << i;
      }
    }
  }
}

}  // namespace
}  // namespace lengthwise::models
