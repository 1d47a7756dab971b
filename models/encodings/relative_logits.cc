#include "models/encodings/relative_logits.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/zeros.h"
#include "models/encodings/sinusoids.h"
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

at::Tensor DifferenceLogits(const at::Tensor& biased, const at::Tensor& sinusoids,
                            const at::Tensor& projection, int64_t rows_at_once) {
  const int64_t members = biased.size(0), sequences = biased.size(1), heads = biased.size(2),
                n = biased.size(3), head_size = biased.size(4);
  const at::Tensor by_place = biased.permute({0, 3, 2, 1, 4});  // [P, n, H, B, dh]
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < n; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, n - first);
    // For each query place and head, one product of all sequences' queries with the projected
    // distances from there.
    const at::Tensor relative = MatrixProduct(SinusoidsOfDifferences(sinusoids, first, count)
                                                  .view({members, count * n, sinusoids.size(2)}),
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

at::Tensor RotatedQueries(const at::Tensor& biased, const at::Tensor& sinusoids,
                          const at::Tensor& projection) {
  const int64_t members = biased.size(0), sequences = biased.size(1), heads = biased.size(2),
                n = biased.size(3), head_size = biased.size(4), d = sinusoids.size(2);
  // A head's columns of W_R, transposed: [P H, dh, d].
  const at::Tensor columns = projection.view({members, d, heads, head_size})
                                 .permute({0, 2, 3, 1})
                                 .reshape({members * heads, head_size, d});
  const at::Tensor projected =
      MatrixProduct(biased.transpose(1, 2).reshape({members * heads, sequences * n, head_size}),
                    columns)
          .view({members, heads, sequences, n, d});
  const int64_t half = d / 2;
  const at::Tensor of_sin = projected.narrow(4, 0, half), of_cos = projected.narrow(4, half, half);
  const at::Tensor here = sinusoids.view({members, 1, 1, n, d});
  const at::Tensor sin = here.narrow(4, 0, half), cos = here.narrow(4, half, half);
  return at::cat({of_sin.mul(cos).add(of_cos.mul(sin)), of_cos.mul(cos).sub(of_sin.mul(sin))}, 4);
}

at::Tensor FactoredDifferenceLogits(const at::Tensor& biased, const at::Tensor& sinusoids,
                                    const at::Tensor& projection) {
  const at::Tensor rotated = RotatedQueries(biased, sinusoids, projection);
  const int64_t members = rotated.size(0), heads = rotated.size(1), sequences = rotated.size(2),
                n = rotated.size(3), d = rotated.size(4);
  return MatrixProduct(rotated.view({members, heads * sequences * n, d}), sinusoids.transpose(1, 2))
      .view({members, heads, sequences, n, n})
      .transpose(1, 2);
}

LogitFactors RelativeFactors(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& content_bias, const at::Tensor& position_bias,
                             const at::Tensor& sinusoids, const at::Tensor& projection) {
  const int64_t members = keys.size(0), n = keys.size(3), d = sinusoids.size(2);
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(4)));
  const auto biased = [&](const at::Tensor& bias) {
    return queries.add(bias.unsqueeze(1).unsqueeze(3)).mul(scale);
  };
  const at::Tensor here =
      sinusoids.view({members, 1, 1, n, d}).expand({-1, keys.size(1), keys.size(2), -1, -1});
  const at::Tensor rotated = RotatedQueries(biased(position_bias), sinusoids, projection);
  return {.queries = at::cat({biased(content_bias), rotated.transpose(1, 2)}, 4),
          .keys = at::cat({keys, here}, 4)};
}

}  // namespace lengthwise::models
