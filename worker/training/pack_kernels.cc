#include "worker/training/pack_kernels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/kernels/cuda_devices.h"
#include "platform/log.h"

namespace lengthwise::worker::training {
namespace {

constexpr int64_t kMostTokens = 512;
// Logits of LibTorch's attention, of which it keeps about four copies of 2 GiB: a batch of 30
// members of 80 tokens has two fifths. More sequences would not fit into memory.
constexpr int64_t kMostLogits = int64_t{1} << 29;

int64_t HiddenFeatures(const Blueprint& blueprint) {
  const auto& given = blueprint.network.parameters.values();
  const auto found = given.find("d_ff");
  const int64_t hidden = found == given.end() ? 0 : blueprint.network.parameters.Int("d_ff");
  return hidden > 0 ? hidden : 4 * blueprint.size.d_model;
}

std::string Describe(const KernelProblem& problem) {
  return absl::StrFormat(
      "packs of %d, %d sequences of %d tokens each, d_model %d, %d heads, %s, %s", problem.members,
      problem.sequences, problem.tokens, problem.d_model, problem.heads, problem.encoding.name,
      problem.in_bfloat16 ? "bfloat16"
      : problem.in_tf32   ? "TF32"
                          : "float32");
}

// Returns equal keys for packs that can share a measurement.
std::string KeyOf(const KernelProblem& problem) {
  std::string key = absl::StrCat(Describe(problem), " ", problem.hidden, " ", problem.classes, " ",
                                 problem.causal, " ", problem.attends, " ", problem.optimizer.name);
  for (const auto& [name, value] : problem.encoding.parameters.values()) {
    absl::StrAppend(&key, " ", name, "=", catalogue::FormatValue(value));
  }
  return key;
}

}  // namespace

KernelProblem ProblemOf(const Blueprint& blueprint, int64_t members) {
  const v1::Training& training = blueprint.training;
  const int64_t longest = blueprint.text != nullptr ? training.packing().tokens()
                                                    : blueprint.source().LongestTraining(training);
  const int64_t tokens = std::clamp<int64_t>(longest, 1, kMostTokens);
  const int64_t of_sequence = std::max<int64_t>(1, blueprint.size.heads) * tokens * tokens;
  return {.members = members,
          .sequences = std::clamp<int64_t>(
              training.batch_size(), 1, std::max<int64_t>(1, kMostLogits / members / of_sequence)),
          .tokens = tokens,
          .d_model = blueprint.size.d_model,
          .heads = blueprint.size.heads,
          .hidden = HiddenFeatures(blueprint),
          .classes = blueprint.examples != nullptr
                         ? std::max<int64_t>(2, blueprint.examples->output_columns())
                         : 2,
          .in_bfloat16 = training.precision() == "bfloat16",
          .in_tf32 = training.precision() == "tf32",
          .causal = blueprint.text != nullptr,
          .attends = !blueprint.size.as_vectors && !blueprint.size.reads_in_order &&
                     blueprint.size.heads > 0,
          .encoding = blueprint.encoding,
          .optimizer = blueprint.optimizer};
}

std::string WhyNoKernels(const Device& device) {
  if (!kernels::HasCudaKernels()) return "built without nvcc";
  if (kernels::RunsCudaKernels(device.index)) return "";
  const int capability = kernels::CudaCapability(device.index);
  return absl::StrCat("compute capability ", capability / 10, ".", capability % 10,
                      " is below 8.0");
}

PackKernels::PackKernels(const Device& device, Options options)
    : device_(device), options_(std::move(options)), summary_(device.cuda ? options_.mode : "") {}

PackKernels::Chosen PackKernels::Choose(const Blueprint& blueprint, int64_t members) {
  Chosen chosen = Decide(blueprint, members);
  const platform::MutexLock lock(mutex_);
  summary_ = chosen.summary;
  return chosen;
}

std::string PackKernels::summary() const {
  const platform::MutexLock lock(mutex_);
  return summary_;
}

PackKernels::Chosen PackKernels::Decide(const Blueprint& blueprint, int64_t members) {
  if (!device_.cuda) return {};
  if (options_.mode == "plain") return {models::KernelChoice::Plain(), "plain"};
  if (blueprint.training.precision() == "float64") {
    return {models::KernelChoice::Plain(), "plain: float64"};
  }
  if (const std::string why = options_.why_none(device_); !why.empty()) {
    return {models::KernelChoice::Plain(), absl::StrCat("plain: ", why)};
  }
  if (options_.mode == "fused") return {models::KernelChoice::Fused(), "fused"};
  const KernelProblem problem = ProblemOf(blueprint, members);
  const std::string key = KeyOf(problem);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const std::vector<models::KernelDecision> decisions = options_.measure(problem, device_);
  bool out_of_memory = false;
  for (const models::KernelDecision& decision : decisions) {
    platform::LogInfo("kernels for ", Describe(problem), ": ", models::NameOf(decision.operation),
                      decision.fused ? " fused: " : " by LibTorch's operators: ", decision.reason);
    out_of_memory = out_of_memory || decision.out_of_memory;
  }
  Chosen chosen = {models::ChoiceOf(decisions), models::SummaryOf(decisions)};
  // The next pack may find memory that another program or pack held now.
  if (!out_of_memory) known_[key] = chosen;
  return chosen;
}

}  // namespace lengthwise::worker::training
