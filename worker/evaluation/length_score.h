// How well a model does at one length.
#ifndef LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
#define LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lengthwise::worker::evaluation {

struct LengthScore {
  // sum(mask * correct) / sum(mask) over all sequences of the length, 0 to 1; of a regression the
  // share of sequences whose outputs are all within 0.05 + 5 % of their targets.
  double accuracy = 0;
  // Mean soft-max cross-entropy over all sequences and output positions, masked or not, nats; of a
  // regression the mean over sequences of their outputs' mean squared errors.
  double loss = 0;
  // Evaluated.
  int64_t sequences = 0;
  // Other measures by name (v1::LengthAccuracies::metrics).
  std::vector<std::pair<std::string, double>> metrics;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
