#include "models/optimizers/adam.h"

namespace lengthwise::models {

const catalogue::Entry& AdamEntry() {
  static const catalogue::Entry& entry = *new catalogue::Entry{
      .name = "adam",
      .title = "Adam",
      .documentation = "Adam with bias correction and without weight decay (Kingma and Ba 2015).",
      .parameters = {{.name = "beta1",
                      .default_value = 0.9,
                      .documentation = "Decay of the mean of gradients, a step.",
                      .minimum = 0,
                      .maximum = 0.999999},
                     {.name = "beta2",
                      .default_value = 0.999,
                      .documentation = "Decay of the mean of squared gradients, a step.",
                      .minimum = 0,
                      .maximum = 0.999999999},
                     {.name = "epsilon",
                      .default_value = 1e-8,
                      .documentation = "Added to the root of the mean of squared gradients.",
                      .minimum = 1e-30,
                      .maximum = 1}}};
  return entry;
}

}  // namespace lengthwise::models
