#include "tests/faults/history.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/sha256.h"
#include "proto/length_accuracies.h"
#include "tests/faults/scripted_trial.h"

namespace lengthwise::faults {
namespace {

std::string AccuraciesText(int64_t step, v1::LengthAccuracies accuracies) {
  accuracies.clear_training_seconds();
  return absl::StrCat(step, " ", accuracies.SerializeAsString());
}

}  // namespace

Measurements Scripted(const v1::TrialSpecification& specification) {
  Measurements expected;
  const auto recorded = [&](const ScriptedTrial& trial, bool final) {
    v1::LengthAccuracies accuracies = trial.Evaluate(final);
    SetMeans(specification.evaluation().seen_up_to(), accuracies);  // as the server does
    return AccuraciesText(trial.step(), std::move(accuracies));
  };
  v1::TrainingPoints points;
  ScriptedTrial trial(specification);
  while (trial.step() < trial.steps()) {
    trial.Advance(points);
    if (trial.IsEvaluationDue()) {
      expected.accuracies.push_back(recorded(trial, false));
    }
    if (trial.IsCheckpointDue()) {
      expected.checkpoints[trial.step()] = platform::Sha256Hex(trial.Checkpoint());
    }
  }
  if (!specification.evaluated_trial().empty()) {
    // A re-evaluation does not train: its log begins with the evaluated model.
    points.Clear();
    expected.accuracies.clear();
    expected.checkpoints.erase(expected.checkpoints.begin(), std::prev(expected.checkpoints.end()));
  }
  expected.accuracies.push_back(recorded(trial, true));
  expected.curve = points.SerializeAsString();
  return expected;
}

Measurements Measured(const std::vector<v1::Event>& events) {
  Measurements measured;
  v1::TrainingPoints points;
  for (const v1::Event& event : events) {
    if (event.has_training_points()) points.MergeFrom(event.training_points());
    if (event.has_length_accuracies()) {
      measured.accuracies.push_back(AccuraciesText(event.step(), event.length_accuracies()));
    }
    if (event.has_checkpoint()) {
      measured.checkpoints[event.step()] = event.checkpoint().sha256();
    }
  }
  measured.curve = points.SerializeAsString();
  return measured;
}

std::map<std::string, std::vector<v1::Event>> ByTrial(const std::vector<v1::Event>& log) {
  std::map<std::string, std::vector<v1::Event>> trials;
  for (const v1::Event& event : log) trials[event.trial()].push_back(event);
  return trials;
}

std::vector<std::string> Problems(const std::string& trial, const std::vector<v1::Event>& events,
                                  const Measurements& expected) {
  std::vector<std::string> problems;
  const auto wrong = [&](const v1::Event& event, absl::string_view what) {
    problems.push_back(absl::StrCat(trial, ": ", what, " at ", event.ShortDebugString()));
  };
  int64_t last_position = -1;
  int64_t last_point = 0;
  int64_t last_checkpoint = 0;
  int outcomes = 0;
  v1::TrialState state = v1::QUEUED;
  for (const v1::Event& event : events) {
    if (event.position() <= last_position) wrong(event, "positions do not ascend");
    last_position = event.position();
    for (const int64_t step : event.training_points().steps()) {
      if (step <= last_point) wrong(event, "a duplicate point, or one out of order");
      last_point = step;
    }
    if (event.has_checkpoint()) {
      if (event.step() <= last_checkpoint) wrong(event, "a duplicate checkpoint");
      last_checkpoint = event.step();
    }
    if (event.has_state_change()) {
      if (event.state_change().from() != state)
        wrong(event, "a state change that does not follow the previous state");
      if (event.state_change().reason().empty()) wrong(event, "a state change without a reason");
      state = event.state_change().to();
    }
    if (event.has_outcome()) ++outcomes;
  }
  if (state != v1::SUCCEEDED) {
    problems.push_back(absl::StrCat(trial, ": ended as ", v1::TrialState_Name(state)));
  }
  if (outcomes != 1) problems.push_back(absl::StrCat(trial, ": has ", outcomes, " outcomes"));
  Measurements measured = Measured(events);
  for (auto checkpoint = measured.checkpoints.begin(); checkpoint != measured.checkpoints.end();) {
    const bool added = !expected.checkpoints.contains(checkpoint->first) &&
                       checkpoint->first < expected.checkpoints.rbegin()->first;
    checkpoint = added ? measured.checkpoints.erase(checkpoint) : std::next(checkpoint);
  }
  if (measured.curve != expected.curve) problems.push_back(trial + ": the loss curve differs");
  if (measured.accuracies != expected.accuracies) {
    problems.push_back(absl::StrCat(trial, ": the accuracies differ (", measured.accuracies.size(),
                                    " instead of ", expected.accuracies.size(), ")"));
  }
  if (measured.checkpoints != expected.checkpoints) {
    problems.push_back(trial + ": the checkpoints differ");
  }
  return problems;
}

}  // namespace lengthwise::faults
