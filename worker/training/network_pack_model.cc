// Implements PackModel for networks that read a whole sequence and answer in its last outputs.
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/python_network/python_network.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "specification/training_data.h"
#include "tasks/data_set.h"
#include "worker/data/text_positions.h"
#include "worker/evaluation/evaluator.h"
#include "worker/evaluation/projection.h"
#include "worker/training/pack_training.h"

namespace lengthwise::worker::training {
namespace {

// Memory limits of an evaluation chunk. A CPU gets less: its caches are small, and other programs
// share its memory.
constexpr int64_t kCpuEvaluationBytes = int64_t{256} << 20;
constexpr int64_t kCudaEvaluationBytes = int64_t{4} << 30;

class NetworkPackModel : public PackTraining {
 public:
  NetworkPackModel(const Blueprint& blueprint, absl::Span<const MemberSeeds> members,
                   std::unique_ptr<models::Network> network, PackArena numbers,
                   int64_t memory_bytes, Options options)
      : PackTraining(blueprint, members, std::move(numbers), std::move(options)),
        network_(std::move(network)),
        evaluator_(*blueprint.examples, *network_, positions(),
                   {.seed = blueprint.evaluation.seed(),
                    .heads = blueprint.size.heads,
                    .d_model = blueprint.size.d_model,
                    .memory_bytes = memory_bytes}) {}

  std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) override {
    return evaluator_.Score(Parameters(range), length, sequences, keep_going, options);
  }

  std::optional<double> TrainingAccuracy(int64_t member, int64_t examples,
                                         const std::function<bool()>& keep_going) override {
    const v1::LengthRange& lengths = blueprint().training.lengths();
    const tasks::DataSet scored({.examples = examples,
                                 .batch_size = 1,
                                 .min_length = lengths.min(),
                                 .max_length = lengths.max()});
    const uint64_t seed =
        specification::DataSetSeed(blueprint().training, DataSeeds({member, 1}).front());
    double accuracy = 0;
    for (int64_t n = lengths.min(); n <= lengths.max(); ++n) {
      const int64_t count = scored.ExamplesOfLength(n);
      if (count == 0) continue;
      const auto score = evaluator_.ScoreDataSet(Parameters(member), seed, n, count, keep_going);
      if (!score.has_value()) return std::nullopt;
      accuracy += score->accuracy * static_cast<double>(count) / static_cast<double>(examples);
    }
    return accuracy;
  }

  v1::AttentionMap CaptureAttention(int64_t member, int64_t length, int64_t sequence) override {
    return evaluator_.CaptureAttention(Parameters(member), length, sequence);
  }

  v1::AttentionMap CaptureAttention(int64_t member, const data::GivenSequence& given) override {
    return evaluator_.CaptureAttention(Parameters(member), given);
  }

  v1::Answer Predict(int64_t member, const data::GivenSequence& given) override {
    return evaluator_.Predict(Parameters(member), given);
  }

  std::vector<v1::Projection> Project(int64_t member, int64_t fitted_length, int64_t sequences,
                                      absl::Span<const int32_t> lengths) override {
    return evaluation::ProjectActivations(evaluator_, Parameters(member), fitted_length, sequences,
                                          lengths);
  }

