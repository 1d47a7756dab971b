#include "client/analysis/recorded_maps.h"

#include <utility>

#include "client/rendering/attention_grid.h"

namespace lengthwise::client {

absl::StatusOr<std::vector<v1::AttentionMap>> FetchMaps(Connection& connection,
                                                        const v1::Trial& trial) {
  auto recorded = connection.QueryAttentionMaps(trial.name(), /*length=*/0);
  if (!recorded.ok()) return recorded.status();
  std::vector<v1::AttentionMap> maps;
  for (v1::AttentionMap& map : *recorded) {
    if (map.input_number() > 0) continue;
    if (absl::Status status = AttentionProbabilities::Check(map); !status.ok()) return status;
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace lengthwise::client
