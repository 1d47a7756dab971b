#include "models/layers/products.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ATen/ExpandUtils.h"
#include "ATen/core/LegacyTypeDispatch.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/baddbmm.h"
#include "ATen/ops/bmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/mm.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/layers.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Multiplications that are worth handing to another thread, some 10 microseconds.
constexpr int64_t kLeastMultiplications = int64_t{1} << 19;
// Large products are cut into about as many pieces, so that many threads have work and unequally
// fast ones finish together.
constexpr int64_t kPieces = 16;
// Pieces of one product have a multiple of as many rows or columns, but for the last.
constexpr int64_t kLeastSide = 32;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Writes a b [G, m, n], plus `bias` [G, n] if it is defined.
void Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, at::Tensor& y) {
  const int64_t products = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  // The side of y that is cut.
  const int64_t dimension = m >= n ? 1 : 2, side = std::max(m, n);
  const int64_t multiplications = std::max<int64_t>(1, m * k * n);
  const int64_t products_at_once = std::max<int64_t>(1, kLeastMultiplications / multiplications);
  const int64_t wanted =
      std::min(multiplications / kLeastMultiplications, DivideUp(kPieces, products));
  const int64_t at_once = wanted <= 1 ? std::max<int64_t>(1, side)
                                      : DivideUp(DivideUp(side, wanted), kLeastSide) * kLeastSide;
  const int64_t parts = std::max<int64_t>(1, DivideUp(side, at_once));
  OnThreads(DivideUp(products, products_at_once) * parts, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView no_gradients;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece / parts * products_at_once;
      const int64_t count = std::min(products_at_once, products - first);
      const int64_t start = piece % parts * at_once;
      const int64_t length = std::min(at_once, side - start);
      at::Tensor left = a.narrow(0, first, count), right = b.narrow(0, first, count);
      at::Tensor to = y.narrow(0, first, count).narrow(dimension, start, length);
      (dimension == 1 ? left : right) =
          (dimension == 1 ? left : right).narrow(dimension, start, length);
      at::Tensor added;
      if (bias.defined()) {
        added = bias.narrow(0, first, count);
        if (dimension == 2) added = added.narrow(1, start, length);
      }
      if (products == 1) {
        left = left.squeeze(0), right = right.squeeze(0), to = to.squeeze(0);
        if (bias.defined()) {
          at::addmm_out(to, added.squeeze(0), left, right);
        } else {
          at::mm_out(to, left, right);
        }
      } else if (bias.defined()) {
        at::baddbmm_out(to, added.unsqueeze(1), left, right);
      } else {
        at::bmm_out(to, left, right);
      }
    }
  });
}

at::Tensor Multiplied(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {}) {
  at::Tensor y = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  Multiply(a, b, bias, y);
  return y;
}

// `a` [G, m, k], `b` [G, k, n], `bias` [G, n].
class CutProduct : public torch::autograd::Function<CutProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({a, b});
    context->saved_data["bias"] = bias.has_value();
    return Multiplied(Widened(a), Widened(b), bias.has_value() ? Widened(*bias) : at::Tensor())
        .to(a.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &a = saved[0], &b = saved[1], gradient = Widened(gradients[0]);
    variable_list result(3);
    if (context->needs_input_grad(0)) result[0] = Multiplied(gradient, Widened(b).transpose(1, 2));
    if (context->needs_input_grad(1)) result[1] = Multiplied(Widened(a).transpose(1, 2), gradient);
    if (context->saved_data["bias"].toBool()) result[2] = gradient.sum(1);
    for (at::Tensor& one : result) {
      if (one.defined()) one = one.to(a.scalar_type());
    }
    return result;
  }
};

}  // namespace

at::Tensor MatrixProduct(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu()) return at::matmul(a, b);
  const int64_t last = a.dim() - 2;
  std::vector<int64_t> shape = at::infer_size(a.sizes().slice(0, last), b.sizes().slice(0, last));
  const auto as_list = [&](const at::Tensor& tensor) {
    std::vector<int64_t> whole = shape;
    whole.insert(whole.end(), {tensor.size(last), tensor.size(last + 1)});
    return tensor.expand(whole).reshape(
        {c10::multiply_integers(shape), tensor.size(last), tensor.size(last + 1)});
  };
  const at::Tensor product = CutProduct::apply(as_list(a), as_list(b), std::nullopt);
  shape.insert(shape.end(), {product.size(1), product.size(2)});
  return product.view(shape);
}

at::Tensor MatrixProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  if (a.dim() == 3) {
    return a.is_cpu() ? CutProduct::apply(a, b, bias) : at::baddbmm(bias.unsqueeze(1), a, b);
  }
  if (!a.is_cpu()) return at::addmm(bias, a, b);
  return CutProduct::apply(a.unsqueeze(0), b.unsqueeze(0), bias.unsqueeze(0)).squeeze(0);
}

}  // namespace lengthwise::models
