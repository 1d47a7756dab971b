#include "models/encodings/shifted_rows.h"

#include "ATen/ops/zeros.h"
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

}  // namespace lengthwise::models
