// Checks an experiment's event log against the promises: every trial ended exactly once, and every
// measurement is there once and equals that of an undisturbed run.
#ifndef LENGTHWISE_TESTS_FAULTS_HISTORY_H_
#define LENGTHWISE_TESTS_FAULTS_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::faults {

// The measurements of a trial, without what a disturbance may change: attempts, times, positions,
// batching of points, and checkpoints added by a draining worker. Equal exactly if the measurements
// are, bit for bit.
struct Measurements {
  std::string curve;                           // merged v1::TrainingPoints
  std::vector<std::string> accuracies;         // "<step> " and v1::LengthAccuracies
  std::map<int64_t, std::string> checkpoints;  // SHA-256 by step
  bool operator==(const Measurements&) const = default;
};

// The measurements of an undisturbed run by a scripted worker.
Measurements Scripted(const v1::TrialSpecification& specification);

// The measurements in a log. `events` are all events of one trial.
Measurements Measured(const std::vector<v1::Event>& events);

std::map<std::string, std::vector<v1::Event>> ByTrial(const std::vector<v1::Event>& log);

// Returns the problems in the log of a trial that should have succeeded: positions that do not
// ascend, duplicate steps, no outcome or two, a state change that does not follow from the previous
// one, measurements other than `expected`. All checkpoints of `expected` must be there; further
// ones must be of steps in between.
std::vector<std::string> Problems(const std::string& trial, const std::vector<v1::Event>& events,
                                  const Measurements& expected);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_HISTORY_H_
