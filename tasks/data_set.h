// Fixed data sets: selects the examples that a training step sees.
#ifndef LENGTHWISE_TASKS_DATA_SET_H_
#define LENGTHWISE_TASKS_DATA_SET_H_

#include <cstdint>
#include <vector>

namespace lengthwise::tasks {

// A data set with the same number of examples of each length. Each batch has examples of one
// length, and each epoch shuffles batches and examples (released code of positional attention; with
// a single length, every paper's procedure). The last batch of a length may be smaller, so no
// example is left out.
//
// Every result is a function of the shape, the seeds and the step. Memory does not grow with the
// number of examples.
class DataSet {
 public:
  struct Shape {
    // At least one for each length; below 2^32 in total.
    int64_t examples = 0;
    int64_t batch_size = 0;
    // Inclusive.
    int64_t min_length = 0;
    int64_t max_length = 0;
  };

  // The examples of a training step: those from index `first` on in the epoch's order for the
  // length.
  struct Batch {
    int64_t length = 0;
    int64_t epoch = 0;  // from 0
    int64_t first = 0;
    int64_t rows = 0;
  };

  explicit DataSet(const Shape& shape) : shape_(shape) {}

  // Number of examples of `length`. If the lengths do not divide the total, the shortest have one
  // more.
  int64_t ExamplesOfLength(int64_t length) const;

  // Steps of an epoch.
  int64_t Batches() const;

  // The batch of `step`, counted from 1. The order of batches depends only on `schedule_seed`, so
  // that the members of a pack share it.
  Batch BatchOfStep(uint64_t schedule_seed, int64_t step) const;

  // The batch's examples, each below ExamplesOfLength(batch.length), in an order determined by
  // `data_seed`.
  std::vector<uint32_t> Examples(const Batch& batch, uint64_t data_seed) const;

 private:
  int64_t lengths() const { return shape_.max_length - shape_.min_length + 1; }
  // Number of lengths with an extra example.
  int64_t longer() const { return shape_.examples % lengths(); }
  int64_t BatchesOf(int64_t examples) const {
    return (examples + shape_.batch_size - 1) / shape_.batch_size;
  }

  Shape shape_;
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_DATA_SET_H_
