#include "models/layers/feed_forward.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/relu.h"
#include "ATen/ops/sum.h"
#include "c10/core/GradMode.h"
#include "models/kernels/bias_relu.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows that go through the layer together: 1 MiB of hidden numbers for d_ff 256. Gradients of the
// weights are summed over rows chunk by chunk, so their bits depend on it.
constexpr int64_t kRows = 1024;

// The chunks of the rows of all members, on threads of their own.
class Chunks {
 public:
  explicit Chunks(const at::Tensor& rows)  // [P, R, d]
      : members_(rows.size(0)),
        rows_(rows.size(1)),
        chunks_(std::max<int64_t>(1, (rows_ + kRows - 1) / kRows)) {}

  int64_t of_member() const { return chunks_; }

  // Body: void(member, chunk, first row, count), without gradients.
  template <typename Body>
  void ForEach(const Body& body) const {
    at::parallel_for(0, members_ * chunks_, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
      const c10::NoGradGuard no_gradients;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % chunks_ * kRows;
        body(unit / chunks_, unit % chunks_, first, std::min(kRows, rows_ - first));
      }
    });
  }

 private:
  int64_t members_;
  int64_t rows_;
  int64_t chunks_;  // of a member
};

// Of [P, R, width]: [count, width].
at::Tensor Rows(const at::Tensor& tensor, int64_t member, int64_t first, int64_t count) {
  return tensor.select(0, member).narrow(0, first, count);
}

kernels::RowsShape Shape(const at::Tensor& rows) {
  return {.members = 1, .rows = rows.size(0), .width = rows.size(1)};
}

// Sums of one gradient over the chunks of each member: [P, ...].
class PartialSums {
 public:
  PartialSums(const Chunks& chunks, const at::Tensor& like) {
    std::vector<int64_t> shape = like.sizes().vec();
    shape.insert(shape.begin() + 1, chunks.of_member());
    parts_ = at::empty(shape, like.options().requires_grad(false));
  }

  at::Tensor Part(int64_t member, int64_t chunk) const {
    return parts_.select(0, member).select(0, chunk);
  }
  // Added in the order of the chunks.
  at::Tensor Sum() const {
    at::Tensor sum = parts_.select(1, 0);
    for (int64_t chunk = 1; chunk < parts_.size(1); ++chunk) sum = sum.add(parts_.select(1, chunk));
    return sum.contiguous();
  }

 private:
  at::Tensor parts_;
};

// Rows [P, R, d]; all tensors are contiguous.
class FusedFeedForward : public torch::autograd::Function<FusedFeedForward> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& up,
                            const at::Tensor& up_bias, const at::Tensor& down,
                            const at::Tensor& down_bias) {
    at::Tensor hidden = at::empty({rows.size(0), rows.size(1), up.size(2)}, rows.options());
    at::Tensor output = at::empty_like(rows);
    Chunks(rows).ForEach([&](int64_t member, int64_t, int64_t first, int64_t count) {
      at::Tensor part = Rows(hidden, member, first, count);
      at::mm_out(part, Rows(rows, member, first, count), up.select(0, member));
      kernels::BiasRelu(Shape(part), up_bias.select(0, member).const_data_ptr<float>(),
                        part.mutable_data_ptr<float>(), kernels::Serially);
      at::Tensor result = Rows(output, member, first, count);
      at::addmm_out(result, down_bias.select(0, member), part, down.select(0, member));
    });
    context->save_for_backward({rows, up, up_bias, down, hidden});
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &up = saved[1], &up_bias = saved[2], &down = saved[3],
                     &hidden = saved[4];
    const at::Tensor gradient = gradients[0].contiguous();
    const Chunks chunks(rows);
    at::Tensor rows_gradient = at::empty_like(rows);
    const PartialSums up_sums(chunks, up), up_bias_sums(chunks, up_bias), down_sums(chunks, down);
    chunks.ForEach([&](int64_t member, int64_t chunk, int64_t first, int64_t count) {
      const at::Tensor after = Rows(gradient, member, first, count);
      const at::Tensor active = Rows(hidden, member, first, count);
      at::Tensor down_part = down_sums.Part(member, chunk), up_part = up_sums.Part(member, chunk);
      at::Tensor bias_part = up_bias_sums.Part(member, chunk);
      at::mm_out(down_part, active.t(), after);
      at::Tensor before = at::mm(after, down.select(0, member).t());
      kernels::BiasReluBackward(Shape(before), active.const_data_ptr<float>(),
                                before.const_data_ptr<float>(), before.mutable_data_ptr<float>(),
                                bias_part.mutable_data_ptr<float>(), kernels::Serially);
      at::mm_out(up_part, Rows(rows, member, first, count).t(), before);
      at::Tensor result = Rows(rows_gradient, member, first, count);
      at::mm_out(result, before, up.select(0, member).t());
    });
    return {rows_gradient, up_sums.Sum(), up_bias_sums.Sum(), down_sums.Sum(), gradient.sum(1)};
  }
};

}  // namespace

at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters) {
  const auto& [up, up_bias, down, down_bias] = parameters;
  if (!features.device().is_cpu() || features.scalar_type() != at::kFloat ||
      Bfloat16Products::Active()) {
    return Linear(at::relu(Linear(Operand(features), up, up_bias)), down, down_bias);
  }
  return FusedFeedForward::apply(features.flatten(1, 2).contiguous(), up.contiguous(),
                                 up_bias.contiguous(), down.contiguous(), down_bias.contiguous())
      .unflatten(1, {features.size(1), features.size(2)});
}

}  // namespace lengthwise::models
