// An experiment's event log, held against the promise: every trial ended once, every measurement is
// there once and is the one of an undisturbed run.
#ifndef LENGTHWISE_TESTS_FAULTS_HISTORY_H_
#define LENGTHWISE_TESTS_FAULTS_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::faults {

// What was measured of a trial, without what a disturbance may change (attempts, times, positions,
// how points are batched, checkpoints that a draining worker adds): equal exactly when the
// measurements are, bit for bit.
struct Measurements {
  std::string curve;                           // merged v1::TrainingPoints
  std::vector<std::string> accuracies;         // "<step> " and v1::LengthAccuracies
  std::map<int64_t, std::string> checkpoints;  // SHA-256 by step
  bool operator==(const Measurements&) const = default;
};

// Of an undisturbed run of the trial by a scripted worker.
Measurements Scripted(const v1::TrialSpecification& specification);

// Of the events of one trial, all from the log.
Measurements Measured(const std::vector<v1::Event>& events);

std::map<std::string, std::vector<v1::Event>> ByTrial(const std::vector<v1::Event>& log);

// What is wrong with the log of a trial that should have succeeded, or nothing: positions that do
// not ascend, steps that are there twice, no outcome or two, a change of state that does not follow
// from the one before, measurements that are not `expected`. Of the checkpoints, those that
// `expected` has must be there; others must be of a step in between.
std::vector<std::string> Problems(const std::string& trial, const std::vector<v1::Event>& events,
                                  const Measurements& expected);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_HISTORY_H_
