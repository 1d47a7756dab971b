// Interface to device graphs (CUDA graphs): records a device's work once and replays it as a whole,
// without the host's work. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_
#define LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_

#include <functional>
#include <memory>

namespace lengthwise::worker::training {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Calls work() and records the operations that it submits, without executing them. Call it once.
  // Throws what work() throws, or a std::exception if recording is impossible, for example because
  // work() waits for the device or copies the host's values to it. After an exception the device
  // has executed nothing and the graph is unusable.
  virtual void Record(const std::function<void()>& work) = 0;

  // Submits the recorded operations to the device again, on the same memory, and does not wait for
  // them. Throws a std::exception without submitting anything.
  virtual void Replay() = 0;
};

// Creates graphs that share memory for intermediate results, so only one of them may run at a time.
// Not thread-safe.
class GraphPool {
 public:
  virtual ~GraphPool() = default;
  virtual std::unique_ptr<DeviceGraph> MakeGraph() = 0;

  // Returns cached memory to the device, so that a recording can allocate it.
  virtual void FreeUnusedMemory() = 0;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_DEVICE_GRAPH_H_
