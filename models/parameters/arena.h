// Storage of a pack: parameters, gradients and Adam moments, each one flat tensor [P, N].
#ifndef LENGTHWISE_MODELS_PARAMETERS_ARENA_H_
#define LENGTHWISE_MODELS_PARAMETERS_ARENA_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Parameters of members [first, first + count) of a pack, as tensors [count, shape...]. They are
// views into the arenas: a backward pass adds to the arena's gradient rows in place, and an
// optimizer's writes to the arena show in the set. A set may serve any number of passes, one at a
// time.
class ParameterSet {
 public:
  const at::Tensor& operator[](ParameterId id) const { return tensors_[static_cast<size_t>(id)]; }
  int64_t members() const { return any().size(0); }
  // Gives the device and type of all. Every network has at least one parameter.
  const at::Tensor& any() const { return tensors_.front(); }

  // All parameters, in the layout's order.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  // The same members with other tensors: one per parameter, of the same shape.
  ParameterSet Replaced(std::vector<at::Tensor> tensors) const;
  // One member `count` times, as members of a set: views, whose gradients add up in the member's.
  ParameterSet Copies(int64_t member, int64_t count) const;

 private:
  friend class ParameterArena;
  std::vector<at::Tensor> tensors_;
};

// Owns the tensors. Not thread-safe. The layout must outlive the arena.
class ParameterArena {
 public:
  // Returns a tensor of zeros.
  using Allocate = std::function<at::Tensor(at::IntArrayRef shape, const at::TensorOptions&)>;

  // Starts with zeros. `dtype` is at::kFloat or at::kDouble. `allocate` makes the parameters and
  // the gradients, in this order; null: LibTorch does.
  ParameterArena(const ParameterLayout& layout, int64_t pack_size, at::ScalarType dtype,
                 at::Device device, const Allocate& allocate = nullptr);

  const ParameterLayout& layout() const { return layout_; }
  int64_t pack_size() const { return parameters_.size(0); }

  // Views of `count` members' parameters. On a CPU members train one at a time (count 1), so that a
  // pack is bit-identical to its members alone; on a GPU all train at once.
  ParameterSet Members(int64_t first, int64_t count) const;

  // [P, N] each; N = layout().row_size().
  at::Tensor& parameters() { return parameters_; }
  at::Tensor& gradients() { return gradients_; }
  at::Tensor& first_moments() { return first_moments_; }
  at::Tensor& second_moments() { return second_moments_; }

  // Fills row `member` of the parameters by InitializeRow (layout.h).
  void Initialize(int64_t member, uint64_t weight_seed);
  // Zeroes the gradients of members [first, first + count).
  void ZeroGradients(int64_t first, int64_t count);

 private:
  const ParameterLayout& layout_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  at::Tensor first_moments_;
  at::Tensor second_moments_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PARAMETERS_ARENA_H_
