// Implements MeasureKernels of pack_kernels.h. It runs a pack's own layers, attention and optimizer
// under both choices.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros_like.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "c10/core/GradMode.h"
#include "models/attention/attention.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "models/encodings/positions.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/norms.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "torch/csrc/autograd/autograd.h"
#include "worker/training/device.h"
#include "worker/training/pack_kernels.h"
#include "worker/training/recorded_steps.h"

namespace lengthwise::worker::training {
namespace {

using models::FusedOperation;
using models::KernelCandidate;
using models::KernelChoice;
using models::KernelComparison;
using models::KernelDecision;
using models::KernelScope;
using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;
using Results = std::vector<std::vector<double>>;

// Allow for sums of float32 in another order, and for products rounded to TF32 (11 significant
// bits) or bfloat16 (8).
constexpr double kTolerance = 1e-4, kTf32Tolerance = 1e-2, kBfloat16Tolerance = 5e-2;
constexpr double kLearningRate = 1e-3;

// In (-1, 1) without a pattern, because the sums of a product would otherwise cancel until nothing
// but rounding is left of them.
at::Tensor Numbers(at::IntArrayRef shape, double seed, const at::Device& device) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::TensorOptions(device).dtype(at::kDouble))
      .mul(12.9898)
      .add(seed)
      .sin()
      .mul(43758.5453)
      .frac()
      .to(at::kFloat)
      .view(shape);
}

