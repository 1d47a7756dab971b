// A device's work that is recorded once and then repeated as a whole, without the host's part in
// it: CUDA graphs. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_
#define LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_

#include <functional>
#include <memory>

namespace lengthwise::worker::training {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Calls work() and records what it puts on the device, without doing it. Once. Throws what work()
  // throws, or a std::exception where recording is not possible, as where work() waits for the
  // device or copies numbers of the host to it; the device has done nothing then, and the graph is
  // of no use.
  virtual void Record(const std::function<void()>& work) = 0;

  // Puts what was recorded on the device again, with the memory that it was recorded with, and does
  // not wait for it. Throws a std::exception, and then nothing was put there.
  virtual void Replay() = 0;
};

// Graphs that may use the same memory for what is between their beginnings and ends: one at a time
// runs. Not thread-safe.
class GraphPool {
 public:
  virtual ~GraphPool() = default;
  virtual std::unique_ptr<DeviceGraph> MakeGraph() = 0;

  // Gives memory that is kept for later back to the device, where a recording can get it.
  virtual void FreeUnusedMemory() = 0;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_
