#include "worker/data/trial_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/status_macros.h"
#include "proto/digest.h"

namespace lengthwise::worker::checkpoints {
namespace {

using models::ReadSafetensors;
using models::TensorFile;
using models::TensorView;
using models::WriteSafetensors;

constexpr absl::string_view kFormat = "lengthwise.checkpoint.1";
constexpr char kTrainingSeconds[] = "training_seconds";
constexpr char kStopReason[] = "stop_reason";
constexpr char kSchedule[] = "schedule";
constexpr char kKernels[] = "kernels";
constexpr char kLosses[] = "losses_since_point";
constexpr char kOptimizerState[] = "optimizer_state";
constexpr char kDropped[] = "dropped";
constexpr char kEvaluation[] = "evaluation";
constexpr char kDue[] = "due";

// Returns a checkpoint's rows with the prefix of their tensors' names.
std::vector<std::pair<absl::string_view, absl::Span<char>>> NamedRows(const TrialRows& rows,
                                                                      bool has_optimizer_state) {
  if (!has_optimizer_state) return {{"parameters/", rows.parameters}};
  return {{"parameters/", rows.parameters},
          {"adam/first_moment/", rows.first_moments},
          {"adam/second_moment/", rows.second_moments}};
}

absl::StatusOr<std::string> MetadataValue(const TensorFile& file, const std::string& key) {
  const auto value = file.metadata.find(key);
  if (value == file.metadata.end()) {
    return absl::DataLossError(
        absl::StrCat("not a trial's checkpoint: its metadata has no \"", key, "\""));
  }
  return value->second;
}

// "400 fused;1000 plain".
std::string FormatKernels(const std::vector<KernelSteps>& kernels) {
  return absl::StrJoin(kernels, ";", [](std::string* out, const KernelSteps& steps) {
    absl::StrAppend(out, steps.last_step, " ", steps.kernels);
  });
}

absl::StatusOr<std::vector<KernelSteps>> ParseKernels(absl::string_view text, int64_t last_step) {
  std::vector<KernelSteps> kernels;
  for (const absl::string_view part : absl::StrSplit(text, ';')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(part, absl::MaxSplits(' ', 1));
    KernelSteps steps = {.kernels = std::string(entry.second)};
    const int64_t previous = kernels.empty() ? 0 : kernels.back().last_step;
    if (!absl::SimpleAtoi(entry.first, &steps.last_step) || steps.last_step <= previous ||
        steps.last_step > last_step || steps.kernels.empty()) {
      return absl::DataLossError(absl::StrCat(
          "the checkpoint's kernels are \"", text,
          "\"; expected ascending steps and what made them, \"400 fused;1000 plain\""));
    }
    kernels.push_back(std::move(steps));
  }
  return kernels;
}

absl::StatusOr<CheckpointHeader> ReadHeader(const TensorFile& file) {
  ASSIGN_OR_RETURN(const std::string format, MetadataValue(file, "format"));
  if (format != kFormat) {
    return absl::DataLossError(absl::StrCat("the checkpoint's format is \"", format,
                                            "\"; this program reads \"", kFormat, "\""));
  }
  ASSIGN_OR_RETURN(const std::string step, MetadataValue(file, "step"));
  const auto damaged = [](absl::string_view key, absl::string_view value,
                          absl::string_view wanted) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint's ", key, " is \"", value, "\"; expected ", wanted));
  };
  // Null if the metadata has no such key.
  const auto find = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? nullptr : &found->second;
  };
  CheckpointHeader header;
  ASSIGN_OR_RETURN(header.program_version, MetadataValue(file, "program_version"));
  ASSIGN_OR_RETURN(header.fingerprint, MetadataValue(file, "specification"));
  if (!absl::SimpleAtoi(step, &header.step) || header.step < 0) {
    return damaged("step", step, "an integer from 0");
  }
  if (const std::string* seconds = find(kTrainingSeconds)) {
    if (!absl::SimpleAtod(*seconds, &header.training_seconds) ||
        !std::isfinite(header.training_seconds) || header.training_seconds < 0) {
      return damaged(kTrainingSeconds, *seconds, "a number from 0");
    }
  }
  if (const std::string* reason = find(kStopReason)) header.stop_reason = *reason;
  if (const std::string* state = find(kSchedule)) header.schedule_state = *state;
  if (const std::string* kernels = find(kKernels)) {
    ASSIGN_OR_RETURN(header.kernels, ParseKernels(*kernels, header.step));
  }
  if (const std::string* losses = find(kLosses)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(*losses, absl::MaxSplits(' ', 1));
    if (!absl::SimpleAtod(parts.first, &header.loss_sum) || !std::isfinite(header.loss_sum) ||
        !absl::SimpleAtoi(parts.second, &header.losses) || header.losses < 1 ||
        header.losses > header.step) {
      return damaged(kLosses, *losses, "a sum and its number, \"12.5 3\"");
    }
  }
  if (const std::string* state = find(kOptimizerState)) {
    if (*state != kDropped) return damaged(kOptimizerState, *state, "\"dropped\" or none");
    header.has_optimizer_state = false;
  }
  if (const std::string* evaluation = find(kEvaluation)) {
    if (*evaluation != kDue) return damaged(kEvaluation, *evaluation, "\"due\" or none");
    header.evaluation_due = true;
  }
  return header;
}

}  // namespace

