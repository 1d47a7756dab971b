// Runs kernels written with simt.h on the CPU, for tests. A block's threads are fibres of one
// thread, which switch where threads wait for each other. Blocks run one after another.
//
// Besides wrong results, it detects:
//   - a missing barrier: results must not depend on the order of threads and blocks, which
//     Options::order varies;
//   - threads that wait at different places, or for a thread that has ended: problem();
//   - shared memory read before it is written: it is filled with NaN;
//   - accesses outside an array, under AddressSanitizer: each shared array is its own allocation;
//   - more shared memory than the launch asked for, and misaligned Several: problem().
#ifndef LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_EMULATOR_H_
#define LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_EMULATOR_H_

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
    uint64_t seed = 0;  // for kShuffled
  };

  explicit Emulator(const Options& options);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  // Like a launch on a GPU; launches run in order. `shared_bytes` is the dynamic shared memory.
  template <typename... Parameters>
  void Launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int64_t shared_bytes,
              const Parameters&... arguments) {
    Run(blocks, threads, shared_bytes, [&] { kernel(arguments...); });
  }

  // The implementation; also called by the functions of simt.h.
  class Device;

  // The first error of a kernel; empty if none. After an error, launches are no-ops.
  const std::string& problem() const;

  // Over all launches.
  int64_t launches() const;
  int64_t largest_shared_bytes() const;

 private:
  void Run(int64_t blocks, int threads, int64_t shared_bytes, const std::function<void()>& kernel);

  std::unique_ptr<Device> device_;
};

}  // namespace lengthwise::kernels::simt

#endif  // LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_EMULATOR_H_
