// Chooses between our kernel and LibTorch's operators for one operation: a kernel has to agree with
// the operators and must not be slower. Knows neither LibTorch nor a device.
#ifndef LENGTHWISE_MODELS_LAYERS_KERNEL_SELECTION_H_
#define LENGTHWISE_MODELS_LAYERS_KERNEL_SELECTION_H_

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "models/layers/kernel_choice.h"

namespace lengthwise::models {

// One way to compute an operation on a fixed problem. Functions may throw.
struct KernelCandidate {
  // Starts one forward and backward pass.
  std::function<void()> run;
  // Makes a pass, perhaps of a smaller problem, and returns its results on the host: values first,
  // then gradients, each tensor flattened.
  std::function<std::vector<std::vector<double>>()> results;
};

struct KernelComparison {
  FusedOperation operation = FusedOperation::kAttention;
  KernelCandidate fused, plain;
  // Waits until the device has finished what `run` started.
  std::function<void()> wait;
  // Largest difference of a number, as a share of the largest magnitude in its tensor (of the
  // operators' results). A number that is not finite in one result alone is a disagreement.
  double tolerance = 0;
  // Returns true if the exception says that memory ran out. Null: none does.
  std::function<bool(const std::exception&)> is_out_of_memory;
  // Returns true if the exception says that nothing will run on the device any more. Null: none
  // does.
  std::function<bool(const std::exception&)> is_device_lost;
};

struct KernelDecision {
  FusedOperation operation = FusedOperation::kAttention;
  bool fused = true;
  // For logs: "0.21 ms, LibTorch's operators 0.64 ms".
  std::string reason;
  // For a table: "fused 3.05x", "plain: disagrees".
  std::string summary;
  // True if memory ran out, so that another attempt may decide differently.
  bool out_of_memory = false;
};

// LibTorch's operators replace a kernel that agrees only if they take less than this share of its
// time. Nearly equal times would otherwise change the choice, and with it the last bits of results,
// from run to run.
inline constexpr double kClearlyFaster = 0.9;

// Decides for the operators if the kernel throws, disagrees or is clearly slower; for the kernel if
// the operators throw. Runs each candidate about a dozen times. `seconds` is a monotonic clock.
// Of what a candidate throws, throws what is_device_lost says of or is no std::exception.
KernelDecision DecideKernel(const KernelComparison& comparison,
                            const std::function<double()>& seconds);

KernelChoice ChoiceOf(const std::vector<KernelDecision>& decisions);

// "attention fused 3.05x, layer norm plain: disagrees".
std::string SummaryOf(const std::vector<KernelDecision>& decisions);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_KERNEL_SELECTION_H_
