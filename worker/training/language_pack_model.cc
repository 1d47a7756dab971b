#include "worker/training/language_pack_model.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "ATen/ATen.h"
#include "c10/core/GradMode.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/networks/bfloat16.h"
#include "models/networks/language_model.h"
#include "random/stream.h"
#include "worker/evaluation/language_evaluator.h"
#include "worker/evaluation/to_device.h"
#include "worker/training/pack_parameters.h"
#include "worker/training/text_examples.h"
#include "worker/training/text_positions.h"

namespace lengthwise::worker::training {
namespace {

// Of keys and values while answers are written.
constexpr int64_t kCpuDecodingBytes = int64_t{1} << 30;
constexpr int64_t kCudaDecodingBytes = int64_t{16} << 30;

class LanguagePackModel : public PackModel {
 public:
  LanguagePackModel(const Blueprint& blueprint, absl::Span<const MemberSeeds> members,
                    at::Device device, std::unique_ptr<models::LanguageModel> model,
                    std::unique_ptr<PackParameters> parameters)
      : blueprint_(blueprint),
        members_(members.begin(), members.end()),
        device_(device),
        model_(std::move(model)),
        positions_(blueprint.encoding.parameters, blueprint.size.blocks),
        parameters_(std::move(parameters)),
        evaluator_(*blueprint.text, *model_, positions_,
                   {.seed = blueprint.evaluation.seed(),
                    .blocks = blueprint.size.blocks,
                    .d_model = blueprint.size.d_model,
                    .memory_bytes = device.is_cuda() ? kCudaDecodingBytes : kCpuDecodingBytes}) {}

  std::vector<MemberRange> Ranges(absl::Span<const int64_t> members) const override {
    std::vector<MemberRange> ranges;
    for (const int64_t member : members) ranges.push_back({member, 1});
    return ranges;
  }

  std::vector<StepMeasurement> TrainStep(int64_t step, absl::Span<const int64_t> members,
                                         absl::Span<const double> learning_rates) override {
    std::vector<StepMeasurement> measurements;
    parameters_->arena().ZeroGradients();
    for (const int64_t member : members) {
      measurements.push_back(TrainMember(step, member, learning_rates[measurements.size()]));
    }
    return measurements;
  }

  double data_seconds() const override { return data_seconds_; }

  std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) override {  // the blueprint refuses noise
    std::vector<evaluation::LengthScore> scores;
    for (int64_t member = range.first; member < range.first + range.count; ++member) {
      auto score = evaluator_.Score(Parameters(member), length, sequences, keep_going, options);
      if (!score.has_value()) return std::nullopt;
      scores.push_back(*std::move(score));
    }
    return scores;
  }

  std::optional<double> TrainingAccuracy(int64_t, int64_t, const std::function<bool()>&) override {
    std::abort();  // the blueprint refuses to be asked for it
  }

  v1::AttentionMap CaptureAttention(int64_t member, int64_t length, int64_t sequence) override {
    return evaluator_.CaptureAttention(Parameters(member), length, sequence);
  }

  v1::AttentionMap CaptureAttention(int64_t, const GivenSequence&) override {
    std::abort();  // TextExamples gives none
  }

  std::vector<v1::Projection> Project(int64_t, int64_t, int64_t,
                                      absl::Span<const int32_t>) override {
    return {};  // the blueprint refuses to be asked for any
  }

  std::string Save(int64_t member, const checkpoints::CheckpointHeader& header) override {
    return parameters_->Save(member, header);
  }

  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint) override {
    return parameters_->Load(member, bytes, fingerprint);
  }

 private:
  models::ParameterSet Parameters(int64_t member) const {
    return parameters_->arena().Members(member, 1);
  }

  // The mean loss of the step's targets, whose gradient is added up pass by pass, and its step.
  StepMeasurement TrainMember(int64_t step, int64_t member, double learning_rate) {
    const auto start = std::chrono::steady_clock::now();
    const uint64_t data_seed = members_[static_cast<size_t>(member)].data_seed;
    const std::vector<TextPass> passes = blueprint_.text->TrainingPasses(data_seed, step);
    int64_t counted = 0;
    for (const TextPass& pass : passes) counted += pass.Counted();
    data_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    const models::ParameterSet parameters = Parameters(member);
    models::DropoutNumbers dropout = {.seeds = {data_seed},
                                      .purpose = random::Purpose::kDropout,
                                      .step = static_cast<uint64_t>(step)};
    const auto options = at::TensorOptions().device(device_);
    at::Tensor loss = at::zeros({}, options.dtype(at::kDouble));
    at::Tensor correct = at::zeros({}, options.dtype(at::kLong));
    for (const TextPass& pass : passes) {
      const at::Tensor targets = evaluation::TargetsOf(pass, device_);
      const TextPositions drawn = PositionsOfPass(positions_, data_seed, step, pass);
      models::ExampleGroups groups = evaluation::ToExampleGroups(pass, device_);
      for (size_t g = 0; g < groups.groups.size(); ++g) {
        groups.groups[g].first_position = drawn.first[g];
      }
      const at::Tensor positions = evaluation::ToDevice(
          drawn.positions, {1, positions_.draws(), drawn.count}, at::kLong, device_);
      const at::Tensor logits = model_->Forward(parameters, groups, positions, &dropout, nullptr);
      const at::Tensor sum = evaluation::SumCrossEntropy(logits, targets);
      sum.div(std::max<int64_t>(1, counted)).backward();
      dropout.first_sequence += pass.examples();
      const c10::NoGradGuard no_gradients;
      loss.add_(sum.to(at::kDouble));
      // No token is kNoTarget.
      correct.add_(logits.select(0, 0).argmax(-1).eq(targets).sum());
    }
    const std::vector<double> numbers = parameters_->StepNumbers(step, {learning_rate});
    const at::Tensor norms = parameters_->Step(
        {member, 1}, evaluation::ToDevice(numbers, {static_cast<int64_t>(numbers.size())},
                                          at::kDouble, device_));
    const double targets = static_cast<double>(std::max<int64_t>(1, counted));
    return {.loss = static_cast<float>(loss.item<double>() / targets),
            .accuracy = static_cast<float>(static_cast<double>(correct.item<int64_t>()) / targets),
            .gradient_norm = norms.to(at::kFloat).item<float>()};
  }

  const Blueprint& blueprint_;
  const std::vector<MemberSeeds> members_;
  const at::Device device_;
  const std::unique_ptr<models::LanguageModel> model_;
  const models::PositionPolicy positions_;
  const std::unique_ptr<PackParameters> parameters_;
  const evaluation::LanguageEvaluator evaluator_;
  double data_seconds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackModel>> CreateLanguagePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device) {
  auto layout = std::make_unique<models::ParameterLayout>();
  auto model = models::CreateLanguageModel(blueprint.network.name, blueprint.network.parameters,
                                           blueprint.encoding.name, blueprint.encoding.parameters,
                                           {.vocabulary = blueprint.text->task().vocabulary(),
                                            .longest_sequence = blueprint.size.longest_sequence},
                                           *layout);
  if (!model.ok()) return model.status();
  if (blueprint.training.precision() == "bfloat16") {
    *model = models::WithBfloat16Products(*std::move(model));
  }
  const at::Device place = DeviceOf(device);
  auto parameters = PackParameters::Create(std::move(layout), blueprint, members, place);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<LanguagePackModel>(blueprint, members, place, *std::move(model),
                                             *std::move(parameters));
}

}  // namespace lengthwise::worker::training