 private:
  StepSamples MakeSamples(int64_t step, absl::Span<const uint64_t> data_seeds) const override {
    const int64_t length = blueprint().batches.LengthOfStep(step);
    std::vector<data::Batch> batches;
    for (const uint64_t seed : data_seeds) {
      blueprint().examples->AppendStep(blueprint().batches.SamplesOfStep(step, seed), length,
                                       batches);
    }
    std::vector<SizedSamples> sizes;
    int64_t first = 0;  // a member's first row of the batch among those of the step
    for (data::Batch& batch : batches) {
      SizedSamples& sized = sizes.emplace_back();
      const auto members = static_cast<int64_t>(data_seeds.size());
      const int64_t rows = batch.rows / members, tokens = batch.tokens_per_row;
      auto ids = absl::MakeConstSpan(batch.ids);
      const size_t own = ids.size() / data_seeds.size();
      for (const uint64_t seed : data_seeds) {
        constexpr auto kPurpose = random::Purpose::kTrainingPositions;
        const auto address = static_cast<uint64_t>(step);
        const std::vector<double> chosen =
            positions().from_data()
                ? positions().WithOffset(ids.first(own), seed, kPurpose, address)
            : positions().each()
                ? positions().DrawRows(seed, kPurpose, address, first, rows, tokens)
            : batches.size() == 1 ? positions().DrawBatch(seed, kPurpose, address, tokens)
                                  : data::DrawForLength(positions(), seed, step, tokens);
        ids.remove_prefix(own);
        sized.positions.insert(sized.positions.end(), chosen.begin(), chosen.end());
      }
      first += rows;
      sized.batch = std::move(batch);
    }
    if (sizes.size() > 1) return {.sized = {}, .sizes = std::move(sizes)};
    return {.sized = std::move(sizes.front())};
  }

  data::StepMeasures AddGradients(const models::ParameterSet& parameters,
                                  const StepSamples& samples, const StepTensors& inputs,
                                  models::DropoutNumbers dropout) const override {
    // Members share no parameters, so a sum gives each member its own gradient.
    if (!blueprint().examples->MixesSizes()) {
      data::StepMeasures measures =
          data::Measure(Forward(parameters, inputs, dropout), inputs.batch);
      measures.losses.sum().backward();
      return measures;
    }
    std::vector<StepTensors> sizes;
    for (const SizedSamples& sized : samples.sizes) sizes.push_back(ToDevice(sized, parameters));
    if (sizes.empty()) sizes.push_back(inputs);
    const at::Tensor zeros =
        at::zeros({parameters.members()}, parameters.any().options().dtype(at::kDouble));
    data::Counts all = {.examples = zeros, .outputs = zeros};
    std::vector<data::Counts> of_sizes;
    for (const StepTensors& sized : sizes) {
      const data::Counts& counts = of_sizes.emplace_back(data::CountsOf(sized.batch));
      all.examples = all.examples.add(counts.examples);
      all.outputs = all.outputs.add(counts.outputs);
    }
    // Gradients accumulate size by size.
    data::StepMeasures mean = {.losses = zeros, .accuracies = zeros};
    for (size_t i = 0; i < sizes.size(); ++i) {
      const StepTensors& sized = sizes[i];
      const data::Counts& counts = of_sizes[i];
      const data::StepMeasures measures =
          data::MeasureEach(Forward(parameters, sized, dropout), sized.batch, counts);
      const at::Tensor losses = measures.losses.mul(
          counts.examples.div(all.examples.clamp_min(1)).to(measures.losses.scalar_type()));
      losses.sum().backward();
      dropout.first_sequence += sized.batch.mask.size(1);
      mean.losses = mean.losses.add(losses.detach());
      mean.accuracies = mean.accuracies.add(
          measures.accuracies.mul(counts.outputs).div(all.outputs.clamp_min(1)));
    }
    return mean;
  }

  at::Tensor Forward(const models::ParameterSet& parameters, const StepTensors& inputs,
                     const models::DropoutNumbers& dropout) const {
    return network_->Forward(parameters, inputs.batch.input, inputs.positions,
                             inputs.batch.mask.size(2), &dropout, nullptr);
  }

  StepTensors ToDevice(const SizedSamples& sized, const models::ParameterSet& parameters) const {
    const StepShape shape = ShapeOf(sized.batch, parameters.members(), positions().draws(),
                                    /*step_numbers=*/0, positions().each());
    const at::Tensor block = at::empty({BlockBytes(shape)}, at::kByte);
    WriteSamples(shape, sized.batch, sized.positions, block.mutable_data_ptr<uint8_t>());
    const at::Tensor& any = parameters.any();
    return TensorsOf(shape, block.to(any.device()), any.scalar_type());
  }

