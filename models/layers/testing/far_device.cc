#include "models/layers/testing/far_device.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "ATen/ATen.h"
#include "ATen/EmptyTensor.h"
#include "ATen/detail/PrivateUse1HooksInterface.h"
#include "ATen/native/CPUFallback.h"
#include "c10/core/Allocator.h"
#include "c10/core/impl/DeviceGuardImplInterface.h"
#include "torch/library.h"

namespace lengthwise::models {
namespace {

const c10::Device kFarDevice(c10::DeviceType::PrivateUse1, 0);
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

std::mutex mutex;
std::set<std::string> waits;
// True while the CPU computes an operation for the device, whose internal copies do not count as
// waits.
thread_local bool computing = false;

void AddWait(const std::string& name) {
  if (computing) return;
  const std::lock_guard<std::mutex> lock(mutex);
  waits.insert(name);
}

class FarAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = bytes == 0 ? nullptr : std::malloc(bytes);
    return {memory, memory, &std::free, kFarDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

FarAllocator* TheAllocator() {
  static auto& allocator = *new FarAllocator();
  return &allocator;
}

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                 std::optional<bool> /*pin_memory*/, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, TheAllocator(), kKeys, type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                        std::optional<at::Device> /*device*/, std::optional<bool> /*pin_memory*/) {
  return at::detail::empty_strided_generic(size, stride, TheAllocator(), kKeys,
                                           type.value_or(at::kFloat));
}

// Returns the same memory as a CPU tensor.
at::Tensor OnCpu(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  if (from.is_cpu() || to.is_cpu()) AddWait(from.is_cpu() ? "from the host" : "to the host");
  OnCpu(to).copy_(OnCpu(from));
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    const at::Tensor memory =
        at::detail::empty_generic(from.sizes(), TheAllocator(), kKeys, to.scalar_type(), {});
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(memory.storage());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return CopyFrom(from, to, /*non_blocking=*/false);
}

// Returns true if an operation reads values on the device to determine the size of its result or to
// return them to the host. An index of booleans does; an index of places does not.
bool Waits(const std::string& name, const torch::jit::Stack& stack) {
  static const auto& waiting = *new std::set<std::string>{"aten::_local_scalar_dense",
                                                          "aten::nonzero",
                                                          "aten::masked_select",
                                                          "aten::_unique2",
                                                          "aten::unique_dim",
                                                          "aten::equal",
                                                          "aten::is_nonzero",
                                                          "aten::repeat_interleave",
                                                          "aten::bincount"};
  if (waiting.contains(name)) return true;
  if (name != "aten::index" && name != "aten::index_put_" && name != "aten::_index_put_impl_") {
    return false;
  }
  for (const c10::IValue& input : stack) {
    if (!input.isList()) continue;
    for (const c10::IValue& index : input.toListRef()) {
      if (index.isTensor() && index.toTensor().scalar_type() == at::kBool) return true;
    }
  }
  return false;
}

void Compute(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const std::string& name = operation.schema().name();
  if (Waits(name, *stack)) AddWait(name);
  const bool before = std::exchange(computing, true);
  at::native::cpu_fallback(operation, stack);
  computing = before;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Compute>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("_copy_from", &CopyFrom);
  library.impl("_copy_from_and_resize", &CopyFromAndResize);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
}

// LibTorch's backward threads query whether the device exists.
struct FarHooks : at::PrivateUse1HooksInterface {
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
};

// A single synchronous stream: work is done when a call returns.
struct FarGuard : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return kFarDevice; }
  c10::Device getDevice() const override { return kFarDevice; }
  c10::Stream getStream(c10::Device /*device*/) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kFarDevice);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  void record(void** /*event*/, const c10::Stream& /*stream*/, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override { return true; }
  void destroyEvent(void* /*event*/, c10::DeviceIndex /*device*/) const noexcept override {}
  bool queryStream(const c10::Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const c10::Stream& /*stream*/) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, FarGuard);

}  // namespace

c10::Device FarDevice() {
  [[maybe_unused]] static const bool registered = [] {
    c10::register_privateuse1_backend("far");
    at::RegisterPrivateUse1HooksInterface(new FarHooks);
    return true;
  }();
  return kFarDevice;
}

std::set<std::string> TakeWaits() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(waits, {});
}

}  // namespace lengthwise::models
