#include "worker/training/step_inputs.h"

#include <cstring>
#include <vector>

#include "c10/util/Exception.h"

namespace lengthwise::worker::training {
namespace {

// Every array begins at a multiple of this.
constexpr int64_t kAlignment = 16;

struct Array {
  int64_t offset = 0;
  int64_t count = 0;
  at::ScalarType type = at::kLong;

  int64_t bytes() const { return count * static_cast<int64_t>(c10::elementSize(type)); }
};

// Missing arrays have a count of 0.
struct BlockLayout {
  explicit BlockLayout(const StepShape& shape) {
    const int64_t inputs = shape.rows * shape.tokens_per_row;
    const int64_t outputs = shape.rows * shape.outputs_per_row;
    tokens = Add(shape.tokens ? inputs : 0, at::kLong);
    numbers = Add(shape.numbers ? inputs : 0, at::kDouble);
    classes = Add(shape.classes ? outputs : 0, at::kLong);
    number_targets = Add(shape.classes ? 0 : outputs, at::kDouble);
    mask = Add(outputs, at::kByte);
    positions =
        Add(shape.own_positions ? inputs : shape.members * shape.draws * shape.tokens_per_row,
            at::kDouble);
    sample_bytes = end;
    step_numbers = Add(shape.step_numbers, at::kDouble);
  }

  Array Add(int64_t count, at::ScalarType type) {
    const Array array = {end, count, type};
    end += (array.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return array;
  }

  Array tokens, numbers, classes, number_targets, mask, positions, step_numbers;
  int64_t sample_bytes = 0;
  int64_t end = 0;
};

template <typename T>
void Write(const Array& array, absl::Span<const T> values, uint8_t* block) {
  TORCH_CHECK(static_cast<int64_t>(values.size()) == array.count, "a batch of another shape");
  // memcpy does not allow null pointers, even for size 0.
  if (!values.empty()) std::memcpy(block + array.offset, values.data(), sizeof(T) * values.size());
}

// Undefined if the array is empty.
at::Tensor View(const Array& array, at::IntArrayRef shape, const at::Tensor& block) {
  if (array.count == 0) return {};
  return block.narrow(0, array.offset, array.bytes()).view(array.type).view(shape);
}

at::Tensor Converted(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() ? tensor.to(dtype) : tensor;
}

}  // namespace

StepShape ShapeOf(const data::Batch& samples, int64_t members, int64_t draws, int64_t step_numbers,
                  bool own_positions) {
  return {.members = members,
          .rows = samples.rows,
          .tokens_per_row = samples.tokens_per_row,
          .outputs_per_row = samples.outputs_per_row,
          .draws = draws,
          .own_positions = own_positions,
          .step_numbers = step_numbers,
          .tokens = !samples.tokens.empty(),
          .numbers = !samples.numbers.empty(),
          .classes = !samples.targets.empty()};
}

int64_t BlockBytes(const StepShape& shape) { return BlockLayout(shape).end; }

int64_t SampleBytes(const StepShape& shape) { return BlockLayout(shape).sample_bytes; }

void WriteSamples(const StepShape& shape, const data::Batch& samples,
                  absl::Span<const double> positions, uint8_t* block) {
  const BlockLayout layout(shape);
  Write<int64_t>(layout.tokens, samples.tokens, block);
  Write<double>(layout.numbers, samples.numbers, block);
  Write<int64_t>(layout.classes, samples.targets, block);
  Write<double>(layout.number_targets, samples.number_targets, block);
  Write<uint8_t>(layout.mask, samples.mask, block);
  Write<double>(layout.positions, positions, block);
}

void WriteStepNumbers(const StepShape& shape, absl::Span<const double> numbers, uint8_t* block) {
  Write<double>(BlockLayout(shape).step_numbers, numbers, block);
}

StepTensors TensorsOf(const StepShape& shape, const at::Tensor& block, at::ScalarType dtype) {
  const BlockLayout layout(shape);
  const int64_t members = shape.members, rows = shape.rows / shape.members;
  const std::vector<int64_t> inputs = {members, rows, shape.tokens_per_row};
  const std::vector<int64_t> outputs = {members, rows, shape.outputs_per_row};
  const std::vector<int64_t> positions =
      shape.own_positions ? std::vector<int64_t>{members, 1, rows, shape.tokens_per_row}
                          : std::vector<int64_t>{members, shape.draws, shape.tokens_per_row};
  const at::Tensor mask = View(layout.mask, outputs, block);
  return {.batch = {.input = {.tokens = View(layout.tokens, inputs, block),
                              .numbers = Converted(View(layout.numbers, inputs, block), dtype)},
                    .classes = View(layout.classes, outputs, block),
                    .number_targets = Converted(View(layout.number_targets, outputs, block), dtype),
                    .mask = mask.defined() ? mask.view(at::kBool) : mask},
          .positions = View(layout.positions, positions, block),
          .step_numbers = View(layout.step_numbers, {shape.step_numbers}, block)};
}

}  // namespace lengthwise::worker::training
