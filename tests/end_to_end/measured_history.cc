#include "tests/end_to_end/measured_history.h"

#include <cstddef>
#include <cstdint>

namespace lengthwise::end_to_end {
namespace {

std::string TrialId(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

History Fold(const std::vector<v1::Event>& events) {
  std::map<std::string, std::vector<v1::Event>> by_trial;
  for (const v1::Event& event : events) {
    std::vector<v1::Event>& kept = by_trial[TrialId(event.trial())];
    if (event.has_state_change()) {
      if (event.state_change().to() != v1::RUNNING) continue;
      // Events after that step's checkpoint are sent again; without a checkpoint, all events are.
      const int64_t step = event.state_change().resumed_from_step();
      size_t keep = 0;
      for (size_t i = 0; i < kept.size(); ++i) {
        if (kept[i].has_checkpoint() && kept[i].step() == step) keep = i + 1;
      }
      kept.resize(keep);
    } else if (!event.has_log_line()) {
      kept.push_back(event);
    }
  }
  History history;
  for (const auto& [trial, kept] : by_trial) {
    v1::TrainingPoints points;
    for (const v1::Event& event : kept) {
      if (event.has_training_points()) points.MergeFrom(event.training_points());
      if (event.has_length_accuracies()) {
        v1::LengthAccuracies measured = event.length_accuracies();
        measured.clear_training_seconds();
        history.accuracies[trial] += std::to_string(event.step()) + measured.SerializeAsString();
      }
      if (event.has_attention_map()) {
        history.attention_maps[trial] += event.attention_map().SerializeAsString();
      }
      if (event.has_answer_errors()) {
        history.answer_errors[trial] += event.answer_errors().SerializeAsString();
      }
      if (event.has_checkpoint()) history.final_checkpoints[trial] = event.checkpoint().sha256();
    }
    history.loss_curves[trial] = points.SerializeAsString();
  }
  return history;
}

}  // namespace lengthwise::end_to_end
