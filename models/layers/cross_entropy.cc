#include "models/layers/cross_entropy.h"

#include <cstdint>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/log_softmax.h"
#include "c10/core/GradMode.h"
#include "c10/util/Exception.h"
#include "models/kernels/cross_entropy.h"
#include "models/kernels/rows_cuda.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::CrossEntropyInputs Inputs(const at::Tensor& logits, const at::Tensor& classes,
                                   const at::Tensor& mask) {
  return {.logits = logits.const_data_ptr<float>(),
          .classes = classes.const_data_ptr<int64_t>(),
          .mask = mask.const_data_ptr<bool>()};
}

// Returns the members' sums [P, 3] of kernels::CrossEntropyResult. Only the sum of losses, the
// first, is differentiable. All tensors are contiguous.
class FusedSums : public torch::autograd::Function<FusedSums> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& classes, const at::Tensor& mask) {
    const kernels::RowsShape shape = RowsOf(logits);
    const kernels::CrossEntropyInputs inputs = Inputs(logits, classes, mask);
    at::Tensor log_sum_exp = at::empty({shape.members, shape.rows}, logits.options());
    at::Tensor sums = at::empty({shape.members, 3}, logits.options());
    const kernels::CrossEntropyResult result = {
        .log_sum_exp = log_sum_exp.mutable_data_ptr<float>(),
        .sums = sums.mutable_data_ptr<float>()};
    if (logits.is_cpu()) {
      kernels::CrossEntropy(shape, inputs, result, OnThreads);
    } else {
      at::Tensor workspace = at::empty({kernels::RowsWorkspaceCuda(shape)}, logits.options());
      OnStream(logits.device(), [&](auto* stream) {
        return kernels::CrossEntropyCuda(shape, inputs, result, workspace.mutable_data_ptr<float>(),
                                         stream);
      });
    }
    context->save_for_backward({logits, classes, mask, log_sum_exp});
    return sums;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &log_sum_exp = saved[3];
    const kernels::RowsShape shape = RowsOf(logits);
    const kernels::CrossEntropyInputs inputs = Inputs(logits, saved[1], saved[2]);
    const at::Tensor sum_gradients = gradients[0].select(1, 0).contiguous();
    at::Tensor gradient = at::empty_like(logits);
    const auto* rows = log_sum_exp.const_data_ptr<float>();
    const auto* given = sum_gradients.const_data_ptr<float>();
    auto* to = gradient.mutable_data_ptr<float>();
    if (logits.is_cpu()) {
      kernels::CrossEntropyBackward(shape, inputs, rows, given, to, OnThreads);
    } else {
      OnStream(logits.device(), [&](auto* stream) {
        return kernels::CrossEntropyBackwardCuda(shape, inputs, rows, given, to, stream);
      });
    }
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

at::Tensor Share(const at::Tensor& right, const at::Tensor& counted) {
  return right.to(at::kDouble).div(counted.clamp_min(1));
}

}  // namespace

ClassMeasures CrossEntropy(const at::Tensor& logits, const at::Tensor& classes,
                           const at::Tensor& mask) {
  const at::IntArrayRef outputs_shape = logits.sizes().slice(0, 3);
  TORCH_CHECK(classes.sizes() == outputs_shape && mask.sizes() == outputs_shape,
              "the shapes of classes and mask differ from the outputs'");
  if (logits.scalar_type() == at::kFloat && HasKernel(FusedOperation::kCrossEntropy, logits)) {
    const at::Tensor sums =
        FusedSums::apply(logits.contiguous(), classes.contiguous(), mask.contiguous());
    const double outputs = static_cast<double>(classes.size(1) * classes.size(2));
    const at::Tensor measured = sums.detach();
    return {.losses = sums.select(1, 0).div(outputs),
            .accuracies = Share(measured.select(1, 1), measured.select(1, 2))};
  }
  ClassMeasures measures;
  measures.losses =
      at::log_softmax(logits, -1).gather(-1, classes.unsqueeze(-1)).flatten(1).mean(1).neg();
  const c10::NoGradGuard no_gradients;
  const at::Tensor right = logits.argmax(-1).eq(classes).logical_and(mask);
  measures.accuracies = Share(right.flatten(1).sum(1), mask.flatten(1).sum(1));
  return measures;
}

}  // namespace lengthwise::models
