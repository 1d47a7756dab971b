// Attention maps as a report's viewer reads them.
#ifndef LENGTHWISE_CLIENT_REPORT_ATTENTION_MAPS_H_
#define LENGTHWISE_CLIENT_REPORT_ATTENTION_MAPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

struct AttentionMapsForViewer {
  // A JSON array that may stand in a script element; "[]" for no maps.
  std::string json;
  int maps = 0;
  // Maps that were left out because the report would become too large.
  int left_out = 0;
};

// Of each task, network and encoding the maps of the trial that is best on unseen lengths, each
// probability rounded to 1/255, up to `max_bytes` of probabilities in all: the first sequence of
// every length in the order of the grid, then the second of every length while there is room, and
// so on. INTERNAL for a map whose bytes do not fit its shape.
absl::StatusOr<AttentionMapsForViewer> MakeAttentionMaps(
    const std::vector<PlotExperiment>& experiments, int64_t max_bytes);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_REPORT_ATTENTION_MAPS_H_
