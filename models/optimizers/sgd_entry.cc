#include "models/optimizers/sgd.h"

namespace lengthwise::models {

const catalogue::Entry& SgdEntry() {
  static const catalogue::Entry& entry = *new catalogue::Entry{
      .name = "sgd",
      .title = "SGD",
      .documentation = "Stochastic gradient descent (relational reasoning, Table 4).",
      .parameters = {{.name = "momentum",
                      .default_value = 0.0,
                      .documentation = "Share of the last update's direction that is kept.",
                      .minimum = 0,
                      .maximum = 0.999999}}};
  return entry;
}

}  // namespace lengthwise::models