std::vector<double> OnHost(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

// Replaces the parameters' gradients by one concatenation of all gradients, so that errors are
// relative to the largest of them. Keeps the values and the gradient of queries, keys and values. A
// softmax ignores a constant added to its row, so the gradient of a parameter that adds one is
// rounding error and cannot be compared alone.
void JoinGradients(Results& results) {
  std::vector<double> all;
  for (size_t i = 1; i < results.size(); ++i) {
    all.insert(all.end(), results[i].begin(), results[i].end());
  }
  results.resize(2);
  results.push_back(std::move(all));
}

class Measurement {
 public:
  Measurement(const KernelProblem& problem, const Device& device)
      : problem_(problem), device_(PlaceOf(device)) {}

  absl::StatusOr<KernelComparison> AddLayerNorm() const {
    const auto& p = problem_;
    const std::vector<int64_t> rows = Features(p.d_model);
    return Compare(FusedOperation::kAddLayerNorm, rows,
                   {Random(rows, 1), Random(rows, 2), Random({p.members, p.d_model}, 3),
                    Random({p.members, p.d_model}, 4)},
                   [](const Tensors& x) {
                     // In the model, the added tensor is the result of a product, and both a
                     // residual connection and a product use the norm's.
                     const models::Normed normed =
                         models::AddLayerNorm(x[0], models::Operand(x[1]), x[2], x[3]);
                     return normed.features.add(normed.operand);
                   });
  }

  absl::StatusOr<KernelComparison> FeedForward() const {
    const auto& p = problem_;
    const std::vector<int64_t> rows = Features(p.d_model);
    // Biases decide which hidden features are active: features near 0 would be so by rounding.
    const Tensors inputs = {Random(rows, 1), Random({p.members, p.d_model, p.hidden}, 2).mul(0.3),
                            Random({p.members, p.hidden}, 3).sign().mul(8),
                            Random({p.members, p.hidden, p.d_model}, 4).mul(0.3),
                            Random({p.members, p.d_model}, 5)};
    return Compare(FusedOperation::kFeedForward, rows, inputs, [](const Tensors& x) {
      return models::FeedForward(x[0],
                                 {.up = x[1], .up_bias = x[2], .down = x[3], .down_bias = x[4]});
    });
  }

  absl::StatusOr<KernelComparison> CrossEntropy() const {
    const auto& p = problem_;
    const at::Tensor classes =
        at::arange(p.members * p.sequences * p.tokens, at::TensorOptions(device_).dtype(at::kLong))
            .mul(7)
            .remainder(p.classes)
            .view({p.members, p.sequences, p.tokens});
    const at::Tensor mask = at::ones_like(classes, at::kBool);
    return Compare(FusedOperation::kCrossEntropy, {p.members},
                   {Random(Features(p.classes), 1).mul(10)}, [classes, mask](const Tensors& x) {
                     return models::CrossEntropy(x[0], classes, mask).losses;
                   });
  }

  // INVALID_ARGUMENT for an encoding that cannot be made, UNIMPLEMENTED for one without a kernel.
  absl::StatusOr<KernelComparison> Attention() const {
    const auto& p = problem_;
    struct Case {
      models::ParameterLayout layout;
      std::unique_ptr<models::Encoding> encoding;
      std::unique_ptr<models::ParameterArena> arena;
      at::Tensor positions;
    };
    const auto subject = std::make_shared<Case>();
    ASSIGN_OR_RETURN(auto encoding, models::CreateEncoding(p.encoding.name, p.encoding.parameters,
                                                           {.blocks = 1,
                                                            .heads = p.heads,
                                                            .d_model = p.d_model,
                                                            .causal = p.causal,
                                                            .longest_sequence = p.tokens},
                                                           subject->layout));
    // Encodings without parameters take the type of others, which every network has.
    subject->layout.Add("other", {1}, {.kind = models::Initializer::Kind::kZeros});
    subject->encoding = p.causal ? models::MakeCausal(std::move(encoding)) : std::move(encoding);
    subject->arena =
        std::make_unique<models::ParameterArena>(subject->layout, p.members, at::kFloat, device_);
    const models::PositionPolicy policy(p.encoding.parameters);
    std::vector<double> positions;
    for (int64_t member = 0; member < p.members; ++member) {
      subject->arena->Initialize(member, static_cast<uint64_t>(member));
      const std::vector<double> drawn = policy.DrawBatch(
          static_cast<uint64_t>(member), random::Purpose::kTrainingPositions, 1, p.tokens);
      positions.insert(positions.end(), drawn.begin(), drawn.begin() + p.tokens);
    }
    subject->positions = at::tensor(positions, at::kDouble).view({p.members, p.tokens}).to(device_);
    Tensors leaves = {Random(Features(3 * p.d_model), 1)};
    const models::ParameterSet parameters = subject->arena->Members(0, p.members);
    leaves.insert(leaves.end(), parameters.tensors().begin(), parameters.tensors().end());
    const models::Bfloat16Products products(p.in_bfloat16);
    const at::Tensor qkv = models::Operand(leaves[0]);
    if (!models::CanFuse(qkv) && !(models::CanUseTensorCores(qkv, p.heads) &&
                                   models::HaveTensorKernels(subject->encoding->TermsWithoutR(
                                       parameters, 0, subject->positions)))) {
      return absl::UnimplementedError("no kernel takes it");
    }
    return Compare(FusedOperation::kAttention, Features(p.d_model), leaves,
                   [subject, heads = p.heads, members = p.members](const Tensors& x) {
                     const models::ParameterSet parameters =
                         subject->arena->Members(0, members).Replaced({x.begin() + 1, x.end()});
                     return models::Attend(*subject->encoding, parameters, 0, heads,
                                           subject->positions, models::Operand(x[0]), nullptr);
                   });
  }

  // False for an optimizer that always uses LibTorch's operators.
  bool HasOptimizerKernel() const {
    const auto optimizer =
        models::CreateOptimizer(problem_.optimizer.name, problem_.optimizer.parameters);
    return !optimizer.ok() || (*optimizer)->HasFusedKernel();
  }

  // INVALID_ARGUMENT for an optimizer that cannot be made.
  absl::StatusOr<KernelComparison> Adam() const {
    const auto& p = problem_;
    ASSIGN_OR_RETURN(const std::shared_ptr<const models::Optimizer> optimizer,
                     models::CreateOptimizer(p.optimizer.name, p.optimizer.parameters));
    // One block's weights.
    const auto layout = std::make_shared<models::ParameterLayout>();
    layout->Add("weights", {4 * p.d_model * p.d_model + 2 * p.d_model * p.hidden},
                {.kind = models::Initializer::Kind::kZeros});
    const auto make_arena = [layout, members = p.members, device = device_] {
      auto arena = std::make_shared<models::ParameterArena>(*layout, members, at::kFloat, device);
      const auto shape = arena->parameters().sizes();
      arena->parameters().copy_(Numbers(shape, 1, device));
      arena->gradients().copy_(Numbers(shape, 2, device));
      return arena;
    };
    const std::vector<double> rates(static_cast<size_t>(p.members), kLearningRate);
    const at::Tensor numbers =
        at::tensor(optimizer->StepNumbers(1, rates), at::kDouble).to(device_);
    const auto candidate = [&](KernelChoice choice) {
      const auto step = [choice, optimizer, numbers,
                         members = p.members](models::ParameterArena& arena) {
        const KernelScope scope(choice);
        const c10::NoGradGuard no_gradients;
        optimizer->Step(arena, 0, members, numbers, at::Tensor());
      };
      // The arena refers to its layout.
      return KernelCandidate{.run = [step, layout, arena = make_arena()] { step(*arena); },
                             .results = [step, make_arena]() -> Results {
                               const auto arena = make_arena();
                               const at::Tensor before = arena->parameters().clone();
                               step(*arena);
                               // The change, because parameters hardly differ after one step.
                               return {OnHost(arena->parameters().sub(before)),
                                       OnHost(arena->first_moments()),
                                       OnHost(arena->second_moments())};
                             }};
    };
    return Comparison(FusedOperation::kAdam, kTolerance, candidate);
  }

 private:
  std::vector<int64_t> Features(int64_t width) const {
    return {problem_.members, problem_.sequences, problem_.tokens, width};
  }

  at::Tensor Random(at::IntArrayRef shape, double seed) const {
    return Numbers(shape, seed, device_);
  }

  // `candidate` makes one for a KernelChoice.
  template <typename Candidate>
  KernelComparison Comparison(FusedOperation operation, double tolerance,
                              const Candidate& candidate) const {
    return {.operation = operation,
            .fused = candidate(KernelChoice::Fused()),
            .plain = candidate(KernelChoice::Plain()),
            .wait = [device = device_] { WaitForDevice(device); },
            .tolerance = tolerance,
            .is_out_of_memory = IsOutOfMemory,
            .is_device_lost = IsDeviceLost};
  }

  // Compares `function` of `inputs`, whose result has `shape`. The numbers of the result get
  // different weights in the gradients, because equal weights would let errors cancel.
  KernelComparison Compare(FusedOperation operation, at::IntArrayRef shape, Tensors inputs,
                           const Function& function) const {
    for (at::Tensor& input : inputs) input = input.detach().requires_grad_(true);
    const at::Tensor counts = Random(shape, 6).add(1.5);
    const auto candidate = [&](KernelChoice choice) {
      const auto pass = [choice, inputs, function, counts,
                         in_bfloat16 = problem_.in_bfloat16]() -> Tensors {
        const KernelScope scope(choice);
        const models::Bfloat16Products products(in_bfloat16);
        const c10::AutoGradMode with_gradients(true);
        const at::Tensor output = function(inputs);
        Tensors all = {output.detach()};
        const Tensors gradients = torch::autograd::grad(
            {output}, inputs, {counts.to(output.scalar_type())}, /*retain_graph=*/false,
            /*create_graph=*/false, /*allow_unused=*/true);
        for (size_t i = 0; i < inputs.size(); ++i) {
          all.push_back(gradients[i].defined() ? gradients[i] : at::zeros_like(inputs[i]));
        }
        return all;
      };
      return KernelCandidate{.run = [pass] { pass(); },
                             .results =
                                 [pass, operation] {
                                   Results results;
                                   for (const at::Tensor& one : pass()) {
                                     results.push_back(OnHost(one));
                                   }
                                   if (operation == FusedOperation::kAttention) {
                                     JoinGradients(results);
                                   }
                                   return results;
                                 }};
    };
    const double tolerance = operation == FusedOperation::kCrossEntropy ? kTolerance
                             : problem_.in_bfloat16                     ? kBfloat16Tolerance
                             : problem_.in_tf32                         ? kTf32Tolerance
                                                                        : kTolerance;
    return Comparison(operation, tolerance, candidate);
  }

  const KernelProblem& problem_;
  const at::Device device_;
};

// Results are compared on the host, in double precision: enough sequences for every path through a
// kernel, of all members together.
constexpr int64_t kComparedSequences = 256;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<KernelDecision> MeasureKernels(const KernelProblem& problem, const Device& device) {
  KernelProblem compared_problem = problem;
  compared_problem.sequences =
      std::clamp<int64_t>(kComparedSequences / problem.members, 1, problem.sequences);
  const Measurement timed(problem, device), compared(compared_problem, device);
  std::vector<KernelDecision> decisions;
  const auto decide = [&](FusedOperation operation, auto make) -> KernelDecision {
    std::string why;
    bool out_of_memory = false;
    try {
      absl::StatusOr<KernelComparison> comparison = (timed.*make)();
      if (comparison.ok()) {
        KernelComparison of_fewer = *(compared.*make)();
        comparison->fused.results = std::move(of_fewer.fused.results);
        comparison->plain.results = std::move(of_fewer.plain.results);
        return models::DecideKernel(*comparison, Seconds);
      }
      why = std::string(comparison.status().message());
      if (absl::IsUnimplemented(comparison.status())) {
        return {.operation = operation, .fused = false, .reason = why, .summary = "plain"};
      }
    } catch (const std::exception& error) {
      if (IsDeviceLost(error)) throw;
      why = FirstLine(error.what());
      out_of_memory = IsOutOfMemory(error);
    }
    return {.operation = operation,
            .fused = true,
            .reason = absl::StrCat("not checked: ", why),
            .summary = "fused: not checked",
            .out_of_memory = out_of_memory};
  };
  if (problem.attends) {
    decisions.push_back(decide(FusedOperation::kAttention, &Measurement::Attention));
  }
  decisions.push_back(decide(FusedOperation::kAddLayerNorm, &Measurement::AddLayerNorm));
  decisions.push_back(decide(FusedOperation::kFeedForward, &Measurement::FeedForward));
  decisions.push_back(decide(FusedOperation::kCrossEntropy, &Measurement::CrossEntropy));
  if (timed.HasOptimizerKernel()) {
    decisions.push_back(decide(FusedOperation::kAdam, &Measurement::Adam));
  }
  // The training step needs the memory more than LibTorch's cache does.
  if (device.make_graph_pool) {
    if (const auto pool = device.make_graph_pool(); pool != nullptr) pool->FreeUnusedMemory();
  }
  return decisions;
}

}  // namespace lengthwise::worker::training
