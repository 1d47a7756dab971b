#include "worker/training/pack_parameters.h"

#include <type_traits>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/ops/zeros.h"
#include "c10/core/GradMode.h"
#include "platform/status_macros.h"

namespace lengthwise::worker::training {
namespace {

template <typename T>
checkpoints::TrialRows<T> Rows(at::Tensor& parameters, at::Tensor& first, at::Tensor& second) {
  const auto span = [](at::Tensor& row) {
    return absl::Span<T>(row.mutable_data_ptr<std::remove_const_t<T>>(),
                         static_cast<size_t>(row.numel()));
  };
  return {span(parameters), span(first), span(second)};
}

}  // namespace

at::Device DeviceOf(const Device& device) {
  return device.cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))
                     : at::Device(at::kCPU);
}

absl::StatusOr<std::unique_ptr<PackParameters>> PackParameters::Create(
    std::unique_ptr<models::ParameterLayout> layout, const Blueprint& blueprint,
    absl::Span<const MemberSeeds> members, at::Device device,
    const models::ParameterArena::Allocate& allocate) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<models::Optimizer> optimizer,
      models::CreateOptimizer(blueprint.optimizer.name, blueprint.optimizer.parameters));
  return std::unique_ptr<PackParameters>(new PackParameters(std::move(layout), std::move(optimizer),
                                                            blueprint, members, device, allocate));
}

PackParameters::PackParameters(std::unique_ptr<models::ParameterLayout> layout,
                               std::unique_ptr<models::Optimizer> optimizer,
                               const Blueprint& blueprint, absl::Span<const MemberSeeds> members,
                               at::Device device, const models::ParameterArena::Allocate& allocate)
    : layout_(std::move(layout)),
      optimizer_(std::move(optimizer)),
      clip_norm_(blueprint.training.clip_norm()),
      arena_(*layout_, static_cast<int64_t>(members.size()),
             blueprint.training.precision() == "float64" ? at::kDouble : at::kFloat, device,
             allocate) {
  for (size_t i = 0; i < members.size(); ++i) {
    arena_.Initialize(static_cast<int64_t>(i), members[i].weight_seed);
  }
}

at::Tensor PackParameters::Step(MemberRange range, const at::Tensor& step_numbers) {
  const c10::NoGradGuard no_gradients;
  const models::Clipping clipping =
      models::MeasureGradients(arena_, range.first, range.count, clip_norm_);
  optimizer_->Step(arena_, range.first, range.count, step_numbers, clipping.factors);
  return clipping.norms;
}

std::string PackParameters::Save(int64_t member, const checkpoints::CheckpointHeader& header) {
  // The copy to the host waits for the device, so that it has the rows after the last started step.
  const auto host_row = [&](const at::Tensor& arena) {
    return arena.select(0, member).to(at::kCPU).contiguous();
  };
  at::Tensor parameters = host_row(arena_.parameters());
  at::Tensor first = host_row(arena_.first_moments());
  at::Tensor second = host_row(arena_.second_moments());
  if (parameters.scalar_type() == at::kDouble) {
    return checkpoints::WriteTrialCheckpoint<double>(*layout_, header,
                                                     Rows<const double>(parameters, first, second));
  }
  return checkpoints::WriteTrialCheckpoint<float>(*layout_, header,
                                                  Rows<const float>(parameters, first, second));
}

absl::StatusOr<checkpoints::CheckpointHeader> PackParameters::Load(int64_t member,
                                                                   absl::string_view bytes,
                                                                   absl::string_view fingerprint) {
  const auto options = arena_.parameters().options().device(at::kCPU);
  at::Tensor parameters = at::zeros({layout_->row_size()}, options);
  at::Tensor first = at::zeros({layout_->row_size()}, options);
  at::Tensor second = at::zeros({layout_->row_size()}, options);
  ASSIGN_OR_RETURN(checkpoints::CheckpointHeader header,
                   parameters.scalar_type() == at::kDouble
                       ? checkpoints::ReadTrialCheckpoint<double>(
                             bytes, *layout_, fingerprint, Rows<double>(parameters, first, second))
                       : checkpoints::ReadTrialCheckpoint<float>(
                             bytes, *layout_, fingerprint, Rows<float>(parameters, first, second)));
  arena_.parameters().select(0, member).copy_(parameters);
  arena_.first_moments().select(0, member).copy_(first);
  arena_.second_moments().select(0, member).copy_(second);
  return header;
}

}  // namespace lengthwise::worker::training
