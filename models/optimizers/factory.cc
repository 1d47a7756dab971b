#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/optimizers/adam.h"
#include "models/optimizers/optimizer.h"
#include "models/optimizers/sgd.h"

namespace lengthwise::models {
namespace {

struct Implementation {
  const catalogue::Entry& entry;
  std::unique_ptr<Optimizer> (*create)(const catalogue::Parameters& parameters);
};

const std::vector<Implementation>& Implementations() {
  static const auto& implementations = *new std::vector<Implementation>{
      {AdamEntry(), CreateAdam},
      {AdamWEntry(), CreateAdamW},
      {SgdEntry(), CreateSgd},
  };
  return implementations;
}

}  // namespace

std::vector<std::string> ImplementedOptimizers() {
  std::vector<std::string> names;
  for (const Implementation& implementation : Implementations()) {
    names.push_back(implementation.entry.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    absl::string_view name, const catalogue::Parameters& parameters) {
  for (const Implementation& implementation : Implementations()) {
    if (implementation.entry.name == name) return implementation.create(parameters);
  }
  return absl::NotFoundError(absl::StrCat("unknown optimizer \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, ImplementedOptimizers())));
}

}  // namespace lengthwise::models
