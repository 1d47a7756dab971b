// Stochastic gradient descent with optional momentum, as torch.optim.SGD without dampening:
//
//   m = momentum * m + g;  parameters -= rate * m
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const catalogue::Parameters& parameters)
      : momentum_(parameters.Double("momentum")) {}

  // The learning rates.
  std::vector<double> StepNumbers(int64_t step,
                                  absl::Span<const double> learning_rates) const override {
    return {learning_rates.begin(), learning_rates.end()};
  }

 private:
  void Update(ParameterArena& arena, int64_t first, int64_t count, const at::Tensor& numbers,
              const at::Tensor& factors) const override {
    at::Tensor parameters = arena.parameters().narrow(0, first, count);
    at::Tensor direction = arena.gradients().narrow(0, first, count);
    if (factors.defined()) direction.mul_(factors.unsqueeze(1));
    if (momentum_ > 0) {
      direction = arena.first_moments().narrow(0, first, count).mul_(momentum_).add_(direction);
    }
    parameters.sub_(direction.mul(numbers.to(parameters.options()).unsqueeze(1)));
  }

  double momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> CreateSgd(const catalogue::Parameters& parameters) {
  return std::make_unique<Sgd>(parameters);
}

}  // namespace lengthwise::models
