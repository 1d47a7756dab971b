// How long a grid will take, judged by trials that were measured before.
#ifndef LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
#define LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/connection/connection.h"
#include "specification/resolve.h"

namespace lengthwise::client {

struct TimeEstimate {
  // Infinite where it is unknown.
  absl::Duration time = absl::InfiniteDuration();
  // A line for people that says the time and what it is based on, or why there is none.
  std::string text;
};

// Of the server's newest experiments it takes the succeeded trials with the same task, network,
// encoding, batch size and lengths, and their seconds per step; trials are taken to run one after
// the other on each of `workers`. 0: on each live worker of the server.
TimeEstimate EstimateTime(Connection& connection, const specification::Grid& grid, int workers = 0);

// The part without a server: seconds that the grid's trials take together, one after the other;
// negative where a trial has no counterpart among `earlier`. `based_on` is set to the number of
// counterparts.
double EstimateSeconds(const specification::Grid& grid, const std::vector<v1::Trial>& earlier,
                       int& based_on);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_ESTIMATE_H_
