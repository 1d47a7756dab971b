#include "worker/training/pack_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ATen/ATen.h"
#include "c10/core/GradMode.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/networks/bfloat16.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "random/stream.h"
#include "tasks/data_set.h"
#include "worker/evaluation/evaluator.h"
#include "worker/evaluation/projection.h"
#include "worker/training/batch_tensors.h"
#include "worker/training/device_graph.h"
#include "worker/training/language_pack_model.h"
#include "worker/training/pack_parameters.h"
#include "worker/training/recorded_steps.h"
#include "worker/training/step_inputs.h"

namespace lengthwise::worker::training {
namespace {

// A CPU's caches are small and its memory is shared with other programs.
constexpr int64_t kCpuEvaluationBytes = int64_t{256} << 20;
constexpr int64_t kCudaEvaluationBytes = int64_t{4} << 30;

class TensorPackModel : public PackModel {
 public:
  TensorPackModel(const Blueprint& blueprint, absl::Span<const MemberSeeds> members, bool together,
                  at::Device device, std::unique_ptr<models::Network> network,
                  std::unique_ptr<PackParameters> parameters, std::unique_ptr<GraphPool> graphs,
                  Warn warn)
      : blueprint_(blueprint),
        members_(members.begin(), members.end()),
        together_(together),
        device_(device),
        network_(std::move(network)),
        positions_(blueprint.encoding.parameters, blueprint.size.blocks),
        parameters_(std::move(parameters)),
        arena_(parameters_->arena()),
        evaluator_(*blueprint.examples, *network_, positions_,
                   {.seed = blueprint.evaluation.seed(),
                    .heads = blueprint.size.heads,
                    .d_model = blueprint.size.d_model,
                    .memory_bytes = together ? kCudaEvaluationBytes : kCpuEvaluationBytes}) {
    if (graphs != nullptr && !network_->DrawsInTraining()) {
      recorded_ = std::make_unique<RecordedSteps>(arena_, std::move(graphs), std::move(warn));
    }
  }

  std::vector<MemberRange> Ranges(absl::Span<const int64_t> members) const override {
    std::vector<MemberRange> ranges;
    for (const int64_t member : members) {
      if (together_ && !ranges.empty() && ranges.back().first + ranges.back().count == member) {
        ++ranges.back().count;
      } else {
        ranges.push_back({member, 1});
      }
    }
    return ranges;
  }

  std::vector<StepMeasurement> TrainStep(int64_t step, absl::Span<const int64_t> members,
                                         absl::Span<const double> learning_rates) override {
    const std::vector<MemberRange> ranges = Ranges(members);
    if (recorded_ != nullptr) recorded_->KeepOnly(ranges);
    std::vector<at::Tensor> measured;
    size_t next = 0;
    for (const MemberRange range : ranges) {
      const auto count = static_cast<size_t>(range.count);
      measured.push_back(TrainRange(step, range, learning_rates.subspan(next, count)));
      next += count;
    }
    prepared_.clear();
    if (PreparesAhead() && step < blueprint_.training.steps()) {
      for (const MemberRange range : ranges) prepared_.push_back(Prepare(step + 1, range));
    }
    WaitForDevice();
    std::vector<StepMeasurement> measurements;
    for (const at::Tensor& of_range : measured) AppendMeasurements(of_range, measurements);
    return measurements;
  }

  double data_seconds() const override { return data_seconds_; }

  std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) override {
    return evaluator_.Score(arena_.Members(range.first, range.count), length, sequences, keep_going,
                            options);
  }

  std::optional<double> TrainingAccuracy(int64_t member, int64_t examples,
                                         const std::function<bool()>& keep_going) override {
    const v1::LengthRange& lengths = blueprint_.training.lengths();
    const tasks::DataSet scored({.examples = examples,
                                 .batch_size = 1,
                                 .min_length = lengths.min(),
                                 .max_length = lengths.max()});
    double accuracy = 0;
    for (int64_t n = lengths.min(); n <= lengths.max(); ++n) {
      const int64_t count = scored.ExamplesOfLength(n);
      if (count == 0) continue;
      const uint64_t seed =
          blueprint_.batches.DataSetSeed(members_[static_cast<size_t>(member)].data_seed);
      const auto score =
          evaluator_.ScoreDataSet(arena_.Members(member, 1), seed, n, count, keep_going);
      if (!score.has_value()) return std::nullopt;
      accuracy += score->accuracy * static_cast<double>(count) / static_cast<double>(examples);
    }
    return accuracy;
  }

