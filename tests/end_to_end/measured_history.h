// What was measured of an experiment, to compare a disturbed run with an undisturbed one.
#ifndef LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_
#define LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_

#include <map>
#include <string>
#include <vector>

#include "proto/event.pb.h"

namespace lengthwise::end_to_end {

// Everything measured of an experiment, by trial id, without what a disturbance may change (times,
// attempts, positions): bytes that are equal exactly when the measurements are.
struct History {
  std::map<std::string, std::string> loss_curves;
  std::map<std::string, std::string> accuracies;
  std::map<std::string, std::string> attention_maps;
  std::map<std::string, std::string> answer_errors;
  // SHA-256 of the last checkpoint: weights and optimizer state, bit for bit.
  std::map<std::string, std::string> final_checkpoints;
  bool operator==(const History&) const = default;
};

// The history as a watcher has it who forgets, at every resumption, what lay behind the checkpoint.
History Fold(const std::vector<v1::Event>& events);

}  // namespace lengthwise::end_to_end

#endif  // LENGTHWISE_TESTS_END_TO_END_MEASURED_HISTORY_H_