  const std::unique_ptr<models::Network> network_;
  const evaluation::Evaluator evaluator_;
};

models::NetworkShape NetworkShapeOf(const Blueprint& blueprint) {
  return {.input_columns = blueprint.examples->input_columns(),
          .output_columns = blueprint.examples->output_columns(),
          .has_blank = blueprint.examples->has_blank(),
          .has_numbers = blueprint.examples->has_numbers(),
          .longest_sequence = blueprint.size.longest_sequence};
}

}  // namespace

absl::StatusOr<PythonParts> CreatePythonParts(const Blueprint& blueprint,
                                              absl::Span<const MemberSeeds> members,
                                              const Device& device,
                                              const models::NetworkShape& shape, const Warn& warn) {
  if (device.python.empty()) {
    return absl::UnavailableError(
        "this worker computes no networks of users: start it with --allow_python_networks");
  }
  models::PythonNetwork::Options options = {.interpreter = device.python,
                                            .device = device.python_device,
                                            .limit = device.python_limit,
                                            .archive = blueprint.network_archive,
                                            .precision = blueprint.training.precision(),
                                            .warn = warn};
  for (const MemberSeeds& member : members) options.weight_seeds.push_back(member.weight_seed);
  auto layout = std::make_unique<models::ParameterLayout>();
  auto network = std::make_unique<models::PythonNetwork>(
      options, blueprint.network.parameters, blueprint.encoding.name, blueprint.encoding.parameters,
      shape, *layout);
  PackArena numbers =
      MakePackArena(std::move(layout), blueprint, members, at::kCPU, network->Allocator());
  network->Bind(*numbers.arena);
  if (!blueprint.evaluation.attention_lengths().empty() && !network->gives_attention()) {
    warn("evaluation.attention_lengths: no maps, because the network has no method `attention`");
  }
  std::string software = absl::StrCat(
      "network ", blueprint.network.parameters.String("file_sha256"), ", ", network->versions());
  return PythonParts{std::move(network), std::move(numbers), std::move(software)};
}

absl::StatusOr<std::unique_ptr<PackModel>> CreateNetworkPackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn) {
  if (blueprint.network.name == models::kPythonNetwork) {
    // The process computes member by member.
    ASSIGN_OR_RETURN(PythonParts parts, CreatePythonParts(blueprint, members, device,
                                                          NetworkShapeOf(blueprint), warn));
    return std::make_unique<NetworkPackModel>(
        blueprint, members, std::move(parts.network), std::move(parts.numbers), kCpuEvaluationBytes,
        PackTraining::Options{.warn = std::move(warn), .software = std::move(parts.software)});
  }
  auto layout = std::make_unique<models::ParameterLayout>();
  ASSIGN_OR_RETURN(std::unique_ptr<models::Network> network,
                   models::CreateNetwork(blueprint.network.name, blueprint.network.parameters,
                                         blueprint.encoding.name, blueprint.encoding.parameters,
                                         NetworkShapeOf(blueprint), *layout));
  if (blueprint.training.precision() == "bfloat16") {
    network = models::WithBfloat16Products(std::move(network));
  }
  PackTraining::Options options = {.members_together = device.members_together,
                                   .warn = std::move(warn)};
  // A recorded step would repeat random numbers drawn on the host.
  if (device.make_graph_pool && !network->DrawsInTraining()) {
    options.graphs = device.make_graph_pool();
  }
  return std::make_unique<NetworkPackModel>(
      blueprint, members, std::move(network),
      MakePackArena(std::move(layout), blueprint, members, PlaceOf(device)),
      device.members_together ? kCudaEvaluationBytes : kCpuEvaluationBytes, std::move(options));
}

}  // namespace lengthwise::worker::training
