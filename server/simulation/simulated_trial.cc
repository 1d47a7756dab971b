#include "server/simulation/simulated_trial.h"

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
    specification::GridTrial trial;
    v1::Training& training = *trial.specification.mutable_training();
    training.set_steps(kStepsBetweenPoints * (1 + timeline.Below(timeline.Chance(4) ? 60 : 10)));
    training.set_checkpoint_every_steps(timeline.Chance(3) ? 3 * kStepsBetweenPoints : 0);
    // A worker has 4 or 8 units of memory.
    const int64_t needs[] = {1, 1, 1, 2, 4, 16};
    training.set_batch_size(static_cast<int32_t>(needs[timeline.Below(6)]));
    trial.pack_key = absl::StrCat("shape of ", training.steps(), " steps, ", training.batch_size(),
                                  training.checkpoint_every_steps() > 0 ? ", kept" : "");
    const int64_t trials = 1 + timeline.Below(most);
    for (int64_t i = 0; i < trials; ++i) {
      grid.trials.push_back(MoreOf(timeline, trial, static_cast<uint64_t>(100 * pack + i)));
    }
  }
  return grid;
}

specification::GridTrial MoreOf(Timeline& timeline, const specification::GridTrial& trial,
                                uint64_t seed) {
  specification::GridTrial more = trial;
  more.id = absl::StrCat(AnyNature(timeline), "-seed", seed);
  more.specification.set_weight_seed(seed);
  more.specification.set_data_seed(seed);
  return more;
}

}  // namespace lengthwise::server
