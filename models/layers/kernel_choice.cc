#include "models/layers/kernel_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::models {
namespace {

thread_local KernelChoice current;

}  // namespace

absl::string_view NameOf(FusedOperation operation) {
  // In the order of FusedOperation.
  constexpr absl::string_view kNames[] = {"attention", "layer norm", "feed-forward",
                                          "cross-entropy", "Adam"};
  return kNames[static_cast<size_t>(operation)];
}

KernelChoice KernelChoice::Plain() {
  KernelChoice choice;
  choice.plain_.set();
  return choice;
}

std::string DescribeChoice(KernelChoice choice) {
  if (choice == KernelChoice::Fused()) return "fused";
  if (choice == KernelChoice::Plain()) return "plain";
  std::string text;
  for (const FusedOperation operation : kFusedOperations) {
    if (choice.fused(operation)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", NameOf(operation), " plain");
  }
  return text;
}

KernelScope::KernelScope(KernelChoice choice) : before_(std::exchange(current, choice)) {}

KernelScope::~KernelScope() { current = before_; }

KernelChoice CurrentKernels() { return current; }

bool UsesFusedKernel(FusedOperation operation) { return current.fused(operation); }

}  // namespace lengthwise::models
