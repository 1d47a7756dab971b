// Selects the implementation of each fused operation: our kernel or LibTorch's operators. A pack
// sets the choice for its thread; layers, attention and optimizers ask.
#ifndef LENGTHWISE_MODELS_LAYERS_KERNEL_CHOICE_H_
#define LENGTHWISE_MODELS_LAYERS_KERNEL_CHOICE_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::models {

enum class FusedOperation { kAttention, kAddLayerNorm, kFeedForward, kCrossEntropy, kAdam };

inline constexpr std::array<FusedOperation, 5> kFusedOperations = {
    FusedOperation::kAttention, FusedOperation::kAddLayerNorm, FusedOperation::kFeedForward,
    FusedOperation::kCrossEntropy, FusedOperation::kAdam};

// As logs and provenance name it: "layer norm".
absl::string_view NameOf(FusedOperation operation);

// A value. By default every operation is fused.
class KernelChoice {
 public:
  static KernelChoice Fused() { return {}; }
  static KernelChoice Plain();

  bool fused(FusedOperation operation) const { return !plain_[Index(operation)]; }
  void Set(FusedOperation operation, bool fused) { plain_[Index(operation)] = !fused; }

  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;

 private:
  static size_t Index(FusedOperation operation) { return static_cast<size_t>(operation); }

  std::bitset<kFusedOperations.size()> plain_;
};

// "fused", "plain", or the operations without our kernel: "attention plain, Adam plain".
std::string DescribeChoice(KernelChoice choice);

// Sets the choice of the calling thread while it lives. A forward pass decides for its backward
// pass too, on whichever thread that runs. Scopes nest; destroy one on the thread that made it.
class KernelScope {
 public:
  explicit KernelScope(KernelChoice choice);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  const KernelChoice before_;
};

// The calling thread's choice: KernelChoice::Fused() outside every scope.
KernelChoice CurrentKernels();

// Returns true if the thread's choice for `operation` is our kernel. HasKernel of kernel_calls.h
// asks too whether kernels run where a tensor is.
bool UsesFusedKernel(FusedOperation operation);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_KERNEL_CHOICE_H_
