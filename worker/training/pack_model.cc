#include "worker/training/pack_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ATen/ATen.h"
#include "c10/core/GradMode.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/networks/network.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters/arena.h"
#include "random/stream.h"
#include "tasks/data_set.h"
#include "worker/evaluation/evaluator.h"
#include "worker/evaluation/projection.h"
#include "worker/training/batch_tensors.h"

namespace lengthwise::worker::training {
namespace {

// A CPU's caches are small and its memory is shared with other programs.
constexpr int64_t kCpuEvaluationBytes = int64_t{256} << 20;
constexpr int64_t kCudaEvaluationBytes = int64_t{4} << 30;

template <typename T>
checkpoints::TrialRows<T> Rows(at::Tensor& parameters, at::Tensor& first, at::Tensor& second) {
  const auto span = [](at::Tensor& row) {
    return absl::Span<T>(row.mutable_data_ptr<std::remove_const_t<T>>(),
                         static_cast<size_t>(row.numel()));
  };
  return {span(parameters), span(first), span(second)};
}

class TensorPackModel : public PackModel {
 public:
  TensorPackModel(const Blueprint& blueprint, absl::Span<const MemberSeeds> members, bool together,
                  at::Device device, std::unique_ptr<models::ParameterLayout> layout,
                  std::unique_ptr<models::Network> network,
                  std::unique_ptr<models::Optimizer> optimizer)
      : blueprint_(blueprint),
        members_(members.begin(), members.end()),
        together_(together),
        device_(device),
        layout_(std::move(layout)),
        network_(std::move(network)),
        optimizer_(std::move(optimizer)),
        positions_(blueprint.encoding.parameters, blueprint.size.blocks),
        arena_(*layout_, static_cast<int64_t>(members.size()),
               blueprint.training.precision() == "float64" ? at::kDouble : at::kFloat, device),
        evaluator_(*blueprint.examples, *network_, positions_,
                   {.seed = blueprint.evaluation.seed(),
                    .heads = blueprint.size.heads,
                    .d_model = blueprint.size.d_model,
                    .memory_bytes = together ? kCudaEvaluationBytes : kCpuEvaluationBytes}) {
    for (size_t i = 0; i < members_.size(); ++i) {
      arena_.Initialize(static_cast<int64_t>(i), members_[i].weight_seed);
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
    std::vector<StepMeasurement> measurements;
    arena_.ZeroGradients();
    for (const MemberRange range : Ranges(members)) {
      // Measurements are in the order of the members.
      TrainRange(step, range,
                 learning_rates.subspan(measurements.size(), static_cast<size_t>(range.count)),
                 measurements);
    }
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
      const auto score = evaluator_.ScoreDataSet(arena_.Members(member, 1),
                                                 members_[static_cast<size_t>(member)].data_seed, n,
                                                 count, keep_going);
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
    const auto host_row = [&](const at::Tensor& arena) {
      return arena.select(0, member).to(at::kCPU).contiguous();
    };
    at::Tensor parameters = host_row(arena_.parameters());
    at::Tensor first = host_row(arena_.first_moments());
    at::Tensor second = host_row(arena_.second_moments());
    if (parameters.scalar_type() == at::kDouble) {
      return checkpoints::WriteTrialCheckpoint<double>(
          *layout_, header, Rows<const double>(parameters, first, second));
    }
    return checkpoints::WriteTrialCheckpoint<float>(*layout_, header,
                                                    Rows<const float>(parameters, first, second));
  }

  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint) override {
    const auto options = arena_.parameters().options().device(at::kCPU);
    at::Tensor parameters = at::zeros({layout_->row_size()}, options);
    at::Tensor first = at::zeros({layout_->row_size()}, options);
    at::Tensor second = at::zeros({layout_->row_size()}, options);
    auto header = parameters.scalar_type() == at::kDouble
                      ? checkpoints::ReadTrialCheckpoint<double>(
                            bytes, *layout_, fingerprint, Rows<double>(parameters, first, second))
                      : checkpoints::ReadTrialCheckpoint<float>(
                            bytes, *layout_, fingerprint, Rows<float>(parameters, first, second));
    if (!header.ok()) return header.status();
    arena_.parameters().select(0, member).copy_(parameters);
    arena_.first_moments().select(0, member).copy_(first);
    arena_.second_moments().select(0, member).copy_(second);
    return header;
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

  void TrainRange(int64_t step, MemberRange range, absl::Span<const double> learning_rates,
                  std::vector<StepMeasurement>& measurements) {
    const auto start = std::chrono::steady_clock::now();
    RangeBatch batch = MakeBatch(step, range);
    data_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const int64_t count = range.count;
    const auto to_device = [&](auto& values, at::IntArrayRef shape, at::ScalarType type) {
      return at::from_blob(values.data(), shape, at::TensorOptions().dtype(type)).to(device_);
    };
    const BatchTensors samples =
        ToTensors(batch.samples, count, device_, arena_.parameters().scalar_type());
    const at::Tensor positions = to_device(
        batch.positions, {count, positions_.draws(), batch.samples.tokens_per_row}, at::kLong);
    std::vector<double> host_rates(learning_rates.begin(), learning_rates.end());
    const at::Tensor rates = to_device(host_rates, {count}, at::kDouble);

    const models::ParameterSet parameters = arena_.Members(range.first, count);
    models::DropoutNumbers dropout = {.purpose = random::Purpose::kDropout,
                                      .step = static_cast<uint64_t>(step)};
    for (int64_t i = range.first; i < range.first + count; ++i) {
      dropout.seeds.push_back(members_[static_cast<size_t>(i)].data_seed);
    }
    const StepMeasures measures =
        Measure(network_->Forward(parameters, samples.input, positions,
                                  batch.samples.outputs_per_row, &dropout, nullptr),
                samples);
    // The gradient of a sum is each member's own gradient.
    measures.losses.sum().backward();

    const c10::NoGradGuard no_gradients;
    const at::Tensor norms =
        models::ClipGradients(arena_, range.first, count, blueprint_.training.clip_norm());
    optimizer_->Step(arena_, range.first, count, step, rates);

    const at::Tensor measured = at::stack({measures.losses.detach().to(at::kDouble),
                                           measures.accuracies, norms.to(at::kDouble)})
                                    .cpu();
    const double* values = measured.const_data_ptr<double>();
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
  const std::unique_ptr<models::ParameterLayout> layout_;
  const std::unique_ptr<models::Network> network_;
  const std::unique_ptr<models::Optimizer> optimizer_;
  const models::PositionPolicy positions_;
  models::ParameterArena arena_;
  const evaluation::Evaluator evaluator_;
  double data_seconds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackModel>> CreatePackModel(const Blueprint& blueprint,
                                                           absl::Span<const MemberSeeds> members,
                                                           const Device& device) {
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
  auto optimizer =
      models::CreateOptimizer(blueprint.optimizer.name, blueprint.optimizer.parameters);
  if (!optimizer.ok()) return optimizer.status();
  const at::Device place = device.cuda
                               ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))
                               : at::Device(at::kCPU);
  return std::make_unique<TensorPackModel>(blueprint, members, device.members_together, place,
                                           std::move(layout), *std::move(network),
                                           *std::move(optimizer));
}

}  // namespace lengthwise::worker::training
