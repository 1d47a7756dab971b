// Measures the gain from training a pack: model-steps per second one model at a time, and all
// models together. A CPU trains one at a time, so that a pack equals its members bit for bit; a GPU
// trains all together.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "specification/resolve.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"

namespace lengthwise::worker::training {
namespace {

// The first trial of a protocol, with the paper's values.
v1::TrialSpecification TrialOf(const std::string& protocol) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text(absl::StrCat("{name: pack, protocol: ", protocol, ", seeds: 0}"));
  const auto grid = specification::Resolve(text, specification::Limits());
  if (!grid.ok()) abort();
  return grid->trials.front().Specification();
}

void BM_PackStep(benchmark::State& state, const std::string& protocol, bool together) {
  const int64_t members = state.range(0);
  absl::StatusOr<Blueprint> blueprint = MakeBlueprint(TrialOf(protocol));
  auto device = OpenDevice("auto", static_cast<int32_t>(state.range(1)));
  if (!blueprint.ok() || !device.ok()) abort();
  PrepareThread(*device);
  device->members_together = together;
  std::vector<MemberSeeds> seeds;
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < members; ++i) {
    seeds.push_back(
        {.weight_seed = static_cast<uint64_t>(i), .data_seed = static_cast<uint64_t>(i)});
    indices.push_back(i);
    if (!blueprint->examples->Prepare(seeds.back().data_seed).ok()) abort();
  }
  auto model = CreatePackModel(*blueprint, seeds, *device);
  if (!model.ok()) abort();
  const std::vector<double> rates(indices.size(), 1e-4);
  int64_t step = 0;
  for (auto _ : state) {
    (*model)->StartStep(++step, indices, rates);
    benchmark::DoNotOptimize((*model)->FinishStep());
  }
  state.SetItemsProcessed(state.iterations() * members);
  state.SetLabel("items are steps of one model");
}

// Arguments: models, threads.
BENCHMARK_CAPTURE(BM_PackStep, positional_attention_one_by_one, "positional_attention", false)
    ->ArgsProduct({{1, 10}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PackStep, positional_attention_together, "positional_attention", true)
    ->ArgsProduct({{1, 10}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PackStep, latin_square_one_by_one, "latin_square", false)
    ->ArgsProduct({{1, 15}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PackStep, latin_square_together, "latin_square", true)
    ->ArgsProduct({{1, 15}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lengthwise::worker::training

BENCHMARK_MAIN();
