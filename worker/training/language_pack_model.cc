// Implements PackModel for language models. Members are computed one by one, because each has
// examples of its own lengths.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/ops/zeros.h"
#include "c10/core/GradMode.h"
#include "models/networks/catalogue.h"
#include "models/networks/language_model.h"
#include "models/python_network/python_network.h"
#include "platform/status_macros.h"
#include "worker/data/text_examples.h"
#include "worker/evaluation/language_evaluator.h"
#include "worker/training/pack_training.h"

namespace lengthwise::worker::training {
namespace {

// Limits of the key-value cache while answers are generated.
constexpr int64_t kCpuDecodingBytes = int64_t{1} << 30;
constexpr int64_t kCudaDecodingBytes = int64_t{16} << 30;
// A module reads whole texts or keeps a cache, whose memory is unknown: some hundred at a time.
constexpr int64_t kModuleDecodingBytes = int64_t{16} << 20;

// The most layers with keys and values.
int64_t LayersOf(const Blueprint& blueprint) {
  return blueprint.size.blocks *
         models::Loops(blueprint.network.parameters).Of(blueprint.size.longest_sequence);
}

class LanguagePackModel : public PackTraining {
 public:
  LanguagePackModel(const Blueprint& blueprint, absl::Span<const MemberSeeds> members,
                    std::unique_ptr<models::LanguageModel> model, PackArena numbers,
                    int64_t memory_bytes, std::string software = "")
      // Steps are not recorded, because no two of them have passes of the same shapes.
      : PackTraining(blueprint, members, std::move(numbers), {.software = std::move(software)}),
        model_(std::move(model)),
        evaluator_(*blueprint.text, *model_, positions(),
                   {.seed = blueprint.evaluation.seed(),
                    .blocks = LayersOf(blueprint),
                    .d_model = blueprint.size.d_model,
                    .memory_bytes = memory_bytes}) {}

  std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) override {  // the blueprint rejects noise
    auto score = evaluator_.Score(Parameters(range), length, sequences, keep_going, options);
    if (!score.has_value()) return std::nullopt;
    std::vector<evaluation::LengthScore> scores;
    scores.push_back(*std::move(score));
    return scores;
  }

  std::optional<double> TrainingAccuracy(int64_t, int64_t, const std::function<bool()>&) override {
    std::abort();  // unreachable: the blueprint rejects it
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

  std::vector<v1::Projection> Project(int64_t, int64_t, int64_t,
                                      absl::Span<const int32_t>) override {
    return {};  // unreachable: the blueprint rejects them
  }

 private:
  StepSamples MakeSamples(int64_t step, absl::Span<const uint64_t> data_seeds) const override {
    const uint64_t data_seed = data_seeds.front();
    StepSamples samples = {.passes = blueprint().text->TrainingPasses(data_seed, step)};
    for (const data::TextPass& pass : samples.passes) {
      samples.pass_positions.push_back(data::PositionsOfPass(positions(), data_seed, step, pass));
    }
    return samples;
  }

  // Returns the mean loss over the step's targets. Gradients accumulate pass by pass. Sums are
  // rounded, so the samples alone determine the passes and their order (data::kPassTokens).
  data::StepMeasures AddGradients(const models::ParameterSet& parameters,
                                  const StepSamples& samples, const StepTensors&,
                                  models::DropoutNumbers dropout) const override {
    const at::Device device = parameters[0].device();
    int64_t counted = 0;
    for (const data::TextPass& pass : samples.passes) counted += pass.Counted();
    const auto targets_in_all = std::max<int64_t>(1, counted);
    const auto options = at::TensorOptions().device(device);
    at::Tensor loss = at::zeros({1}, options.dtype(at::kDouble));
    at::Tensor correct = at::zeros({1}, options.dtype(at::kLong));
    for (size_t p = 0; p < samples.passes.size(); ++p) {
      const data::TextPass& pass = samples.passes[p];
      const data::TextPositions& drawn = samples.pass_positions[p];
      const at::Tensor targets = evaluation::TargetsOf(pass, device);
      models::ExampleGroups groups = evaluation::ToExampleGroups(pass, device);
      groups.own_positions = drawn.own;
      for (size_t g = 0; g < groups.groups.size(); ++g) {
        groups.groups[g].first_position = drawn.first[g];
      }
      const at::Tensor places = data::ToDevice(
          drawn.positions, {1, positions().draws(), drawn.count}, at::kDouble, device);
      const at::Tensor logits = model_->Forward(parameters, groups, places, &dropout, nullptr);
      const at::Tensor sum = evaluation::SumCrossEntropy(logits, targets);
      sum.div(targets_in_all).backward();
      dropout.first_sequence += pass.examples();
      const c10::NoGradGuard no_gradients;
      loss.add_(sum.to(at::kDouble));
      // kNoTarget equals no token, so uncounted targets are never correct.
      correct.add_(logits.select(0, 0).argmax(-1).eq(targets).sum());
    }
    return {.losses = loss.div(targets_in_all),
            .accuracies = correct.to(at::kDouble).div(targets_in_all)};
  }

  const std::unique_ptr<models::LanguageModel> model_;
  const evaluation::LanguageEvaluator evaluator_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackModel>> CreateLanguagePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn) {
  const int64_t vocabulary = blueprint.text->task().vocabulary();
  const models::NetworkShape shape = {.input_columns = vocabulary,
                                      .output_columns = vocabulary,
                                      .longest_sequence = blueprint.size.longest_sequence};
  if (blueprint.network.name == models::kPythonNetwork) {
    ASSIGN_OR_RETURN(PythonParts parts, CreatePythonParts(blueprint, members, device, shape, warn));
    return std::make_unique<LanguagePackModel>(
        blueprint, members, std::make_unique<models::PythonLanguageModel>(std::move(parts.network)),
        std::move(parts.numbers), kModuleDecodingBytes, std::move(parts.software));
  }
  auto layout = std::make_unique<models::ParameterLayout>();
  ASSIGN_OR_RETURN(std::unique_ptr<models::LanguageModel> model,
                   models::CreateLanguageModel(blueprint.network.name, blueprint.network.parameters,
                                               blueprint.encoding.name,
                                               blueprint.encoding.parameters, shape, *layout));
  if (blueprint.training.precision() == "bfloat16") {
    model = models::WithBfloat16Products(std::move(model));
  }
  return std::make_unique<LanguagePackModel>(
      blueprint, members, std::move(model),
      MakePackArena(std::move(layout), blueprint, members, PlaceOf(device)),
      device.cuda ? kCudaDecodingBytes : kCpuDecodingBytes);
}

}  // namespace lengthwise::worker::training
