#include "server/simulation/simulated_trial.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

std::string AnyNature(Timeline& timeline) {
  switch (timeline.Below(16)) {
    case 0:
      return "now_and_then";
    case 1:
      return "alike";
    case 2:
      return "diverges";
    case 3:
      return "ends_worker";
    default:
      return "good";
  }
}

}  // namespace

specification::Grid MakeGrid(Timeline& timeline, const std::string& name, int64_t packs,
                             int64_t most) {
  specification::Grid grid;
  grid.specification.set_name(name);
  for (int64_t pack = 0; pack < packs; ++pack) {
    auto shared = std::make_shared<specification::GridPack>();
    v1::Training& training = *shared->specification.mutable_training();
    training.set_steps(kStepsBetweenPoints * (1 + timeline.Below(timeline.Chance(4) ? 60 : 10)));
    training.set_checkpoint_every_steps(timeline.Chance(3) ? 3 * kStepsBetweenPoints : 0);
    // A worker has 4 or 8 units of memory.
    const int64_t needs[] = {1, 1, 1, 2, 4, 16};
    training.set_batch_size(static_cast<int32_t>(needs[timeline.Below(6)]));
    shared->key = absl::StrCat("shape of ", training.steps(), " steps, ", training.batch_size(),
                               training.checkpoint_every_steps() > 0 ? ", kept" : "");
    const int64_t trials = 1 + timeline.Below(most);
    for (int64_t i = 0; i < trials; ++i) {
      grid.trials.push_back(MoreOf(timeline, shared, grid.trials.size()));
    }
  }
  return grid;
}

specification::GridTrial MoreOf(Timeline& timeline,
                                std::shared_ptr<const specification::GridPack> pack,
                                uint64_t seed) {
  return {.id = absl::StrCat(AnyNature(timeline), "-seed", seed),
          .weight_seed = seed,
          .data_seed = seed,
          .pack = std::move(pack)};
}

}  // namespace lengthwise::server
