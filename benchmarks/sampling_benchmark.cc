// Sequences per second that one thread samples, by task, at the longest training length of Ruoss et
// al. 2023. Rows are independent, so throughput scales with threads.
//
//   bazel run //benchmarks:sampling
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "random/stream.h"
#include "tasks/catalogue.h"
#include "tasks/task.h"

namespace lengthwise::tasks {
namespace {

constexpr uint32_t kBatch = 128;

void SampleBatches(benchmark::State& state, const TaskEntry& entry, int64_t n) {
  const std::unique_ptr<Task> owner = CreateTask(entry.name, {}).value();
  const auto& task = dynamic_cast<const TransductionTask&>(*owner);
  std::vector<int32_t> inputs(kBatch * static_cast<size_t>(task.InputLength(n)));
  std::vector<int32_t> targets(kBatch * static_cast<size_t>(task.OutputLength(n)));
  std::vector<uint8_t> mask(targets.size());
  std::vector<uint32_t> rows(kBatch);
  std::iota(rows.begin(), rows.end(), 0);
  uint64_t step = 0;
  for (auto _ : state) {
    SampleRows(task, /*seed=*/0, random::Purpose::kTrainingSamples, step++, n, rows,
               {absl::MakeSpan(inputs), absl::MakeSpan(targets), absl::MakeSpan(mask)});
    benchmark::DoNotOptimize(targets.data());
    benchmark::ClobberMemory();
  }
  state.counters["sequences"] =
      benchmark::Counter(static_cast<double>(step) * kBatch, benchmark::Counter::kIsRate);
}

void RegisterAll() {
  for (const TaskEntry* entry : TaskEntries()) {
    if (entry->kind != TaskKind::kTransduction) continue;
    for (const int64_t n : {40, 500}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(entry->name, "/", n).c_str(),
          [entry, n](benchmark::State& state) { SampleBatches(state, *entry, n); });
    }
  }
}

}  // namespace
}  // namespace lengthwise::tasks

int main(int argc, char** argv) {
  lengthwise::tasks::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
