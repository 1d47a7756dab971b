#include "models/optimizers/sgd.h"

#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const catalogue::Parameters& parameters)
      : momentum_(parameters.Double("momentum")) {}

 private:
  void Update(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
              const at::Tensor& learning_rates) const override {
    at::Tensor parameters = arena.parameters().narrow(0, first, count);
    at::Tensor direction = arena.gradients().narrow(0, first, count);
    if (momentum_ > 0) {
      direction = arena.first_moments().narrow(0, first, count).mul_(momentum_).add_(direction);
    }
    parameters.sub_(direction.mul(learning_rates.to(parameters.options()).unsqueeze(1)));
  }

  double momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> CreateSgd(const catalogue::Parameters& parameters) {
  return std::make_unique<Sgd>(parameters);
}

}  // namespace lengthwise::models
