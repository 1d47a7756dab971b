// Runs kernels that are written with simt.h on the CPU: for tests. The threads of a block are
// fibres of one thread, which change places where threads wait for each other; blocks follow one
// another.
//
// What it finds beside wrong results:
//   - a missing barrier: the order in which threads and blocks run is Options::order, and results
//   must not depend on it;
//   - threads that wait at different places, or for one that has ended: problem();
//   - shared memory that is read before it is written: it is full of NaN;
//   - what is read or written beside an array, under AddressSanitizer: each shared array is an
//   allocation of its own;
//   - more shared memory than the launch asked for, and Several at odd addresses: problem().
#ifndef LENGTHWISE_MODELS_KERNELS_SIMT_EMULATOR_H_
#define LENGTHWISE_MODELS_KERNELS_SIMT_EMULATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lengthwise::kernels::simt {

class Emulator {
 public:
  enum class Order { kForward, kBackward, kShuffled };
  struct Options {
    Order order = Order::kForward;
    uint64_t seed = 0;  // where shuffled
  };

  explicit Emulator(const Options& options);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  // As a launch on a GPU, whose kernels follow one another. `shared_bytes` of dynamic shared
  // memory.
  template <typename... Parameters>
  void Launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int64_t shared_bytes,
              const Parameters&... arguments) {
    Run(blocks, threads, shared_bytes, [&] { kernel(arguments...); });
  }

  // The block that runs, for what kernels call.
  class Device;

  // What a kernel did wrong first, or empty. After that nothing is run any more.
  const std::string& problem() const;

  // Of all launches.
  int64_t launches() const;
  int64_t largest_shared_bytes() const;

 private:
  void Run(int64_t blocks, int threads, int64_t shared_bytes, const std::function<void()>& kernel);

  std::unique_ptr<Device> device_;
};

}  // namespace lengthwise::kernels::simt

#endif  // LENGTHWISE_MODELS_KERNELS_SIMT_EMULATOR_H_
