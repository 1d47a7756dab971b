#include "worker/training/recorded_steps.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "worker/training/device.h"

namespace lengthwise::worker::training {
namespace {

// Limit on recorded keys, because each keeps its block and a graph of several hundred kernels in
// memory.
constexpr size_t kMostRecordings = 128;

// Compares float32 or float64 bitwise, so that a NaN equals itself.
bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType bits = a.element_size() == sizeof(int64_t) ? at::kLong : at::kInt;
  return at::equal(a.view(bits), b.view(bits));
}

bool SameBits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return SameBits(x, y); });
}

}  // namespace

void WaitForDevice(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

RecordedSteps::RecordedSteps(models::ParameterArena& arena, std::unique_ptr<GraphPool> graphs,
                             std::function<void(const std::string&)> warn)
    : arena_(arena), graphs_(std::move(graphs)), warn_(std::move(warn)) {}

at::Tensor RecordedSteps::Block(const StepKey& key) {
  if (const auto found = recordings_.find(key); found != recordings_.end()) {
    return found->second.block;
  }
  at::Tensor block =
      at::empty({BlockBytes(key.shape)}, arena_.parameters().options().dtype(at::kByte));
  const bool has_samples = key.shape.rows > 0;
  if (graphs_ != nullptr && has_samples && recordings_.size() < kMostRecordings) {
    recordings_[key].block = block;
  }
  return block;
}

at::Tensor RecordedSteps::Run(const StepKey& key, const at::Tensor& block, const Work& work) {
  if (graphs_ == nullptr) return work(block);
  const auto found = recordings_.find(key);
  Recording* const recording = found == recordings_.end() ? nullptr : &found->second;
  std::string problem;
  // A failed replay submitted nothing to the device, so there is nothing to undo.
  Rows before;
  try {
    if (recording != nullptr && recording->verified) {
      recording->graph->Replay();
      return recording->measured;
    }
    before = CopyRows(key.range);
    if (recording == nullptr) return work(block);
    if (recording->graph == nullptr) return MakeAndRecord(*recording, block, work);
    return Verify(key, before, *recording, work);
  } catch (const std::exception& e) {
    problem = FirstLine(e.what());
  }
  // Repeats the step without recordings. If they were not the cause, it fails again.
  GiveUp(problem);
  if (!before.empty()) SetRows(key.range, before);
  return work(block);
}

void RecordedSteps::KeepOnly(absl::Span<const MemberRange> ranges) {
  std::erase_if(recordings_, [&](const auto& recording) {
    return std::find(ranges.begin(), ranges.end(), recording.first.range) == ranges.end();
  });
}

RecordedSteps::Rows RecordedSteps::ViewRows(const MemberRange& range) const {
  Rows rows;
  for (const at::Tensor& of_all :
       {arena_.parameters(), arena_.first_moments(), arena_.second_moments()}) {
    rows.push_back(of_all.narrow(0, range.first, range.count));
  }
  return rows;
}

RecordedSteps::Rows RecordedSteps::CopyRows(const MemberRange& range) const {
  Rows rows = ViewRows(range);
  for (at::Tensor& row : rows) row = row.clone();
  return rows;
}

void RecordedSteps::SetRows(const MemberRange& range, const Rows& rows) const {
  const Rows views = ViewRows(range);
  for (size_t i = 0; i < rows.size(); ++i) views[i].copy_(rows[i]);
}

at::Tensor RecordedSteps::MakeAndRecord(Recording& recording, const at::Tensor& block,
                                        const Work& work) {
  at::Tensor measured = work(block);
  std::string problem;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    try {
      auto graph = graphs_->MakeGraph();
      graph->Record([&recording, work] { recording.measured = work(recording.block); });
      recording.graph = std::move(graph);
      return measured;
    } catch (const std::exception& e) {
      problem = FirstLine(e.what());
    }
    // The allocator cannot free cached memory by itself while recording.
    if (attempt == 1) graphs_->FreeUnusedMemory();
  }
  GiveUp(absl::StrCat("recording one failed: ", problem));
  return measured;
}

at::Tensor RecordedSteps::Verify(const StepKey& key, const Rows& before, Recording& recording,
                                 const Work& work) {
  recording.graph->Replay();
  Rows replayed = CopyRows(key.range);
  replayed.push_back(recording.measured.clone());
  // Includes the measurements, like `replayed`.
  const auto make = [&] {
    SetRows(key.range, before);
    at::Tensor measured = work(recording.block);
    Rows rows = CopyRows(key.range);
    rows.push_back(std::move(measured));
    return rows;
  };
  const Rows made = make();
  recording.verified = SameBits(made, replayed);
  if (!recording.verified) {
    GiveUp(SameBits(make(), made) ? "a replayed step differs from the same step run again"
                                  : "the same step run twice gives different bits");
  }
  return made.back();
}

void RecordedSteps::GiveUp(absl::string_view why) {
  // The device may still run the previous step's graph.
  WaitForDevice(arena_.parameters().device());
  recordings_.clear();
  graphs_.reset();
  warn_(
      absl::StrCat("steps are not recorded but run operation by operation, which is slower "
                   "for small models: ",
                   why));
}

}  // namespace lengthwise::worker::training
