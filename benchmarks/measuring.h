// Measuring tools for step benchmarks, and the machine's roofline.
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

// The fastest of a few repetitions, in seconds.
template <typename Body>
double Fastest(const Body& body) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const double start = WallSeconds();
    body();
    best = std::min(best, WallSeconds() - start);
  }
  return best;
}

// Prints the machine's limits on the same threads: a large product, a product of the given shape, a
// copy.
inline void PrintRoofline(int64_t rows, int64_t inner, int64_t columns) {
  const at::Tensor a = at::rand({2048, 2048}), left = at::rand({rows, inner}),
                   right = at::rand({inner, columns});
  const double large = 2.0 * 2048 * 2048 * 2048 / Fastest([&] { at::mm(a, a); });
  const double given =
      2.0 * static_cast<double>(rows * inner * columns) / Fastest([&] { at::mm(left, right); });
  const at::Tensor from = at::rand({64 << 20}), to = at::empty({64 << 20});
  const double copied = 2.0 * 4 * (64 << 20) / Fastest([&] { to.copy_(from); });
  std::printf(
      "{\"large_product_flop_per_second\": %.4g, \"%lldx%lldx%lld_flop_per_second\": %.4g, "
      "\"copy_bytes_per_second\": %.4g}\n",
      large, static_cast<long long>(rows), static_cast<long long>(inner),
      static_cast<long long>(columns), given, copied);
}

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_MEASURING_H_
