// A process that computes a user's PyTorch module (child.py). The caller owns its numbers, which
// are in memory that both share. No LibTorch.
#ifndef LENGTHWISE_MODELS_PYTHON_NETWORK_PROCESS_H_
#define LENGTHWISE_MODELS_PYTHON_NETWORK_PROCESS_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "platform/child_process.h"
#include "platform/descriptors.h"

namespace lengthwise::models {

// The text of child.py.
extern const char kChildSource[];

// The interpreter of a user who names none: $LENGTHWISE_PYTHON_NETWORKS, or python3.
std::string DefaultInterpreter();
// The device of a user who names none: $LENGTHWISE_PYTHON_DEVICE, or "cpu".
std::string DefaultPythonDevice();
// What an interpreter computes modules with: "torch 1.13.0a0, Python 3.11.2, on the CPU". Does
// not import torch, which takes seconds, so only a call tells whether the device is there.
// FAILED_PRECONDITION if it cannot compute any.
absl::StatusOr<std::string> DescribeInterpreter(const std::string& interpreter,
                                                const std::string& device);

// A call that did not succeed. The first line of the message says why; more lines have the module's
// own lines and shapes.
class NetworkError : public std::runtime_error {
 public:
  NetworkError(const std::string& message, bool permanent)
      : std::runtime_error(message), permanent_(permanent) {}
  // False if another attempt may succeed, because something outside ended the process.
  bool permanent() const { return permanent_; }

 private:
  const bool permanent_;
};

// A file in memory that both processes map. It never moves.
class SharedMemory {
 public:
  explicit SharedMemory(const char* name);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Makes it at least `bytes` long. Throws std::bad_alloc if there is no such memory.
  void Reserve(int64_t bytes);
  uint8_t* start() const { return start_; }
  int64_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }

 private:
  platform::Descriptor file_;
  uint8_t* start_ = nullptr;
  int64_t bytes_ = 0;
};

// Not thread-safe. Make and destroy it on one thread: the process ends with that thread.
class PythonProcess {
 public:
  // Starts the interpreter, a path or a name to look up in PATH; it answers nothing yet. A call
  // that takes longer than `call_limit` ends the process. Throws NetworkError.
  PythonProcess(const std::string& interpreter, absl::Duration call_limit);
  // Ends the process, with all that it started in its process group.
  ~PythonProcess();

  // Sends a request and returns its answer. Throws NetworkError; if the process has ended, every
  // later call does.
  nlohmann::json Call(const nlohmann::json& request);

  // Parameters and gradients, and the inputs and outputs of a call.
  SharedMemory& state() { return state_; }
  SharedMemory& inputs() { return inputs_; }

 private:
  explicit PythonProcess(absl::Duration call_limit) : call_limit_(call_limit) {}
  // Waits for the answer's line, and keeps the end of what the process prints meanwhile.
  std::string ReadLine();
  [[noreturn]] void FailEnded(absl::string_view why, bool permanent);

  const absl::Duration call_limit_;
  SharedMemory state_{"state"}, inputs_{"inputs"};
  // Working directory of the process, where it unpacks the module.
  std::string folder_;
  platform::Descriptor control_, output_;
  std::unique_ptr<platform::ChildProcess> process_;
  std::string received_;
  std::string printed_;
  std::string ended_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PYTHON_NETWORK_PROCESS_H_
