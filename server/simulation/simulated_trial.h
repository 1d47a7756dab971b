// Simulated trials: their specifications, and how they behave.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATED_TRIAL_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATED_TRIAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/simulation/timeline.h"
#include "specification/resolve.h"

namespace lengthwise::server {

inline constexpr int64_t kStepsBetweenPoints = 10;

enum class Nature {
  kGood,
  kFailsNowAndThen,  // temporarily, at any step and for different reasons
  kFailsAlike,       // temporarily, at the same step, for reasons that differ in a number
  kDiverges,         // permanently
  kEndsItsWorker,    // whose process dies, as for lack of memory
};

// Derived from the trial's id.
inline Nature NatureOf(absl::string_view id) {
  if (absl::StartsWith(id, "now_and_then")) return Nature::kFailsNowAndThen;
  if (absl::StartsWith(id, "alike")) return Nature::kFailsAlike;
  if (absl::StartsWith(id, "diverges")) return Nature::kDiverges;
  if (absl::StartsWith(id, "ends")) return Nature::kEndsItsWorker;
  return Nature::kGood;
}

// A grid of `packs` packs with up to `most` trials each. A trial has training.steps steps, stores
// checkpoints unless training.checkpoint_every_steps is 0, and uses training.batch_size units of a
// worker's memory.
specification::Grid MakeGrid(Timeline& timeline, const std::string& name, int64_t packs,
                             int64_t most);
// One more trial of a pack.
specification::GridTrial MoreOf(Timeline& timeline,
                                std::shared_ptr<const specification::GridPack> pack, uint64_t seed);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATED_TRIAL_H_
