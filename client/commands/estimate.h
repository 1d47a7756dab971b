// Estimates how long a grid will take from the measured times of earlier trials.
#ifndef LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
#define LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/connection/connection.h"
#include "specification/resolve.h"

namespace lengthwise::client {

struct TimeEstimate {
  // Infinite if unknown.
  absl::Duration time = absl::InfiniteDuration();
  // One line for people: the time and its basis, or the reason why there is no estimate.
  std::string text;
};

// Uses the seconds per step of succeeded trials that have the same task, network, encoding, batch
// size, lengths and precision: those of the server's newest experiments and of `extended`, the full
// name of the experiment that the grid is added to, if any. Assumes that each of `workers` runs one
// trial at a time. 0 stands for the number of live workers of the server.
TimeEstimate EstimateTime(Connection& connection, const specification::Grid& grid, int workers = 0,
                          const std::string& extended = "");

// The part that needs no server: returns the seconds that the grid's trials take in sequence, or a
// negative number if a trial has no counterpart among `earlier`. Sets `based_on` to the number of
// counterparts.
double EstimateSeconds(const specification::Grid& grid, const std::vector<v1::Trial>& earlier,
                       int& based_on);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
