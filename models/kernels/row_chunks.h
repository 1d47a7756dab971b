// Splits a pack's rows into chunks: units of work for threads, and partial sums whose order, and so
// whose bits, do not depend on the number of threads.
#ifndef LENGTHWISE_MODELS_KERNELS_ROW_CHUNKS_H_
#define LENGTHWISE_MODELS_KERNELS_ROW_CHUNKS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/kernels/parallel_for.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// [P, rows, width], contiguous.
struct RowsShape {
  int64_t members = 1;
  int64_t rows = 1;
  int64_t width = 1;
  // Numbers from one member's parameters (scale, offset or bias) to the next member's, which follow
  // each other in an arena only after all the others. 0: `width`. Gradients are [P, width].
  int64_t parameter_stride = 0;
};

// Index of a member's parameters.
LENGTHWISE_EVERYWHERE int64_t ParametersOf(const RowsShape& shape, int64_t member) {
  return member * (shape.parameter_stride == 0 ? shape.width : shape.parameter_stride);
}

// Consecutive rows of one member.
struct RowChunk {
  int64_t number = 0;  // index over all members
  int64_t member = 0;
  int64_t first = 0;  // first row, over all members
  int64_t count = 0;
};

class RowChunks {
 public:
  // kFewRows for single passes over the rows; kManyRows if each chunk holds large partial sums.
  static constexpr int64_t kFewRows = 256, kManyRows = 1024;

  explicit RowChunks(const RowsShape& shape, int64_t rows = kFewRows)
      : shape_(shape), rows_(rows), chunks_((shape.rows + rows - 1) / rows) {}

  int64_t count() const { return shape_.members * chunks_; }

  // Calls body(const RowChunk&) for each chunk, possibly concurrently.
  template <typename Body>
  void ForEach(const ParallelFor& parallel_for, const Body& body) const {
    parallel_for(count(), [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number) {
        const int64_t member = number / chunks_, row = number % chunks_ * rows_;
        body(RowChunk{.number = number,
                      .member = member,
                      .first = member * shape_.rows + row,
                      .count = std::min(rows_, shape_.rows - row)});
      }
    });
  }

  // Adds up `parts` [count(), width], one per chunk, in order, into `sums` [P, width].
  void Sum(const std::vector<float>& parts, int64_t width, float* sums) const {
    for (int64_t member = 0; member < shape_.members; ++member) {
      float* to = sums + member * width;
      std::fill_n(to, width, 0.0F);
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        const float* part = parts.data() + (member * chunks_ + chunk) * width;
        for (int64_t c = 0; c < width; ++c) to[c] += part[c];
      }
    }
  }

 private:
  RowsShape shape_;
  int64_t rows_;    // per chunk
  int64_t chunks_;  // per member
};

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ROW_CHUNKS_H_