  v1::AttentionMap CaptureAttention(int64_t member, int64_t length, int64_t sequence) override {
    return evaluator_.CaptureAttention(arena_.Members(member, 1), length, sequence);
  }

  v1::AttentionMap CaptureAttention(int64_t member, const GivenSequence& given) override {
    return evaluator_.CaptureAttention(arena_.Members(member, 1), given);
  }

  std::vector<v1::Projection> Project(int64_t member, int64_t fitted_length, int64_t sequences,
                                      absl::Span<const int32_t> lengths) override {
    return evaluation::ProjectActivations(evaluator_, arena_.Members(member, 1), fitted_length,
                                          sequences, lengths);
  }

  std::string Save(int64_t member, const checkpoints::CheckpointHeader& header) override {
    return parameters_->Save(member, header);
  }

  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint) override {
    return parameters_->Load(member, bytes, fingerprint);
  }

 private:
  // Each member's own samples and positions, members after one another.
  struct RangeBatch {
    Batch samples;                   // [count * B] rows
    std::vector<int64_t> positions;  // [count, S, T]
  };

  RangeBatch MakeBatch(int64_t step, MemberRange range) const {
    RangeBatch batch;
    const int64_t length = blueprint_.batches.LengthOfStep(step);
    for (int64_t i = range.first; i < range.first + range.count; ++i) {
      const MemberSeeds& member = members_[static_cast<size_t>(i)];
      blueprint_.examples->AppendTraining(blueprint_.batches.SamplesOfStep(step, member.data_seed),
                                          length, batch.samples);
      const std::vector<int64_t> positions =
          positions_.DrawBatch(member.data_seed, random::Purpose::kTrainingPositions,
                               static_cast<uint64_t>(step), batch.samples.tokens_per_row);
      batch.positions.insert(batch.positions.end(), positions.begin(), positions.end());
    }
    return batch;
  }

  // Samples and positions of a range's step, in memory of the host and on their way to the device.
  struct Prepared {
    int64_t step = 0;
    StepKey key;
    at::Tensor host;
    at::Tensor block;  // the device's; the same on a CPU whose steps are not recorded
  };

  // Whether the next step is prepared while the device makes this one. A CPU has no time to spare.
  bool PreparesAhead() const { return device_.is_cuda() || recorded_ != nullptr; }

  void WaitForDevice() const {
    if (device_.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).synchronize();
  }

