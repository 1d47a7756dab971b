#include <vector>

#include "models/optimizers/adam.h"

namespace lengthwise::models {
namespace {

std::vector<catalogue::ParameterEntry> AdamParameters() {
  return {{.name = "beta1",
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
           .maximum = 1}};
}

std::vector<catalogue::ParameterEntry> AdamWParameters() {
  std::vector<catalogue::ParameterEntry> parameters = AdamParameters();
  parameters.push_back(
      {.name = "weight_decay",
       .default_value = 0.1,
       .documentation = "Share of a parameter that a step at learning rate 1 takes away.",
       .minimum = 0,
       .maximum = 1000});
  parameters.push_back({.name = "decayed",
                        .default_value = std::string("all"),
                        .documentation = "\"all\" parameters (relational reasoning, Table 6), or "
                                         "\"matrices\" alone: no biases, norms or parameters of "
                                         "the encoding (decimal addition).",
                        .allowed = {"all", "matrices"}});
  return parameters;
}

}  // namespace

const catalogue::Entry& AdamEntry() {
  static const catalogue::Entry& entry = *new catalogue::Entry{
      .name = "adam",
      .title = "Adam",
      .documentation = "Adam with bias correction and without weight decay (Kingma and Ba 2015).",
      .parameters = AdamParameters()};
  return entry;
}

const catalogue::Entry& AdamWEntry() {
  static const catalogue::Entry& entry = *new catalogue::Entry{
      .name = "adamw",
      .title = "AdamW",
      .documentation =
          "Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019).",
      .parameters = AdamWParameters()};
  return entry;
}

}  // namespace lengthwise::models
