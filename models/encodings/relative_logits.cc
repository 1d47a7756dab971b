#include "models/encodings/relative_logits.h"

#include <algorithm>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/zeros.h"
#include "models/encodings/sinusoids.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

// View of the diagonal band: row i starts at column n - 1 - i, 2n - 2 numbers after row i - 1.
at::Tensor Band(const at::Tensor& rows) {
  const int64_t n = rows.size(1);
  return rows.as_strided({rows.size(0), n, n}, {n * (2 * n - 1), 2 * n - 2, 1},
                         rows.storage_offset() + n - 1);
}

class Shift : public torch::autograd::Function<Shift> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows) {
    return Band(rows);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor& shifted = gradients[0];
    const int64_t n = shifted.size(1);
    at::Tensor rows = at::zeros({shifted.size(0), n, 2 * n - 1}, shifted.options());
    Band(rows).copy_(shifted);
    return {rows};
  }
};

}  // namespace

at::Tensor ShiftedRows(const at::Tensor& rows) { return Shift::apply(rows); }

at::Tensor DifferenceLogits(const at::Tensor& given, const at::Tensor& sinusoids,
                            const at::Tensor& given_projection, int64_t rows_at_once) {
  // Stored results of a CPU come from products in the parameters' type.
  const auto operand = [&](const at::Tensor& tensor) {
    return given.is_cpu() ? tensor : Operand(tensor);
  };
  const at::Tensor biased = operand(given), projection = operand(given_projection);
  const int64_t members = biased.size(0), sequences = biased.size(1), heads = biased.size(2),
                n = biased.size(3), head_size = biased.size(4);
  const at::Tensor by_place = biased.permute({0, 3, 2, 1, 4});  // [P, n, H, B, dh]
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < n; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, n - first);
    // For each query place and head, one product of all sequences' queries with the projected
    // distances from there.
    const at::Tensor relative =
        MatrixProduct(operand(SinusoidsOfDifferences(sinusoids, first, count)
                                  .view({members, count * n, sinusoids.size(2)})),
                      projection)
            .view({members, count, n, heads, head_size})
            .permute({0, 1, 3, 4, 2})
            .reshape({members * count * heads, head_size, n});
    parts.push_back(MatrixProduct(by_place.narrow(1, first, count)
                                      .reshape({members * count * heads, sequences, head_size}),
                                  relative)
                        .view({members, count, heads, sequences, n}));
  }
  const at::Tensor term = parts.size() == 1 ? parts[0] : at::cat(parts, 1);
  return term.permute({0, 3, 2, 1, 4});
}

}  // namespace lengthwise::models
