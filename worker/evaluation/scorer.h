// Accumulates the scores of a pack's members over the chunks of one length's evaluation sequences.
#ifndef LENGTHWISE_WORKER_EVALUATION_SCORER_H_
#define LENGTHWISE_WORKER_EVALUATION_SCORER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/examples.h"
#include "worker/evaluation/length_score.h"

namespace lengthwise::worker::evaluation {

// Not thread-safe.
class Scorer {
 public:
  virtual ~Scorer() = default;

  // Adds a chunk. `outputs` [P, B, m, O] are those of all members. `chunk` is one member's tensors,
  // since all members see the same sequences.
  virtual void Add(const at::Tensor& outputs, const data::BatchTensors& chunk) = 0;

  // Returns each member's score. Counts are integers and losses are summed in double precision, so
  // chunk sizes matter only if the kernels' rounding depends on the batch size.
  virtual std::vector<LengthScore> Scores() const = 0;
};

// For `length`; fills what the options' each_sequence and answers ask for.
std::unique_ptr<Scorer> CreateScorer(const data::Examples& examples, int64_t members,
                                     at::Device device, int64_t length,
                                     const ScoreOptions& options = {});

// Scores sequences of whole numbers. Accuracy is the share of sequences whose outputs all round to
// their targets.
std::unique_ptr<Scorer> CreateRoundingScorer(double rounding_unit, int64_t members);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_SCORER_H_
