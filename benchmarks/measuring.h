// Clocks and statistics of the benchmarks of steps, and the limits of the machine.
#ifndef LENGTHWISE_BENCHMARKS_MEASURING_H_
#define LENGTHWISE_BENCHMARKS_MEASURING_H_

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/rand.h"
#include "benchmarks/benchmark_device.h"

namespace lengthwise::benchmarks {

inline double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Shortest time of a few repetitions, in seconds. Waits for the device after each.
template <typename Body>
double Fastest(const at::Device& device, const Body& body) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    WaitFor(device);
    const double start = WallSeconds();
    body();
    WaitFor(device);
    best = std::min(best, WallSeconds() - start);
  }
  return best;
}

// Prints the device's limits: the speed of a large product, of a product of the given shape, and of
// a copy. A CPU uses the calling thread's number of threads.
inline void PrintRoofline(const at::Device& device, int64_t rows, int64_t inner, int64_t columns) {
  const at::TensorOptions on(device);
  const at::Tensor a = at::rand({2048, 2048}, on), left = at::rand({rows, inner}, on),
                   right = at::rand({inner, columns}, on);
  const double large = 2.0 * 2048 * 2048 * 2048 / Fastest(device, [&] { at::mm(a, a); });
  const double given = 2.0 * static_cast<double>(rows * inner * columns) /
                       Fastest(device, [&] { at::mm(left, right); });
  const at::Tensor from = at::rand({64 << 20}, on), to = at::empty({64 << 20}, on);
  const double copied = 2.0 * 4 * (64 << 20) / Fastest(device, [&] { to.copy_(from); });
  std::printf(
      "{\"large_product_flop_per_second\": %.4g, \"%lldx%lldx%lld_flop_per_second\": %.4g, "
      "\"copy_bytes_per_second\": %.4g}\n",
      large, static_cast<long long>(rows), static_cast<long long>(inner),
      static_cast<long long>(columns), given, copied);
}

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_MEASURING_H_
