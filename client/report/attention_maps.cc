#include "client/report/attention_maps.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/plotting/attention_figure.h"
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

const std::vector<v1::AttentionMap>* FindMaps(const std::vector<PlotExperiment>& experiments,
                                              const std::string& trial) {
  for (const PlotExperiment& experiment : experiments) {
    const auto found = experiment.attention_maps.find(trial);
    if (found != experiment.attention_maps.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<AttentionMapsForViewer> MakeAttentionMaps(
    const std::vector<PlotExperiment>& experiments, int64_t max_bytes) {
  AttentionMapsForViewer result;
  nlohmann::json maps = nlohmann::json::array();
  int64_t bytes = 0;
  for (const v1::Trial* trial : TrialsWithAttention(experiments)) {
    const std::vector<v1::AttentionMap>* const recorded = FindMaps(experiments, trial->name());
    if (recorded == nullptr) continue;
    for (const v1::AttentionMap& map : *recorded) {
      if (map.sequence() > 0) continue;  // one of a length is enough to look at
      if (absl::Status status = AttentionProbabilities::Check(map); !status.ok()) return status;
      const auto size = static_cast<int64_t>(map.probabilities().size() / sizeof(float));
      if (bytes + size > max_bytes) {
        ++result.left_out;
        continue;
      }
      bytes += size;
      const v1::TrialSpecification& specification = trial->specification();
      maps.push_back({{"title", absl::StrCat(TaskTitle(specification.task()), ", ",
                                             EncodingTitle(specification.encoding()), ", ",
                                             map.input_number() > 0
                                                 ? absl::StrCat("input ", map.input_number())
                                                 : absl::StrCat("length ", map.length()))},
                      {"tokens", std::vector<int>(map.tokens().begin(), map.tokens().end())},
                      {"input", map.length()},
                      {"layers", map.layers()},
                      {"heads", map.heads()},
                      {"probabilities", Rounded(map)}});
    }
  }
  result.maps = static_cast<int>(maps.size());
  // No text of it may end the script element.
  result.json = absl::StrReplaceAll(
      maps.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), {{"<", "\\u003c"}});
  return result;
}

}  // namespace lengthwise::client
