// Data sets that are drawn once and gone through in epochs: which examples a training step sees.
#ifndef LENGTHWISE_TASKS_DATA_SET_H_
#define LENGTHWISE_TASKS_DATA_SET_H_

#include <cstdint>
#include <vector>

namespace lengthwise::tasks {

// The same number of examples of each length, batches of one length each, in an order of their own
// in every epoch (positional attention, appendix B; for one length, what every paper does). The
// last batch of a length may be smaller: no example is left out.
//
// Everything is a function of the shape, the seeds and the step: nothing is stored, whatever the
// number of examples.
class DataSet {
 public:
  struct Shape {
    // At least one a length, below 2^32 in all.
    int64_t examples = 0;
    int64_t batch_size = 0;
    // Lengths, both ends included.
    int64_t min_length = 0;
    int64_t max_length = 0;
  };

  // What a step trains on: examples that stand at `first` and after in the epoch's order of those
  // of the length.
  struct Batch {
    int64_t length = 0;
    int64_t epoch = 0;  // from 0
    int64_t first = 0;
    int64_t rows = 0;
  };

  explicit DataSet(const Shape& shape) : shape_(shape) {}

  // Of `length`; where the lengths do not divide the examples, the shortest have one more.
  int64_t ExamplesOfLength(int64_t length) const;

  // Steps of an epoch.
  int64_t Batches() const;

  // Of `step`, from 1. The order of batches depends on `schedule_seed` alone, so that the members
  // of a pack share it.
  Batch BatchOfStep(uint64_t schedule_seed, int64_t step) const;

  // The examples of the batch, each below ExamplesOfLength(batch.length), in an order that depends
  // on `data_seed`.
  std::vector<uint32_t> Examples(const Batch& batch, uint64_t data_seed) const;

 private:
  int64_t lengths() const { return shape_.max_length - shape_.min_length + 1; }
  // Lengths that have one example more than the others.
  int64_t longer() const { return shape_.examples % lengths(); }
  int64_t BatchesOf(int64_t examples) const {
    return (examples + shape_.batch_size - 1) / shape_.batch_size;
  }

  Shape shape_;
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_DATA_SET_H_
