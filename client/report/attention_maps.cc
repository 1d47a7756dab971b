#include "client/report/attention_maps.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/plotting/display_names.h"
#include "client/rendering/attention_grid.h"
#include "nlohmann/json.hpp"

namespace lengthwise::client {
namespace {

std::string Rounded(const v1::AttentionMap& map) {
  const AttentionProbabilities probabilities(map);
  const int n = map.tokens_size();
  std::string bytes;
  bytes.reserve(static_cast<size_t>(map.layers()) * map.heads() * n * n);
  for (int layer = 0; layer < map.layers(); ++layer) {
    for (int head = 0; head < map.heads(); ++head) {
      for (int query = 0; query < n; ++query) {
        for (int key = 0; key < n; ++key) {
          const float p = std::clamp(probabilities.At(layer, head, query, key), 0.0F, 1.0F);
          bytes.push_back(static_cast<char>(std::lround(255 * p)));
        }
      }
    }
  }
  return absl::Base64Escape(bytes);
}

// A map and whose it is.
struct Recorded {
  const TrialGroup* group = nullptr;
  const v1::AttentionMap* map = nullptr;
};

// In the order in which they are taken while there is room: of each trial and length, or input, the
// first sequence, then of each the second, and so on.
std::vector<Recorded> InOrderOfWorth(const std::vector<TrialGroup>& groups,
                                     const std::vector<PlotExperiment>& experiments) {
  const auto maps_of = [&](const v1::Trial& trial) -> const std::vector<v1::AttentionMap>* {
    for (const PlotExperiment& experiment : experiments) {
      const auto found = experiment.attention_maps.find(trial.name());
      if (found != experiment.attention_maps.end()) return &found->second;
    }
    return nullptr;
  };
  std::vector<Recorded> all;
  for (const auto& [group, trial] :
       BestTrials(groups, [&](const v1::Trial& trial) { return maps_of(trial) != nullptr; })) {
    for (const v1::AttentionMap& map : *maps_of(*trial)) all.push_back({group, &map});
  }
  std::stable_sort(all.begin(), all.end(), [](const Recorded& a, const Recorded& b) {
    return a.map->sequence() < b.map->sequence();
  });
  return all;
}

nlohmann::json ToJson(const Recorded& recorded) {
  const v1::Component& task = *recorded.group->task;
  const v1::AttentionMap& map = *recorded.map;
  nlohmann::json json = {
      {"model", absl::StrCat(TaskTitle(task), ", ", recorded.group->name)},
      {"input", map.input_number() > 0 ? absl::StrCat("input ", map.input_number())
                                       : absl::StrCat(AxisName(task), " ", map.length())},
      {"sequence", map.sequence() + 1},
      {"tokens", std::vector<int>(map.tokens().begin(), map.tokens().end())},
      {"first_output", HasOutputTokens(task) ? map.length() : map.tokens_size()},
      {"layers", map.layers()},
      {"heads", map.heads()},
      {"probabilities", Rounded(map)}};
  if (!map.numbers().empty()) {
    json["numbers"] = std::vector<double>(map.numbers().begin(), map.numbers().end());
  }
  return json;
}

}  // namespace

absl::StatusOr<AttentionMapsForViewer> MakeAttentionMaps(
    const std::vector<PlotExperiment>& experiments, int64_t max_bytes) {
  AttentionMapsForViewer result;
  nlohmann::json maps = nlohmann::json::array();
  int64_t bytes = 0;
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  for (const Recorded& recorded : InOrderOfWorth(groups, experiments)) {
    const v1::AttentionMap& map = *recorded.map;
    if (absl::Status status = AttentionProbabilities::Check(map); !status.ok()) return status;
    const auto size = static_cast<int64_t>(map.probabilities().size() / sizeof(float));
    if (bytes + size > max_bytes) {
      ++result.left_out;
      continue;
    }
    bytes += size;
    maps.push_back(ToJson(recorded));
  }
  result.maps = static_cast<int>(maps.size());
  // No text of it may end the script element.
  result.json = absl::StrReplaceAll(
      maps.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), {{"<", "\\u003c"}});
  return result;
}

}  // namespace lengthwise::client
