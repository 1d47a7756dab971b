// Reads what ptxas says of the kernels on tensor cores (`ptxas -v`), so that a change that takes
// more registers or spills more is seen where there is no GPU. Skipped in a build without nvcc.
#include <cxxabi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "models/kernels/tensor_attention_launches.h"
#include "models/kernels/tensor_feed_forward-inl.h"

namespace lengthwise::kernels {
namespace {

struct Resources {
  int registers = 0;
  int spilled_bytes = 0;  // stores and loads
};

// "TensorForwardKernel<5, true>" of a mangled name.
std::string KernelOf(const std::string& mangled) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : mangled;
  std::free(demangled);
  name = name.substr(0, name.find('('));
  const size_t scope = name.rfind("::");
  name = scope == std::string::npos ? name : name.substr(scope + 2);
  return name;
}

// Empty without nvcc.
std::map<std::string, Resources> Compiled() {
  std::map<std::string, Resources> kernels;
  for (const char* source : {"attention_forward", "attention_backward", "feed_forward"}) {
    std::ifstream file(absl::StrCat("models/kernels/tensor_", source, "_cuda_kernels.txt"));
    Resources* current = nullptr;
    for (std::string line; std::getline(file, line);) {
      const size_t quoted = line.find("entry function '");
      if (quoted != std::string::npos) {
        const size_t begin = quoted + 16;
        current = &kernels[KernelOf(line.substr(begin, line.find('\'', begin) - begin))];
      }
      if (current == nullptr) continue;
      int stack = 0, stored = 0, loaded = 0;
      if (std::sscanf(line.c_str(), "%d bytes stack frame, %d bytes spill stores, %d", &stack,
                      &stored, &loaded) == 3) {
        current->spilled_bytes = stored + loaded;
      }
      const size_t used = line.find("Used ");
      if (used != std::string::npos) current->registers = std::atoi(line.c_str() + used + 5);
    }
  }
  return kernels;
}

// The most that each kernel may take.
struct Budget {
  int registers;
  int spilled_bytes;
  int64_t shared_bytes;
};

const std::map<std::string, Budget> kBudgets = {
    {"TensorBackwardKernel<false>", {153, 0, 73728}},
    {"TensorBackwardKernel<true>", {168, 0, 105472}},
    {"TensorFeedForwardBackwardKernel", {255, 120, 108544}},
    {"TensorFeedForwardKernel", {191, 0, 90112}},
    {"TensorForwardKernel<1, false>", {90, 0, 3328}},
    {"TensorForwardKernel<1, true>", {128, 8, 10752}},
    {"TensorForwardKernel<2, false>", {92, 0, 6656}},
    {"TensorForwardKernel<2, true>", {128, 0, 16384}},
    {"TensorForwardKernel<3, false>", {114, 0, 9984}},
    {"TensorForwardKernel<3, true>", {128, 16, 22016}},
    {"TensorForwardKernel<4, false>", {124, 0, 13312}},
    {"TensorForwardKernel<4, true>", {128, 136, 27648}},
    {"TensorForwardKernel<5, false>", {131, 0, 16640}},
    {"TensorForwardKernel<5, true>", {168, 40, 33280}},
    {"TensorForwardKernel<6, false>", {158, 0, 19968}},
    {"TensorForwardKernel<6, true>", {168, 136, 38912}},
    {"TensorForwardKernel<7, false>", {167, 0, 23296}},
    {"TensorForwardKernel<7, true>", {168, 104, 44544}},
    {"TensorForwardKernel<8, false>", {165, 0, 26624}},
    {"TensorForwardKernel<8, true>", {168, 136, 50176}},
};

// Shared memory that a launch asks for; of kernels for any number of tokens, for the most.
int64_t SharedBytesOf(const std::string& kernel) {
  if (kernel == "TensorFeedForwardKernel") return kFeedForwardBytes;
  if (kernel == "TensorFeedForwardBackwardKernel") return kFeedForwardBackwardBytes;
  int chunks = 0;
  char relative = 0;
  if (std::sscanf(kernel.c_str(), "TensorForwardKernel<%d, %c", &chunks, &relative) == 2) {
    return TensorForwardBytes(chunks, relative == 't');
  }
  std::sscanf(kernel.c_str(), "TensorBackwardKernel<%c", &relative);
  return TensorBackwardBytes(kMostTensorTokens / kChunk, relative == 't');
}

TEST(TensorBudgetTest, EveryKernelKeepsToItsBudget) {
  const std::map<std::string, Resources> compiled = Compiled();
  if (compiled.empty()) GTEST_SKIP() << "built without nvcc";
  for (const auto& [name, resources] : compiled) {
    if (name.find("Tensor") == std::string::npos) continue;  // LaunchSum's
    const auto budget = kBudgets.find(name);
    const std::string found = absl::StrCat("{\"", name, "\", {", resources.registers, ", ",
                                           resources.spilled_bytes, ", ");
    ASSERT_NE(budget, kBudgets.end()) << "a new kernel needs a budget: " << found;
    EXPECT_LE(resources.registers, budget->second.registers) << found;
    EXPECT_LE(resources.spilled_bytes, budget->second.spilled_bytes) << found;
    EXPECT_LE(SharedBytesOf(name), budget->second.shared_bytes) << found;
  }
  for (const auto& [name, budget] : kBudgets) {
    EXPECT_TRUE(compiled.contains(name)) << name << " is not compiled any more";
  }
}

}  // namespace
}  // namespace lengthwise::kernels
