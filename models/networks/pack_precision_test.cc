// Loss and gradients of packs in float32, with our kernels and with LibTorch's operators, against
// each member alone in float64 on the CPU: small packs on the CPU, and on a GPU the largest pack
// that the worker trains, at the paper's sizes.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/ops/tensor.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/positions.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/testing/cuda_for_tests.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "random/stream.h"

namespace lengthwise::models {
namespace {

using catalogue::Resolved;

struct Size {
  int64_t members, sequences, tokens, blocks, heads, d_model;
};

constexpr Size kSmall = {
    .members = 3, .sequences = 4, .tokens = 16, .blocks = 2, .heads = 2, .d_model = 16};
// Ruoss et al. 2023, appendix A, with inputs of length 40.
constexpr Size kLarge = {
    .members = 30, .sequences = 128, .tokens = 80, .blocks = 5, .heads = 8, .d_model = 64};

// Rounding of float32 through all layers, in parts of the largest gradient.
constexpr double kTolerance = 2e-4;

struct Result {
  at::Tensor losses, gradients;  // [P], [P, N]; float64 on the CPU
};

class PrecisePack {
 public:
  PrecisePack(const std::string& encoding, const Size& size) : size_(size) {
    catalogue::Parameters shape;
    shape.Set("blocks", size.blocks);
    shape.Set("heads", size.heads);
    shape.Set("d_model", size.d_model);
    catalogue::Parameters given;
    given.Set("randomized", true);
    const catalogue::Parameters options = Resolved(EncodingEntries(), encoding, given);
    network_ =
        CreateNetwork("encoder", Resolved(NetworkEntries(), "encoder", shape), encoding, options,
                      {.input_columns = 4, .output_columns = 3, .longest_sequence = size.tokens},
                      layout_)
            .value();
    const PositionPolicy policy(options, size.blocks);
    std::vector<int64_t> tokens, classes;
    std::vector<double> positions;
    for (int64_t p = 0; p < size.members; ++p) {
      random::Stream stream(static_cast<uint64_t>(p), random::Purpose::kTrainingSamples, 0);
      for (int64_t i = 0; i < size.sequences * size.tokens; ++i) tokens.push_back(stream.Below(4));
      for (int64_t i = 0; i < size.sequences * size.tokens / 2; ++i) {
        classes.push_back(stream.Below(3));
      }
      const std::vector<double> drawn = policy.DrawBatch(
          static_cast<uint64_t>(p), random::Purpose::kTrainingPositions, 0, size.tokens);
      positions.insert(positions.end(), drawn.begin(), drawn.end());
    }
    tokens_ = at::tensor(tokens).view({size.members, size.sequences, size.tokens});
    classes_ = at::tensor(classes).view({size.members, size.sequences, size.tokens / 2});
    positions_ = at::tensor(positions).view({size.members, policy.draws(), size.tokens});
  }

  // Result of `count` members from `first` on, in one pack.
  Result Differentiate(int64_t first, int64_t count, at::ScalarType dtype,
                       const at::Device& device) const {
    ParameterArena arena(layout_, count, dtype, device);
    for (int64_t p = 0; p < count; ++p) arena.Initialize(p, static_cast<uint64_t>(first + p));
    const auto take = [&](const at::Tensor& of_all) {
      return of_all.narrow(0, first, count).to(device);
    };
    const at::Tensor classes = take(classes_);
    const at::Tensor logits =
        network_->Forward(arena.Members(0, count), {.tokens = take(tokens_)}, take(positions_),
                          size_.tokens / 2, nullptr, nullptr);
    const at::Tensor losses = CrossEntropy(logits, classes, classes.ge(0)).losses;
    losses.sum().backward();
    return {losses.detach().to(at::kCPU, at::kDouble), arena.gradients().to(at::kCPU, at::kDouble)};
  }

 private:
  const Size size_;
  ParameterLayout layout_;
  std::unique_ptr<Network> network_;
  at::Tensor tokens_, classes_, positions_;
};

void ExpectPrecise(const std::string& encoding, const Size& size, const at::Device& device,
                   const std::vector<int64_t>& members) {
  const PrecisePack pack(encoding, size);
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(encoding + (fused ? ", our kernels" : ", LibTorch's operators"));
    const KernelScope scope(fused ? KernelChoice::Fused() : KernelChoice::Plain());
    const Result results = pack.Differentiate(0, size.members, at::kFloat, device);
    for (const int64_t p : members) {
      const Result expected = pack.Differentiate(p, 1, at::kDouble, at::kCPU);
      EXPECT_NEAR(results.losses[p].item<double>(), expected.losses[0].item<double>(), kTolerance)
          << "member " << p;
      EXPECT_LE(results.gradients[p].sub(expected.gradients[0]).abs().max().item<double>(),
                kTolerance * expected.gradients.abs().max().item<double>())
          << "member " << p;
    }
  }
}

TEST(PackPrecisionTest, SmallPacksOnTheCpu) {
  for (const char* encoding : {"relative", "rope", "alibi", "sin_cos"}) {
    ExpectPrecise(encoding, kSmall, at::kCPU, {0, 1, 2});
  }
}

TEST(PackPrecisionTest, LargestPackOnAGpu) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  at::set_num_threads(4);  // for float64
  for (const char* encoding : {"relative", "rope", "alibi", "sin_cos"}) {
    ExpectPrecise(encoding, kLarge, at::Device(at::kCUDA, 0), {0, 29});
  }
}

}  // namespace
}  // namespace lengthwise::models
