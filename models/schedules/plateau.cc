// Lowers the learning rate when the loss stops falling, as
// torch.optim.lr_scheduler.ReduceLROnPlateau (the released code of positional attention, section
// 6).
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "models/schedules/catalogue.h"

namespace lengthwise::models {
namespace {

// Smaller changes of the learning rate are ignored (PyTorch's `eps`).
constexpr double kLeastChange = 1e-8;

class Plateau : public Schedule {
 public:
  Plateau(const catalogue::Parameters& parameters, const ScheduleContext& context)
      : factor_(parameters.Double("factor")),
        patience_(parameters.Int("patience")),
        threshold_(parameters.Double("threshold")),
        min_rate_(parameters.Double("min_rate")),
        steps_(parameters.Int("every_steps") == 0 ? context.steps_per_epoch
                                                  : parameters.Int("every_steps")),
        learning_rate_(context.learning_rate),
        rate_(context.learning_rate) {}

  double Factor(int64_t step) const override { return rate_ / learning_rate_; }

  bool AwaitsLoss(int64_t step) const override { return step % steps_ == 0; }

  void Observe(int64_t step, double loss) override {
    sum_ += loss;
    if (!AwaitsLoss(step)) return;
    if (sum_ < best_ * (1 - threshold_)) {
      best_ = sum_;
      bad_ = 0;
    } else {
      ++bad_;
    }
    sum_ = 0;
    if (bad_ <= patience_) return;
    bad_ = 0;
    const double lower = std::max(rate_ * factor_, min_rate_);
    if (rate_ - lower > kLeastChange) rate_ = lower;
  }

  std::string State() const override {
    // 17 digits restore every double exactly.
    return absl::StrFormat("%.17g %.17g %.17g %d", rate_, best_, sum_, bad_);
  }

  absl::Status Restore(absl::string_view state) override {
    const std::vector<absl::string_view> parts = absl::StrSplit(state, ' ');
    double rate = 0, best = 0, sum = 0;
    int64_t bad = 0;
    if (parts.size() != 4 || !absl::SimpleAtod(parts[0], &rate) ||
        !absl::SimpleAtod(parts[1], &best) || !absl::SimpleAtod(parts[2], &sum) ||
        !absl::SimpleAtoi(parts[3], &bad) || !(rate > 0) || bad < 0) {
      return absl::DataLossError(
          absl::StrCat("\"", state, "\" is not a state of the schedule \"plateau\""));
    }
    rate_ = rate;
    best_ = best;
    sum_ = sum;
    bad_ = bad;
    return absl::OkStatus();
  }

 private:
  double factor_;
  int64_t patience_;
  double threshold_;
  double min_rate_;
  // Steps between checks of the loss.
  int64_t steps_;
  double learning_rate_;

  double rate_;
  double best_ = std::numeric_limits<double>::infinity();
  // Sum of the losses since the last check.
  double sum_ = 0;
  // Checks in a row without a new minimum.
  int64_t bad_ = 0;
};

void CheckPlateau(const catalogue::Parameters& parameters, const ScheduleContext& context,
                  absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (parameters.Int("every_steps") > 0 || context.steps_per_epoch > 0) return;
  AddProblem(problems, absl::StrCat(path, ".every_steps"),
             "training has no epochs, after which the loss is checked; set "
             "it, or training.examples");
}

std::unique_ptr<Schedule> CreatePlateau(const catalogue::Parameters& parameters,
                                        const ScheduleContext& context) {
  return std::make_unique<Plateau>(parameters, context);
}

}  // namespace

ScheduleEntry PlateauEntry() {
  return {{.name = "plateau",
           .title = "on plateaus",
           .documentation =
               "Multiplies the learning rate by `factor` after more than `patience` "
               "epochs in a row without a new minimum of the epoch's summed training "
               "loss (PyTorch's ReduceLROnPlateau; released code of positional attention). "
               "Each trial of a pack follows its own losses.",
           .parameters =
               {{.name = "factor",
                 .default_value = 0.9,
                 .documentation = "Factor on the learning rate.",
                 .minimum = 0,
                 .maximum = 0.999999},
                {.name = "patience",
                 .default_value = int64_t{50},
                 .documentation = "Epochs in a row without a new minimum that are tolerated.",
                 .minimum = 0,
                 .maximum = 1e9},
                {.name = "threshold",
                 .default_value = 1e-4,
                 .documentation = "Fraction by which a new minimum must be lower.",
                 .minimum = 0,
                 .maximum = 1},
                {.name = "min_rate",
                 .default_value = 1e-6,
                 .documentation = "Lower bound of the learning rate.",
                 .minimum = 0,
                 .maximum = 1e6},
                {.name = "every_steps",
                 .default_value = int64_t{0},
                 .documentation =
                     "Steps per check, whose losses are summed. 0: an epoch of training.examples.",
                 .minimum = 0,
                 .maximum = 1e12}}},
          CheckPlateau,
          CreatePlateau};
}

}  // namespace lengthwise::models
