// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, from Debian's Random123).
//
// A trial is a pure function: every random number is addressed by (seed, purpose, step, row, index)
// and nothing else. A trial that is resumed, moved or trained in a pack therefore sees the same
// numbers as an uninterrupted one, and no generator state needs to be saved.
#ifndef LENGTHWISE_RANDOM_STREAM_H_
#define LENGTHWISE_RANDOM_STREAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lengthwise::random {

// Purpose of a random number. The values determine a trial's numbers: never reuse or renumber one.
enum class Purpose : uint8_t {
  kWeights = 1,              // row: index of the parameter in its layout
  kLengths = 2,              // the length of a training step
  kTrainingSamples = 3,      // row: sequence in the batch, or the first one of its size
  kTrainingPositions = 4,    // positions of a training step
  kEvaluationSamples = 5,    // step: length evaluated; row: sequence
  kEvaluationPositions = 6,  // step: length evaluated
  kPreview = 7,              // `lengthwise sample`
  kDropout = 8,              // row: layer and sequence (models/layers/dropout.h)
  kEvaluationDropout = 9,    // step: length evaluated; row: as kDropout
  kDataSet = 10,             // step: length; row: example of a fixed data set
  kExampleOrder = 11,        // order of the examples of a length; step: epoch and length
  kBatchOrder = 12,          // order of the batches; step: epoch. Or, of examples from a file, the
                             // sizes of a batch; row: its length
  kPuzzles = 16,             // a set that is drawn whole: tasks/latin_square/
  kEmbeddingNoise = 20,      // step: length evaluated; row: sequence
};

// The stream of numbers at one address. A copy continues independently from the original's
// position. Not thread-safe; different streams are independent of each other.
class Stream {
 public:
  // `step` below 2^56.
  Stream(uint64_t seed, Purpose purpose, uint64_t step, uint32_t row = 0);

  uint32_t NextUint32();
  uint64_t NextUint64();
  // Returns a number uniform in {0, ..., bound - 1}, without bias. `bound` is at least 1.
  uint32_t Below(uint32_t bound);
  // Returns a number uniform in {low, ..., high}, both included: at most 2^32 - 1 numbers.
  int64_t Between(int64_t low, int64_t high);
  // Uniform in [0, 1), 53 bits.
  double NextDouble();
  // Standard normal (Box-Muller in double precision).
  double NextNormal();

 private:
  void Refill();

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_;
  int used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

// Draws `count` distinct numbers of {0, ..., bound - 1}, all subsets equally likely, in ascending
// order if `sorted` and otherwise in uniformly random order. `count` at most `bound`,
// and that below 2^32.
std::vector<int64_t> SampleWithoutReplacement(Stream& stream, int64_t bound, int64_t count,
                                              bool sorted);

}  // namespace lengthwise::random

#endif  // LENGTHWISE_RANDOM_STREAM_H_
