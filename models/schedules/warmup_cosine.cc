// Linear warm-up, then half a cosine down (Loshchilov and Hutter 2017; decimal addition, Table
// E.1).
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "models/schedules/catalogue.h"

namespace lengthwise::models {
namespace {

class WarmupCosine : public Schedule {
 public:
  WarmupCosine(const catalogue::Parameters& parameters, const ScheduleContext& context)
      : warmup_steps_(parameters.Int("warmup_steps")),
        steps_(context.steps),
        final_factor_(parameters.Double("final_factor")) {}

  double Factor(int64_t step) const override {
    if (step < warmup_steps_) {
      return static_cast<double>(step) / static_cast<double>(warmup_steps_);
    }
    if (step >= steps_) return final_factor_;
    const double done =
        static_cast<double>(step - warmup_steps_) / static_cast<double>(steps_ - warmup_steps_);
    return final_factor_ + (1 - final_factor_) * (1 + std::cos(std::numbers::pi * done)) / 2;
  }

 private:
  int64_t warmup_steps_;
  int64_t steps_;
  double final_factor_;
};

void CheckWarmupCosine(const catalogue::Parameters& parameters, const ScheduleContext& context,
                       absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (parameters.Int("warmup_steps") < context.steps) return;
  AddProblem(problems, absl::StrCat(path, ".warmup_steps"), "got ", parameters.Int("warmup_steps"),
             ", expected less than training.steps, ", context.steps);
}

std::unique_ptr<Schedule> CreateWarmupCosine(const catalogue::Parameters& parameters,
                                             const ScheduleContext& context) {
  return std::make_unique<WarmupCosine>(parameters, context);
}

}  // namespace

ScheduleEntry WarmupCosineEntry() {
  return {{.name = "warmup_cosine",
           .title = "warm-up and cosine",
           .documentation = "Linear warm-up: the learning rate grows from 0 and is reached at step "
                            "`warmup_steps`. It then falls along half a cosine to `final_factor` "
                            "of itself at the last step (decimal addition, Table E.1).",
           .parameters = {{.name = "warmup_steps",
                           .default_value = int64_t{500},
                           .documentation = "Warm-up steps; less than training.steps.",
                           .minimum = 0,
                           .maximum = 1e12},
                          {.name = "final_factor",
                           .default_value = 0.1,
                           .documentation = "Fraction of the learning rate at the last step.",
                           .minimum = 0,
                           .maximum = 1}}},
          CheckWarmupCosine,
          CreateWarmupCosine};
}

}  // namespace lengthwise::models
