// Extracts an experiment's measurements, to compare a disturbed run with an undisturbed one.
#ifndef LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_
#define LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_

#include <map>
#include <string>
#include <vector>

#include "proto/event.pb.h"

namespace lengthwise::end_to_end {

// All measurements of an experiment, by trial id, without what a disturbance may change (times,
// attempts, positions). Equal exactly if the measurements are, byte for byte.
struct History {
  std::map<std::string, std::string> loss_curves;
  std::map<std::string, std::string> accuracies;
  std::map<std::string, std::string> attention_maps;
  std::map<std::string, std::string> answer_errors;
  // SHA-256 of the last checkpoint: weights and optimizer state.
  std::map<std::string, std::string> final_checkpoints;
  bool operator==(const History&) const = default;
};

// Folds events as a watcher does that discards, at every resumption, the events after the
// checkpoint.
History Fold(const std::vector<v1::Event>& events);

}  // namespace lengthwise::end_to_end

#endif  // LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_
