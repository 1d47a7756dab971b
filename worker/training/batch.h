// Samples of a task as a network takes them. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_BATCH_H_
#define LENGTHWISE_WORKER_TRAINING_BATCH_H_

#include <cstdint>
#include <vector>

#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::worker::training {

// What the network sees are the n input tokens and then m empty tokens of id input_size(); its last
// m outputs are compared with the targets (randomized positional encodings, notes on the model
// wrapper). Row-major.
struct Batch {
  int64_t rows = 0;
  // T = n + m.
  int64_t tokens_per_row = 0;
  // m.
  int64_t outputs_per_row = 0;
  std::vector<int64_t> tokens;   // [rows, T]
  std::vector<int64_t> targets;  // [rows, m]
  std::vector<uint8_t> mask;     // [rows, m]; 1 where an output counts for accuracy
};

// T of samples of length `n`.
int64_t SequenceTokens(const tasks::TransductionTask& task, int64_t n);

// Samples by their addresses: row r is a function of (seed, purpose, step, r) alone.
struct SampleAddresses {
  uint64_t seed = 0;
  random::Purpose purpose = random::Purpose::kTrainingSamples;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
};

// `count` neighbours.
std::vector<uint32_t> RowsFrom(int64_t first, int64_t count);

// Appends samples of length `n` to `batch`, whose rows so far (none, or other members') are of the
// same length.
void AppendSamples(const tasks::TransductionTask& task, const SampleAddresses& addresses, int64_t n,
                   Batch& batch);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_BATCH_H_
