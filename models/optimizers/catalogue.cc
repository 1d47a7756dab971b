#include "models/optimizers/catalogue.h"

#include <string>
#include <vector>

namespace lengthwise::models {
namespace {

// One section for each optimizer.

std::vector<catalogue::ParameterEntry> AdamParameters() {
  return {{.name = "beta1",
           .default_value = 0.9,
           .documentation = "Decay per step of the mean of gradients.",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "beta2",
           .default_value = 0.999,
           .documentation = "Decay per step of the mean of squared gradients.",
           .minimum = 0,
           .maximum = 0.999999999},
          {.name = "epsilon",
           .default_value = 1e-8,
           .documentation = "Added to the root of the mean of squared gradients.",
           .minimum = 1e-30,
           .maximum = 1}};
}

std::vector<catalogue::ParameterEntry> AdamWParameters() {
  std::vector<catalogue::ParameterEntry> parameters = AdamParameters();
  parameters.push_back(
      {.name = "weight_decay",
       .default_value = 0.1,
       .documentation = "Fraction of a parameter that a step at learning rate 1 removes.",
       .minimum = 0,
       .maximum = 1000});
  parameters.push_back(
      {.name = "decayed",
       .default_value = std::string("all"),
       .documentation =
           "Parameters that decay: \"all\" (relational reasoning, Table 6), or only \"matrices\": "
           "no biases, norms or parameters of the encoding (decimal addition, whose paper does not "
           "say which).",
       .allowed = {"all", "matrices"}});
  return parameters;
}

catalogue::Entry Adam() {
  return {
      .name = "adam",
      .title = "Adam",
      .documentation = "Adam with bias correction and without weight decay (Kingma and Ba 2015).",
      .parameters = AdamParameters()};
}

catalogue::Entry AdamW() {
  return {.name = "adamw",
          .title = "AdamW",
          .documentation =
              "Adam with weight decay decoupled from the gradient (Loshchilov and Hutter 2019).",
          .parameters = AdamWParameters()};
}

catalogue::Entry Sgd() {
  return {
      .name = "sgd",
      .title = "SGD",
      .documentation = "Stochastic gradient descent (relational reasoning, Table 4).",
      .parameters = {{.name = "momentum",
                      .default_value = 0.0,
                      .documentation = "Fraction of the previous update's direction that is kept.",
                      .minimum = 0,
                      .maximum = 0.999999}}};
}

}  // namespace

absl::Span<const catalogue::Entry* const> OptimizerEntries() {
#define LENGTHWISE_ENTRY(Name) new catalogue::Entry(Name()),
  static const auto& entries =
      *new std::vector<const catalogue::Entry*>{LENGTHWISE_OPTIMIZERS(LENGTHWISE_ENTRY)};
#undef LENGTHWISE_ENTRY
  return entries;
}

}  // namespace lengthwise::models
