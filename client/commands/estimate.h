// Estimates how long a grid will take from the measured times of trials: earlier ones of a server,
// or a few steps of each kind on this machine.
#ifndef LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
#define LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/commands/local_training.h"
#include "client/commands/program.h"
#include "client/commands/specification_file.h"
#include "client/connection/connection.h"
#include "specification/resolve.h"

namespace lengthwise::client {

struct TimeEstimate {
  // Infinite if unknown.
  absl::Duration time = absl::InfiniteDuration();
  // Of each trial; empty if unknown.
  std::vector<double> seconds;
  // One line for people: the time and its basis, or the reason why there is no estimate.
  std::string text;
};

// Uses the seconds per step of succeeded trials that have the same task, network, encoding, batch
// size, lengths, precision and packing: those of the server's newest experiments and of `extended`,
// the full name of the experiment that the grid is added to, if any. Assumes that each of `workers`
// runs one trial at a time. 0 stands for the number of live workers of the server.
TimeEstimate EstimateTime(Connection& connection, const specification::Grid& grid, int workers = 0,
                          const std::string& extended = "");

// Estimates the time on this machine. A private server and workers, in a directory that is deleted
// afterwards, train at least one trial of each kind for a second or two and evaluate a part of its
// sequences. No more trials run side by side than in the whole grid, and no fewer if there are as
// many. CANCELLED after Ctrl-C.
absl::StatusOr<TimeEstimate> MeasureTime(Program& program, const ResolvedFile& read,
                                         const LocalWorkers& workers);

// Prints what a dry run tells of a grid: its trials, steps and estimated time.
void PrintDryRun(Program& program, const specification::Grid& grid, const TimeEstimate& estimate);

// The part that needs no server: returns the seconds of each of the grid's trials; empty if one has
// no counterpart among `measured`. Sets `based_on` to the number of counterparts.
std::vector<double> EstimateSeconds(const specification::Grid& grid,
                                    const std::vector<v1::Trial>& measured, int& based_on);

// Returns the time after which `workers` have trained the trials, each one at a time and in order.
double TimeOfAll(const std::vector<double>& seconds, int workers);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
