#include "models/parameters/arena.h"

#include <cstddef>
#include <utility>

#include "ATen/core/grad_mode.h"
#include "ATen/ops/zeros.h"
#include "absl/types/span.h"

namespace lengthwise::models {

ParameterSet ParameterSet::Replaced(std::vector<at::Tensor> tensors) const {
  ParameterSet set;
  set.tensors_ = std::move(tensors);
  return set;
}

ParameterSet ParameterSet::Copies(int64_t member, int64_t count) const {
  ParameterSet set;
  for (const at::Tensor& tensor : tensors_) {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape[0] = count;
    set.tensors_.push_back(tensor.narrow(0, member, 1).expand(shape));
  }
  return set;
}

ParameterArena::ParameterArena(const ParameterLayout& layout, int64_t pack_size,
                               at::ScalarType dtype, at::Device device, const Allocate& allocate)
    : layout_(layout) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  const std::vector<int64_t> shape = {pack_size, layout.row_size()};
  for (at::Tensor* arena : {&parameters_, &gradients_}) {
    *arena = allocate != nullptr ? allocate(shape, options) : at::zeros(shape, options);
  }
  for (at::Tensor* arena : {&first_moments_, &second_moments_}) *arena = at::zeros(shape, options);
}

ParameterSet ParameterArena::Members(int64_t first, int64_t count) const {
  at::AutoGradMode with_gradients(true);
  // A single leaf for all parameters: backward collects their gradients and adds them to the rows
  // in one operation. Autograd accumulates into an existing gradient in place, so that it stays
  // this view of the arena. The leaf has its own version counter (variable_data), so that an
  // optimizer may write to the arena between two passes of the same set.
  at::Tensor rows =
      at::Tensor(parameters_.narrow(0, first, count).variable_data()).set_requires_grad(true);
  rows.mutable_grad() = gradients_.narrow(0, first, count);

  // Of a row's consecutive parts: each parameter, followed by its padding, if any.
  std::vector<int64_t> lengths;
  std::vector<size_t> parts;  // index in `lengths` of each parameter
  int64_t end = 0;
  for (const ParameterLayout::Slot& slot : layout_.slots()) {
    if (slot.offset > end) lengths.push_back(slot.offset - end);
    parts.push_back(lengths.size());
    lengths.push_back(slot.size);
    end = slot.offset + slot.size;
  }
  if (layout_.row_size() > end) lengths.push_back(layout_.row_size() - end);
  const std::vector<at::Tensor> tensors = rows.split_with_sizes(lengths, 1);
  ParameterSet set;
  set.tensors_.reserve(layout_.slots().size());
  for (size_t i = 0; i < layout_.slots().size(); ++i) {
    std::vector<int64_t> shape = {count};
    const std::vector<int64_t>& slot_shape = layout_.slots()[i].shape;
    shape.insert(shape.end(), slot_shape.begin(), slot_shape.end());
    set.tensors_.push_back(tensors[parts[i]].view(shape));
  }
  return set;
}

void ParameterArena::Initialize(int64_t member, uint64_t weight_seed) {
  at::Tensor row = at::zeros({layout_.row_size()}, parameters_.options().device(at::kCPU));
  const auto size = static_cast<size_t>(layout_.row_size());
  if (row.scalar_type() == at::kDouble) {
    InitializeRow(layout_, weight_seed, absl::MakeSpan(row.mutable_data_ptr<double>(), size));
  } else {
    InitializeRow(layout_, weight_seed, absl::MakeSpan(row.mutable_data_ptr<float>(), size));
  }
  parameters_.select(0, member).copy_(row);
}

void ParameterArena::ZeroGradients(int64_t first, int64_t count) {
  gradients_.narrow(0, first, count).zero_();
}

}  // namespace lengthwise::models
