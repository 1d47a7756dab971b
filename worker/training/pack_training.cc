#include "worker/training/pack_training.h"

#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/zeros.h"
#include "c10/core/GradMode.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "worker/training/device_graph.h"

namespace lengthwise::worker::training {
namespace {

// Copies bytes [first, end) of a block to the device and does not wait for it. The device's stream
// runs copies and steps in order, so `block` may be memory that the running step still reads.
// LibTorch's allocator reuses pinned memory such as `host` only after the copies from it are done.
void Upload(const at::Tensor& host, const at::Tensor& block, int64_t first, int64_t end) {
  if (first == end || block.is_same(host)) return;
  block.narrow(0, first, end - first)
      .copy_(host.narrow(0, first, end - first), /*non_blocking=*/true);
}

void AppendMeasurements(const at::Tensor& measured, std::vector<StepMeasurement>& measurements) {
  const double* values = measured.const_data_ptr<double>();
  const int64_t count = measured.size(1);
  for (int64_t i = 0; i < count; ++i) {
    measurements.push_back({.loss = static_cast<float>(values[i]),
                            .accuracy = static_cast<float>(values[count + i]),
                            .gradient_norm = static_cast<float>(values[2 * count + i])});
  }
}

// A member's parameters, first and second moments on the host.
using HostRows = std::array<at::Tensor, 3>;

checkpoints::TrialRows BytesOf(HostRows& rows) {
  const auto bytes = [](at::Tensor& row) {
    return absl::MakeSpan(static_cast<char*>(row.mutable_data_ptr()), row.nbytes());
  };
  return {rows[0].scalar_type() == at::kDouble ? models::DataType::kFloat64
                                               : models::DataType::kFloat32,
          bytes(rows[0]), bytes(rows[1]), bytes(rows[2])};
}

}  // namespace

PackArena MakePackArena(std::unique_ptr<models::ParameterLayout> layout, const Blueprint& blueprint,
                        absl::Span<const MemberSeeds> members, const at::Device& device,
                        const models::ParameterArena::Allocate& allocate) {
  auto arena = std::make_unique<models::ParameterArena>(
      *layout, static_cast<int64_t>(members.size()),
      blueprint.training.precision() == "float64" ? at::kDouble : at::kFloat, device, allocate);
  for (size_t i = 0; i < members.size(); ++i) {
    arena->Initialize(static_cast<int64_t>(i), members[i].weight_seed);
  }
  return {std::move(layout), std::move(arena)};
}

PackTraining::PackTraining(const Blueprint& blueprint, absl::Span<const MemberSeeds> members,
                           PackArena numbers, Options options)
    : blueprint_(blueprint),
      together_(options.members_together),
      software_(std::move(options.software)),
      positions_(blueprint.encoding.parameters, blueprint.size.blocks),
      // The blueprint's optimizer is one of the catalogue.
      optimizer_(models::CreateOptimizer(blueprint.optimizer.name, blueprint.optimizer.parameters)
                     .value()),
      numbers_(std::move(numbers)),
      arena_(*numbers_.arena),
      device_(arena_.parameters().device()) {
  for (const MemberSeeds& member : members) data_seeds_.push_back(member.data_seed);
  if (options.graphs != nullptr) {
    recorded_ =
        std::make_unique<RecordedSteps>(arena_, std::move(options.graphs), std::move(options.warn));
  }
}

std::vector<MemberRange> PackTraining::Ranges(absl::Span<const int64_t> members) const {
  std::vector<MemberRange> ranges;
  for (const int64_t member : members) {
    if (together_ && !ranges.empty() && ranges.back().first + ranges.back().count == member) {
      ++ranges.back().count;
    } else {
      ranges.push_back({member, 1});
    }
  }
  return ranges;
}

PackTraining::~PackTraining() {
  // A run that was lost or failed leaves steps unfinished. A graph must not be destroyed while the
  // device runs it.
  if (started_.empty() && prepared_.empty()) return;
  try {
    WaitForDevice(device_);
  } catch (const std::exception&) {
    // The device failed, which ended the run. To free pinned memory that copies used, LibTorch asks
    // the device, and throws in a destructor: such memory stays.
    new auto(std::move(started_));
    new auto(std::move(prepared_));
    new auto(std::move(current_));
  }
}

void PackTraining::StartStep(int64_t step, absl::Span<const int64_t> members,
                             absl::Span<const double> learning_rates) {
  std::vector<MemberRange> ranges = Ranges(members);
  if (recorded_ != nullptr && ranges != ranges_) {
    // KeepOnly destroys graphs, one of which the device may be running.
    if (!started_.empty()) WaitForDevice(device_);
    recorded_->KeepOnly(ranges);
  }
  ranges_ = std::move(ranges);
  Started& started = started_.emplace_back();
  size_t next = 0;
  for (const MemberRange range : ranges_) {
    const auto count = static_cast<size_t>(range.count);
    TrainRange(step, range, learning_rates.subspan(next, count), started);
    next += count;
  }
  if (!device_.is_cpu()) {
    // The stream itself also has the next step before this one is finished.
    started.end.emplace(device_.type());
    started.end->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  // After the step is on its way: the host makes the next samples while the device computes.
  prepared_.clear();
  if (PreparesAhead() && step < blueprint_.training.steps()) {
    for (const MemberRange range : ranges_) Prepare(step + 1, range, prepared_.emplace_back());
  }
}

std::vector<StepMeasurement> PackTraining::FinishStep() {
  const Started& started = started_.front();
  if (started.end.has_value()) started.end->synchronize();
  std::vector<StepMeasurement> measurements;
  for (const at::Tensor& of_range : started.measured) AppendMeasurements(of_range, measurements);
  started_.pop_front();
  return measurements;
}

std::string PackTraining::Save(int64_t member, const checkpoints::CheckpointHeader& header) {
  HostRows rows = {arena_.parameters(), arena_.first_moments(), arena_.second_moments()};
  // The copy to the host waits for the device, so that it has the rows after the last started step.
  for (at::Tensor& row : rows) row = row.select(0, member).to(at::kCPU).contiguous();
  return checkpoints::WriteTrialCheckpoint(arena_.layout(), header, BytesOf(rows));
}

absl::StatusOr<checkpoints::CheckpointHeader> PackTraining::Load(int64_t member,
                                                                 absl::string_view bytes,
                                                                 absl::string_view fingerprint) {
  const auto options = arena_.parameters().options().device(at::kCPU);
  const models::ParameterLayout& layout = arena_.layout();
  HostRows rows;
  for (at::Tensor& row : rows) row = at::zeros({layout.row_size()}, options);
  ASSIGN_OR_RETURN(checkpoints::CheckpointHeader header,
                   checkpoints::ReadTrialCheckpoint(bytes, layout, fingerprint, BytesOf(rows)));
  arena_.parameters().select(0, member).copy_(rows[0]);
  arena_.first_moments().select(0, member).copy_(rows[1]);
  arena_.second_moments().select(0, member).copy_(rows[2]);
  return header;
}

absl::Span<const uint64_t> PackTraining::DataSeeds(MemberRange range) const {
  return absl::MakeConstSpan(data_seeds_)
      .subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
}

at::Tensor PackTraining::EmptyOnHost(at::IntArrayRef shape, at::ScalarType type) const {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(device_.is_cuda()));
}

at::Tensor PackTraining::DeviceBlock(const StepKey& key, const at::Tensor& host) const {
  if (recorded_ != nullptr) return recorded_->Block(key);
  return device_.is_cpu() ? host : at::empty_like(host, at::TensorOptions(device_));
}

void PackTraining::Prepare(int64_t step, MemberRange range, Prepared& prepared) const {
  // Only their number is needed here; the rates are known when the step runs.
  const size_t step_numbers =
      optimizer_->StepNumbers(step, std::vector<double>(static_cast<size_t>(range.count))).size();
  prepared = {.step = step, .samples = MakeSamples(step, DataSeeds(range))};
  const StepShape shape =
      ShapeOf(prepared.samples.sized.batch, range.count, positions_.draws(),
              static_cast<int64_t>(step_numbers), positions_.each() && blueprint_.text == nullptr);
  prepared.key = {.range = range, .shape = shape};
  prepared.host = EmptyOnHost({BlockBytes(shape)}, at::kByte);
  WriteSamples(shape, prepared.samples.sized.batch, prepared.samples.sized.positions,
               prepared.host.mutable_data_ptr<uint8_t>());
  prepared.block = DeviceBlock(prepared.key, prepared.host);
  Upload(prepared.host, prepared.block, 0, SampleBytes(shape));
}

void PackTraining::TakePrepared(int64_t step, MemberRange range) {
  for (Prepared& prepared : prepared_) {
    if (prepared.step != step || prepared.key.range != range) continue;
    current_ = std::move(prepared);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  Prepare(step, range, current_);
  data_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void PackTraining::TrainRange(int64_t step, MemberRange range,
                              absl::Span<const double> learning_rates, Started& started) {
  TakePrepared(step, range);
  Prepared& prepared = current_;
  const StepShape& shape = prepared.key.shape;
  WriteStepNumbers(shape, optimizer_->StepNumbers(step, learning_rates),
                   prepared.host.mutable_data_ptr<uint8_t>());
  Upload(prepared.host, prepared.block, SampleBytes(shape), BlockBytes(shape));
  const auto work = [&](const at::Tensor& block) {
    return MakeStep(step, range, prepared.samples,
                    TensorsOf(shape, block, arena_.parameters().scalar_type()));
  };
  const at::Tensor measured = recorded_ != nullptr
                                  ? recorded_->Run(prepared.key, prepared.block, work)
                                  : work(prepared.block);
  // A copy of its own, because the next replay of the same recording overwrites `measured`.
  started.measured.push_back(EmptyOnHost({3, range.count}, at::kDouble));
  started.measured.back().copy_(measured, /*non_blocking=*/true);
  current_ = {};
}

at::Tensor PackTraining::MakeStep(int64_t step, MemberRange range, const StepSamples& samples,
                                  const StepTensors& inputs) {
  arena_.ZeroGradients(range.first, range.count);
  const absl::Span<const uint64_t> seeds = DataSeeds(range);
  const data::StepMeasures measures = AddGradients(Parameters(range), samples, inputs,
                                                   {.seeds = {seeds.begin(), seeds.end()},
                                                    .purpose = random::Purpose::kDropout,
                                                    .step = static_cast<uint64_t>(step)});

  const c10::NoGradGuard no_gradients;
  const models::Clipping clipping =
      models::MeasureGradients(arena_, range.first, range.count, blueprint_.training.clip_norm());
  optimizer_->Step(arena_, range.first, range.count, inputs.step_numbers, clipping.factors);
  return at::stack({measures.losses.detach().to(at::kDouble), measures.accuracies,
                    clipping.norms.to(at::kDouble)});
}

absl::StatusOr<std::unique_ptr<PackModel>> CreatePackModel(const Blueprint& blueprint,
                                                           absl::Span<const MemberSeeds> members,
                                                           const Device& device, Warn warn) {
  if (blueprint.text != nullptr)
    return CreateLanguagePackModel(blueprint, members, device, std::move(warn));
  return CreateNetworkPackModel(blueprint, members, device, std::move(warn));
}

}  // namespace lengthwise::worker::training
