// How well a model does at one length.
#ifndef LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
#define LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_

namespace lengthwise::worker::evaluation {

struct LengthScore {
  // sum(mask * correct) / sum(mask) over all sequences of the length, 0 to 1.
  double accuracy = 0;
  // Mean soft-max cross-entropy over all sequences and output positions, masked or not, nats.
  double loss = 0;
  // Evaluated.
  int64_t sequences = 0;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
