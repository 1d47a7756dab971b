#include "worker/training/recorded_steps.h"

#include <exception>
#include <utility>

#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker::training {
namespace {

// Keys that are recorded: each keeps its block, and a graph of some hundred kernels, for good.
constexpr size_t kMostRecordings = 128;

// Of float32 or float64. What is not a number is the same as itself here.
bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType bits = a.element_size() == sizeof(int64_t) ? at::kLong : at::kInt;
  return at::equal(a.view(bits), b.view(bits));
}

}  // namespace

RecordedSteps::RecordedSteps(models::ParameterArena& arena, std::unique_ptr<GraphPool> graphs,
                             std::function<void(const std::string&)> warn)
    : arena_(arena), graphs_(std::move(graphs)), warn_(std::move(warn)) {}

at::Tensor RecordedSteps::Block(const StepKey& key) {
  if (const auto found = recordings_.find(key); found != recordings_.end()) {
    return found->second.block;
  }
  at::Tensor block =
      at::empty({BlockBytes(key.shape)}, arena_.parameters().options().dtype(at::kByte));
  if (graphs_ != nullptr && recordings_.size() < kMostRecordings) recordings_[key].block = block;
  return block;
}

at::Tensor RecordedSteps::Run(const StepKey& key, const at::Tensor& block, const Work& work) {
  const auto found = recordings_.find(key);
  if (found == recordings_.end()) return work(block);
  Recording& recording = found->second;
  if (recording.verified) {
    recording.graph->Replay();
    return recording.measured;
  }
  if (recording.graph != nullptr) return Verify(key, recording, work);
  at::Tensor measured = work(block);
  Record(recording, work);
  return measured;
}

std::vector<at::Tensor> RecordedSteps::Rows(const MemberRange& range) const {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& of_all :
       {arena_.parameters(), arena_.first_moments(), arena_.second_moments()}) {
    rows.push_back(of_all.narrow(0, range.first, range.count));
  }
  return rows;
}

void RecordedSteps::Record(Recording& recording, const Work& work) {
  try {
    recording.graph = graphs_->MakeGraph();
    recording.work = work;
    recording.graph->Record([&recording] { recording.measured = recording.work(recording.block); });
  } catch (const std::exception& e) {
    const absl::string_view message = e.what();
    GiveUp(absl::StrCat("recording one failed: ", message.substr(0, message.find('\n'))));
  }
}

at::Tensor RecordedSteps::Verify(const StepKey& key, Recording& recording, const Work& work) {
  const std::vector<at::Tensor> rows = Rows(key.range);
  std::vector<at::Tensor> before, replayed;
  for (const at::Tensor& row : rows) before.push_back(row.clone());
  recording.graph->Replay();
  for (const at::Tensor& row : rows) replayed.push_back(row.clone());
  replayed.push_back(recording.measured.clone());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].copy_(before[i]);

  at::Tensor measured = work(recording.block);
  recording.verified = SameBits(measured, replayed.back());
  for (size_t i = 0; i < rows.size(); ++i) {
    recording.verified = recording.verified && SameBits(rows[i], replayed[i]);
  }
  if (!recording.verified) GiveUp("a replayed step differs from the same step made anew");
  return measured;
}

void RecordedSteps::GiveUp(absl::string_view why) {
  recordings_.clear();
  graphs_.reset();
  warn_(
      absl::StrCat("steps are put on the device one operation after another, which takes longer "
                   "for small models, and not as recorded ones: ",
                   why));
}

}  // namespace lengthwise::worker::training