std::string Fingerprint(const v1::TrialSpecification& specification) {
  v1::TrialSpecification trained = specification;
  trained.clear_evaluation();
  trained.clear_evaluated_trial();
  trained.clear_keep();
  return Digest(trained);
}

std::string WriteTrialCheckpoint(const models::ParameterLayout& layout,
                                 const CheckpointHeader& header, const TrialRows& rows) {
  TensorFile file;
  file.metadata = {{"format", std::string(kFormat)},
                   {"step", absl::StrCat(header.step)},
                   {"program_version", header.program_version},
                   {"specification", header.fingerprint}};
  if (header.training_seconds > 0) {
    // 17 significant digits reproduce every double exactly.
    file.metadata[kTrainingSeconds] = absl::StrFormat("%.17g", header.training_seconds);
  }
  if (!header.stop_reason.empty()) file.metadata[kStopReason] = header.stop_reason;
  if (!header.schedule_state.empty()) file.metadata[kSchedule] = header.schedule_state;
  if (!header.kernels.empty()) file.metadata[kKernels] = FormatKernels(header.kernels);
  if (header.losses > 0) {
    file.metadata[kLosses] = absl::StrFormat("%.17g %d", header.loss_sum, header.losses);
  }
  if (!header.has_optimizer_state) file.metadata[kOptimizerState] = kDropped;
  if (header.evaluation_due) file.metadata[kEvaluation] = kDue;
  const int64_t width = models::DataTypeSize(rows.type);
  for (const auto& [prefix, row] : NamedRows(rows, header.has_optimizer_state)) {
    for (const models::ParameterLayout::Slot& slot : layout.slots()) {
      file.tensors.push_back({.name = absl::StrCat(prefix, slot.name),
                              .type = rows.type,
                              .shape = slot.shape,
                              .bytes = absl::string_view(row.data() + slot.offset * width,
                                                         static_cast<size_t>(slot.size * width))});
    }
  }
  return WriteSafetensors(file);
}

absl::StatusOr<CheckpointHeader> ReadTrialCheckpoint(absl::string_view bytes,
                                                     const models::ParameterLayout& layout,
                                                     absl::string_view fingerprint,
                                                     const TrialRows& rows) {
  ASSIGN_OR_RETURN(const TensorFile file, ReadSafetensors(bytes));
  ASSIGN_OR_RETURN(CheckpointHeader header, ReadHeader(file));
  if (header.fingerprint != fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint belongs to a trial with another specification: fingerprint ",
                     header.fingerprint, ", expected ", fingerprint));
  }

  std::map<std::string, const TensorView*> by_name;
  for (const TensorView& tensor : file.tensors) by_name[tensor.name] = &tensor;
  // Checks every tensor before copying any, so that an error leaves the rows unchanged.
  std::vector<std::pair<char*, absl::string_view>> copies;
  for (const auto& [prefix, row] : NamedRows(rows, header.has_optimizer_state)) {
    for (const models::ParameterLayout::Slot& slot : layout.slots()) {
      const std::string name = absl::StrCat(prefix, slot.name);
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        return absl::DataLossError(absl::StrCat("the checkpoint has no tensor \"", name, "\""));
      }
      const TensorView& tensor = *found->second;
      if (tensor.type != rows.type || tensor.shape != slot.shape) {
        return absl::DataLossError(absl::StrCat("the checkpoint's tensor \"", name,
                                                "\" has another type or shape than the network's"));
      }
      copies.emplace_back(row.data() + slot.offset * models::DataTypeSize(rows.type), tensor.bytes);
    }
  }
  if (copies.size() != file.tensors.size()) {
    return absl::DataLossError("the checkpoint has tensors that the network does not have");
  }
  for (const auto& [to, from] : copies) std::memcpy(to, from.data(), from.size());
  if (!header.has_optimizer_state) {
    for (const absl::Span<char> moments : {rows.first_moments, rows.second_moments}) {
      std::fill(moments.begin(), moments.end(), '\0');
    }
  }
  return header;
}

}  // namespace lengthwise::worker::checkpoints
