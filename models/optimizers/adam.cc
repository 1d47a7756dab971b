// Adam (Kingma and Ba 2015, algorithm 1):
//
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   parameters -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
//
// Epsilon is outside the root, as in optax.adam and torch.optim.Adam. AdamW (Loshchilov and Hutter
// 2019) first subtracts rate * weight_decay of each parameter.
#include "models/kernels/adam.h"

#include <cmath>

#include "absl/strings/match.h"
#include "models/kernels/adam_cuda.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

struct WeightDecay {
  // 0 disables decay.
  double rate = 0;
  bool matrices_alone = false;
};

// Subtracts rate * decay of the parameters [count, N]. `rates` is [count].
void Decay(const ParameterLayout& layout, const WeightDecay& decay, const at::Tensor& rates,
           at::Tensor parameters) {
  if (decay.rate == 0) return;
  const at::Tensor kept =
      rates.mul(-decay.rate).add(1).to(parameters.options()).unsqueeze(1);  // [count, 1]
  for (const ParameterLayout::Slot& slot : layout.slots()) {
    const bool is_matrix = slot.shape.size() >= 2 && !absl::StrContains(slot.name, "encoding.");
    if (!slot.trained || (decay.matrices_alone && !is_matrix)) continue;
    parameters.narrow(1, slot.offset, slot.size).mul_(kept);
  }
}

class Adam : public Optimizer {
 public:
  Adam(const catalogue::Parameters& parameters, const WeightDecay& decay)
      : beta1_(parameters.Double("beta1")),
        beta2_(parameters.Double("beta2")),
        epsilon_(parameters.Double("epsilon")),
        decay_(decay) {}

  // `count` learning rates, then the same divided by 1 - beta1^step, then 1 - beta2^step.
  std::vector<double> StepNumbers(int64_t step,
                                  absl::Span<const double> learning_rates) const override {
    std::vector<double> numbers(learning_rates.begin(), learning_rates.end());
    const double correction1 = 1 - std::pow(beta1_, static_cast<double>(step));
    for (const double rate : learning_rates) numbers.push_back(rate / correction1);
    numbers.push_back(1 - std::pow(beta2_, static_cast<double>(step)));
    return numbers;
  }

  bool HasFusedKernel() const override { return true; }

 private:
  void Update(ParameterArena& arena, int64_t first, int64_t count, const at::Tensor& numbers,
              const at::Tensor& factors) const override {
    at::Tensor parameters = arena.parameters().narrow(0, first, count);
    at::Tensor gradients = arena.gradients().narrow(0, first, count);
    at::Tensor mean = arena.first_moments().narrow(0, first, count);
    at::Tensor mean_square = arena.second_moments().narrow(0, first, count);

    Decay(arena.layout(), decay_, numbers.narrow(0, 0, count), parameters);

    if (parameters.scalar_type() == at::kFloat && HasKernel(FusedOperation::kAdam, parameters)) {
      return UpdateInOnePass(parameters, gradients, mean, mean_square, numbers, factors);
    }
    if (factors.defined()) gradients.mul_(factors.unsqueeze(1));
    mean.mul_(beta1_).add_(gradients, 1 - beta1_);
    mean_square.mul_(beta2_).addcmul_(gradients, gradients, 1 - beta2_);
    const at::Tensor correction2 = numbers.select(0, 2 * count);
    const at::Tensor root = mean_square.div(correction2).sqrt_().add_(epsilon_);
    const at::Tensor rates = numbers.narrow(0, count, count).to(parameters.options());
    parameters.sub_(mean.div(root).mul_(rates.unsqueeze(1)));
  }

  void UpdateInOnePass(at::Tensor& parameters, const at::Tensor& gradients, at::Tensor& mean,
                       at::Tensor& mean_square, const at::Tensor& numbers,
                       const at::Tensor& factors) const {
    const int64_t count = parameters.size(0);
    const auto* rates = numbers.const_data_ptr<double>() + count;
    const kernels::AdamRows rows = {
        .parameters = parameters.mutable_data_ptr<float>(),
        .gradients = gradients.const_data_ptr<float>(),
        .first_moments = mean.mutable_data_ptr<float>(),
        .second_moments = mean_square.mutable_data_ptr<float>(),
        .rates = rates,
        .second_correction = rates + count,
        .factors = factors.defined() ? factors.const_data_ptr<float>() : nullptr,
        .count = count,
        .row_size = parameters.size(1)};
    const kernels::AdamConstants constants = {.beta1 = static_cast<float>(beta1_),
                                              .beta2 = static_cast<float>(beta2_),
                                              .rest1 = static_cast<float>(1 - beta1_),
                                              .rest2 = static_cast<float>(1 - beta2_),
                                              .epsilon = static_cast<float>(epsilon_)};
    if (parameters.is_cpu()) return kernels::AdamStep(rows, constants, OnThreads);
    OnStream(parameters.device(),
             [&](auto* stream) { return kernels::AdamStepCuda(rows, constants, stream); });
  }

  double beta1_;
  double beta2_;
  double epsilon_;
  WeightDecay decay_;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdam(const catalogue::Parameters& parameters) {
  return std::make_unique<Adam>(parameters, WeightDecay());
}

std::unique_ptr<Optimizer> CreateAdamW(const catalogue::Parameters& parameters) {
  return std::make_unique<Adam>(
      parameters, WeightDecay{.rate = parameters.Double("weight_decay"),
                              .matrices_alone = parameters.String("decayed") == "matrices"});
}

}  // namespace lengthwise::models