  // On the host. What a GPU copies from and to, it copies by itself only where it is pinned.
  at::Tensor EmptyOnHost(at::IntArrayRef shape, at::ScalarType type) const {
    return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(device_.is_cuda()));
  }

  at::Tensor DeviceBlock(const StepKey& key, const at::Tensor& host) const {
    if (recorded_ != nullptr) return recorded_->Block(key);
    return device_.is_cpu() ? host : at::empty_like(host, at::TensorOptions(device_));
  }

  // Copies bytes [first, end) of a block to the device and does not wait for it.
  static void Upload(const Prepared& prepared, int64_t first, int64_t end) {
    if (prepared.block.is_same(prepared.host)) return;
    prepared.block.narrow(0, first, end - first)
        .copy_(prepared.host.narrow(0, first, end - first), /*non_blocking=*/true);
  }

  Prepared Prepare(int64_t step, MemberRange range) const {
    const RangeBatch batch = MakeBatch(step, range);
    // How many there are; the rates are known when the step is made.
    const size_t step_numbers =
        parameters_->StepNumbers(step, std::vector<double>(static_cast<size_t>(range.count)))
            .size();
    Prepared prepared = {.step = step,
                         .key = {.range = range,
                                 .shape = ShapeOf(batch.samples, range.count, positions_.draws(),
                                                  static_cast<int64_t>(step_numbers))}};
    const StepShape& shape = prepared.key.shape;
    prepared.host = EmptyOnHost({BlockBytes(shape)}, at::kByte);
    WriteSamples(shape, batch.samples, batch.positions, prepared.host.mutable_data_ptr<uint8_t>());
    prepared.block = DeviceBlock(prepared.key, prepared.host);
    Upload(prepared, 0, SampleBytes(shape));
    return prepared;
  }

  // What the last step prepared, or made now.
  Prepared Take(int64_t step, MemberRange range) {
    for (const Prepared& prepared : prepared_) {
      if (prepared.step == step && prepared.key.range == range) return prepared;
    }
    const auto start = std::chrono::steady_clock::now();
    Prepared prepared = Prepare(step, range);
    data_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return prepared;
  }

  // Losses, accuracies and norms of the range's members, double [3, count], on the host once the
  // device has been waited for.
  at::Tensor TrainRange(int64_t step, MemberRange range, absl::Span<const double> learning_rates) {
    const Prepared prepared = Take(step, range);
    const StepShape shape = prepared.key.shape;
    WriteStepNumbers(shape, parameters_->StepNumbers(step, learning_rates),
                     prepared.host.mutable_data_ptr<uint8_t>());
    Upload(prepared, SampleBytes(shape), BlockBytes(shape));
    const auto work = [this, step, range, shape](const at::Tensor& block) {
      return MakeStep(step, range, TensorsOf(shape, block, arena_.parameters().scalar_type()));
    };
    const at::Tensor measured = recorded_ != nullptr
                                    ? recorded_->Run(prepared.key, prepared.block, work)
                                    : work(prepared.block);
    return EmptyOnHost({3, range.count}, at::kDouble).copy_(measured, /*non_blocking=*/true);
  }

  // A function of the range's rows of the arena and of `inputs` alone, but that dropout depends on
  // the step.
  at::Tensor MakeStep(int64_t step, MemberRange range, const StepTensors& inputs) {
    arena_.ZeroGradients(range.first, range.count);
    const models::ParameterSet parameters = arena_.Members(range.first, range.count);
    models::DropoutNumbers dropout = {.purpose = random::Purpose::kDropout,
                                      .step = static_cast<uint64_t>(step)};
    for (int64_t i = range.first; i < range.first + range.count; ++i) {
      dropout.seeds.push_back(members_[static_cast<size_t>(i)].data_seed);
    }
    const StepMeasures measures =
        Measure(network_->Forward(parameters, inputs.batch.input, inputs.positions,
                                  inputs.batch.mask.size(2), &dropout, nullptr),
                inputs.batch);
    // The gradient of a sum is each member's own gradient.
    measures.losses.sum().backward();

    const c10::NoGradGuard no_gradients;
    const at::Tensor norms = parameters_->Step(range, inputs.step_numbers);
    return at::stack(
        {measures.losses.detach().to(at::kDouble), measures.accuracies, norms.to(at::kDouble)});
  }

  static void AppendMeasurements(const at::Tensor& measured,
                                 std::vector<StepMeasurement>& measurements) {
    const double* values = measured.const_data_ptr<double>();
    const int64_t count = measured.size(1);
    for (int64_t i = 0; i < count; ++i) {
      measurements.push_back({.loss = static_cast<float>(values[i]),
                              .accuracy = static_cast<float>(values[count + i]),
                              .gradient_norm = static_cast<float>(values[2 * count + i])});
    }
  }

  const Blueprint& blueprint_;
  const std::vector<MemberSeeds> members_;
  const bool together_;
  const at::Device device_;
  const std::unique_ptr<models::Network> network_;
  const models::PositionPolicy positions_;
  const std::unique_ptr<PackParameters> parameters_;
  models::ParameterArena& arena_;
  const evaluation::Evaluator evaluator_;
  double data_seconds_ = 0;
  // Null where each step is put on the device operation by operation.
  std::unique_ptr<RecordedSteps> recorded_;
  // Of the next step.
  std::vector<Prepared> prepared_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackModel>> CreatePackModel(const Blueprint& blueprint,
                                                           absl::Span<const MemberSeeds> members,
                                                           const Device& device, Warn warn) {
  if (blueprint.text != nullptr) return CreateLanguagePackModel(blueprint, members, device);
  auto layout = std::make_unique<models::ParameterLayout>();
  auto network = models::CreateNetwork(blueprint.network.name, blueprint.network.parameters,
                                       blueprint.encoding.name, blueprint.encoding.parameters,
                                       {.input_columns = blueprint.examples->input_columns(),
                                        .output_columns = blueprint.examples->output_columns(),
                                        .has_blank = blueprint.examples->has_blank(),
                                        .has_numbers = blueprint.examples->has_numbers(),
                                        .longest_sequence = blueprint.size.longest_sequence},
                                       *layout);
  if (!network.ok()) return network.status();
  if (blueprint.training.precision() == "bfloat16") {
    *network = models::WithBfloat16Products(*std::move(network));
  }
  const at::Device place = DeviceOf(device);
  auto parameters = PackParameters::Create(std::move(layout), blueprint, members, place);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<TensorPackModel>(
      blueprint, members, device.members_together, place, *std::move(network),
      *std::move(parameters), device.make_graph_pool ? device.make_graph_pool() : nullptr,
      std::move(warn));
}

}  // namespace lengthwise::worker::training
