#include "specification/expand.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "proto/digest.h"
#include "specification/components.h"

namespace lengthwise::specification {
namespace {

struct Seeds {
  uint64_t weights;
  uint64_t data;
  std::string id;  // its part of the trial id
};

std::vector<Seeds> SeedsOf(const v1::ExperimentSpecification& specification) {
  std::vector<Seeds> all;
  for (const uint64_t seed : specification.seeds()) {
    all.push_back({seed, seed, absl::StrCat("-seed", seed)});
  }
  for (const uint64_t weights : specification.weight_seeds()) {
    for (const uint64_t data : specification.data_seeds()) {
      all.push_back({weights, data, absl::StrCat("-weights", weights, "-data", data)});
    }
  }
  return all;
}

}  // namespace

bool Fits(const v1::Component& network, const v1::Component& encoding) {
  if (models::ReadsInOrder(network.name())) return encoding.name() == "none";
  if (network.name() != models::kPythonNetwork) return encoding.name() != "own";
  const auto heads = network.parameters().find("heads");
  const bool takes_bias = heads != network.parameters().end() && heads->second.number_value() > 0;
  return encoding.name() == "own" ||
         (takes_bias && models::IsBias(encoding.name(), ParametersOf(encoding)));
}

std::string PackKey(v1::TrialSpecification trial) { return MakePack(std::move(trial))->key; }

std::shared_ptr<const GridPack> MakePack(v1::TrialSpecification trial) {
  trial.clear_learning_rate();
  trial.clear_weight_seed();
  trial.clear_data_seed();
  const std::string keep = trial.keep();
  trial.clear_keep();  // retention does not affect training
  std::string key = Digest(trial);
  trial.set_keep(keep);
  return std::make_shared<const GridPack>(GridPack{std::move(key), std::move(trial)});
}

std::vector<GridTrial> Expand(const v1::ExperimentSpecification& specification) {
  const std::vector<Seeds> seeds = SeedsOf(specification);
  std::vector<GridTrial> trials;
  trials.reserve(static_cast<size_t>(specification.tasks_size()) * specification.networks_size() *
                 specification.encodings_size() * specification.learning_rates_size() *
                 seeds.size());
  // Keys are the labels of network and encoding.
  std::map<std::pair<std::string, std::string>, const v1::Component*> overrides;
  for (const v1::NetworkOverride& one : specification.network_overrides()) {
    overrides.emplace(std::pair(one.network().label(), one.encoding()), &one.network());
  }
  v1::TrialSpecification shared;
  *shared.mutable_training() = specification.training();
  *shared.mutable_evaluation() = specification.evaluation();
  shared.set_keep(specification.keep());
  for (const v1::Component& task : specification.tasks()) {
    *shared.mutable_task() = task;
    for (const v1::Component& network : specification.networks()) {
      for (const v1::Component& encoding : specification.encodings()) {
        if (!Fits(network, encoding)) continue;
        *shared.mutable_encoding() = encoding;
        *shared.mutable_network() = network;
        if (const auto own = overrides.find({network.label(), encoding.label()});
            own != overrides.end()) {
          shared.mutable_network()->MergeFrom(*own->second);
        }
        const std::shared_ptr<const GridPack> pack = MakePack(shared);
        for (const double learning_rate : specification.learning_rates()) {
          const std::string prefix =
              absl::StrCat(task.label(), "-", network.label(), "-", encoding.label(), "-lr",
                           catalogue::FormatValue(learning_rate));
          for (const Seeds& seed : seeds) {
            trials.push_back({.id = absl::StrCat(prefix, seed.id),
                              .learning_rate = learning_rate,
                              .weight_seed = seed.weights,
                              .data_seed = seed.data,
                              .pack = pack});
          }
        }
      }
    }
  }
  return trials;
}

}  // namespace lengthwise::specification
