// The fortified longjmp aborts on a jump to another stack.
#undef _FORTIFY_SOURCE

#include "models/kernels/testing/simt_emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/kernels/simt.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lengthwise::kernels::simt {
namespace {

constexpr size_t kStackBytes = size_t{1} << 16;

// Tells sanitizers about each switch to another stack.
class StackSwitch {
 public:
#if defined(__SANITIZE_ADDRESS__)
  void Start(const StackSwitch& /*to*/, const void* bottom, size_t size) {
    __sanitizer_start_switch_fiber(&fake_stack_, bottom, size);
  }
  // Writes the bounds of the stack that was left.
  void Finish(const void** bottom, size_t* size) {
    __sanitizer_finish_switch_fiber(fake_stack_, bottom, size);
  }

 private:
  void* fake_stack_ = nullptr;
#elif defined(__SANITIZE_THREAD__)
  void BeCurrent() { fibre_ = __tsan_get_current_fiber(); }
  void Create() { fibre_ = __tsan_create_fiber(0); }
  void Destroy() { __tsan_destroy_fiber(fibre_); }
  void Start(const StackSwitch& to, const void*, size_t) { __tsan_switch_to_fiber(to.fibre_, 0); }
  void Finish(const void**, size_t*) {}

 private:
  void* fibre_ = nullptr;
#else
  void Start(const StackSwitch&, const void*, size_t) {}
  void Finish(const void**, size_t*) {}
#endif
};

enum class State { kRunnable, kAtBarrier, kTogether, kEnded };

// One thread of a block. Its stack is reused from block to block and kernel to kernel.
struct Fibre {
#if defined(__SANITIZE_THREAD__)
  Fibre() { stack_switch.Create(); }
  ~Fibre() { stack_switch.Destroy(); }
#endif

  int index = 0;
  State state = State::kEnded;
  // Copies that it began and has not waited for.
  struct Copy {
    const void* from;
    bool there;
    void* to;
  };
  std::vector<Copy> copies;
  // Pending Together call.
  bool (*run)(void* const* lanes) = nullptr;
  void* operands = nullptr;

  std::unique_ptr<char[]> stack;
  ucontext_t start;
  bool started = false;
  jmp_buf place;
  StackSwitch stack_switch;
};

struct SharedArray {
  float* data = nullptr;
  int count = 0;
};

}  // namespace

class Emulator::Device {
 public:
  explicit Device(const Options& options) : options_(options), random_(options.seed) {}
  ~Device() { ReleaseShared(); }

  void Run(int64_t blocks, int threads, int64_t shared_bytes, const std::function<void()>& kernel);

  void SetProblem(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }
  int64_t launches() const { return launches_; }
  int64_t largest_shared_bytes() const { return largest_shared_bytes_; }

  // State of the running thread.
  int thread() const { return current_->index; }
  int threads() const { return threads_; }
  int64_t block() const { return block_; }
  void WaitAtBarrier() { Leave(State::kAtBarrier); }
  void Together(bool (*run)(void* const* lanes), void* operands) {
    current_->run = run;
    current_->operands = operands;
    Leave(State::kTogether);
  }
  float* TakeShared(int number, int count);
  // They take place when they are waited for, not before.
  void StartCopy(const void* from, bool there, void* to) {
    current_->copies.push_back({from, there, to});
  }
  void WaitForCopies();

 private:
  static void Enter();
  void PrepareFibres();
  static void PrepareStart(Fibre& fibre);
  void RunBlock();
  void Continue(Fibre& fibre);
  void Leave(State state);
  bool Release();
  bool ReleaseWarp(int first);
  void ReleaseShared();
  template <typename T>
  void PutInOrder(std::vector<T>& items) {
    if (options_.order == Order::kBackward) std::reverse(items.begin(), items.end());
    if (options_.order == Order::kShuffled) std::shuffle(items.begin(), items.end(), random_);
  }

  const Options options_;
  std::mt19937_64 random_;
  std::string problem_;
  int64_t launches_ = 0;
  int64_t largest_shared_bytes_ = 0;

  // Current launch.
  const std::function<void()>* kernel_ = nullptr;
  int threads_ = 0;
  int64_t shared_bytes_ = 0;
  // Current block.
  int64_t block_ = 0;
  std::vector<SharedArray> shared_;
  int64_t shared_taken_ = 0;

  std::vector<std::unique_ptr<Fibre>> fibres_;
  Fibre* current_ = nullptr;
  jmp_buf scheduler_;
  StackSwitch scheduler_switch_;
  const void* scheduler_bottom_ = nullptr;
  size_t scheduler_size_ = 0;
};

namespace {

// The running emulator. Tests run one at a time.
Emulator::Device* running = nullptr;

}  // namespace

void Emulator::Device::Run(int64_t blocks, int threads, int64_t shared_bytes,
                           const std::function<void()>& kernel) {
  if (!problem_.empty()) return;
  ++launches_;
  largest_shared_bytes_ = std::max(largest_shared_bytes_, shared_bytes);
  if (threads % kWarp != 0 || threads <= 0 || threads > 1024 || blocks <= 0 ||
      blocks > std::numeric_limits<int32_t>::max()) {
    return SetProblem(absl::StrCat("invalid launch: ", blocks, " blocks of ", threads, " threads"));
  }
  kernel_ = &kernel;
  threads_ = threads;
  shared_bytes_ = shared_bytes;
  PrepareFibres();
#if defined(__SANITIZE_THREAD__)
  scheduler_switch_.BeCurrent();
#endif
  running = this;
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  PutInOrder(order);
  for (const int64_t block : order) {
    block_ = block;
    RunBlock();
    ReleaseShared();
    if (!problem_.empty()) break;
  }
  running = nullptr;
}

void Emulator::Device::PrepareFibres() {
  while (fibres_.size() < static_cast<size_t>(threads_)) {
    fibres_.push_back(std::make_unique<Fibre>());
    fibres_.back()->index = static_cast<int>(fibres_.size()) - 1;
    fibres_.back()->stack = std::make_unique<char[]>(kStackBytes);
    PrepareStart(*fibres_.back());
  }
}

void Emulator::Device::PrepareStart(Fibre& fibre) {
  getcontext(&fibre.start);
  fibre.start.uc_stack.ss_sp = fibre.stack.get();
  fibre.start.uc_stack.ss_size = kStackBytes;
  fibre.start.uc_link = nullptr;
  makecontext(&fibre.start, &Device::Enter, 0);
}

// Entry point of a fibre. It never returns: the next block resumes it after Leave.
void Emulator::Device::Enter() {
  running->current_->stack_switch.Finish(&running->scheduler_bottom_, &running->scheduler_size_);
  for (;;) {
    (*running->kernel_)();
    running->Leave(State::kEnded);
  }
}

// Switches stacks by setjmp and longjmp: swapcontext makes a system call for the signal mask, and
// some tests switch millions of times.
void Emulator::Device::Continue(Fibre& fibre) {
  current_ = &fibre;
  scheduler_switch_.Start(fibre.stack_switch, fibre.stack.get(), kStackBytes);
  if (_setjmp(scheduler_) == 0) {
    if (fibre.started) _longjmp(fibre.place, 1);
    fibre.started = true;
    setcontext(&fibre.start);
  }
  scheduler_switch_.Finish(nullptr, nullptr);
}

void Emulator::Device::Leave(State state) {
  Fibre* fibre = current_;
  fibre->state = state;
  fibre->stack_switch.Start(scheduler_switch_, scheduler_bottom_, scheduler_size_);
  if (_setjmp(fibre->place) == 0) _longjmp(scheduler_, 1);
  // The scheduler's stack does not move, but another function at another depth may have resumed
  // this fibre.
  fibre->stack_switch.Finish(&scheduler_bottom_, &scheduler_size_);
}

void Emulator::Device::RunBlock() {
  std::vector<int> order(static_cast<size_t>(threads_));
  std::iota(order.begin(), order.end(), 0);
  for (int t = 0; t < threads_; ++t) fibres_[static_cast<size_t>(t)]->state = State::kRunnable;
  for (;;) {
    PutInOrder(order);
    for (const int t : order) {
      Fibre& fibre = *fibres_[static_cast<size_t>(t)];
      if (fibre.state == State::kRunnable) Continue(fibre);
    }
    const bool ended = std::all_of(order.begin(), order.end(), [&](int t) {
      return fibres_[static_cast<size_t>(t)]->state == State::kEnded;
    });
    if (ended || !problem_.empty()) break;
    if (!Release()) {
      SetProblem(absl::StrCat("threads of block ", block_,
                              " wait at different places, or for threads that have ended"));
      break;
    }
  }
  // After an error some fibres are suspended half-way. Discard them, so that the next launch starts
  // with fresh ones.
  for (int t = 0; t < threads_; ++t) {
    if (fibres_[static_cast<size_t>(t)]->state != State::kEnded) {
      fibres_.clear();
      break;
    }
  }
}

// Resumes threads for which those that they wait for have come. Returns false if none can continue.
bool Emulator::Device::Release() {
  bool released = false, all_at_barrier = true;
  for (int first = 0; first < threads_; first += kWarp) {
    if (ReleaseWarp(first)) released = true;
  }
  for (int t = 0; t < threads_; ++t) {
    all_at_barrier = all_at_barrier && fibres_[static_cast<size_t>(t)]->state == State::kAtBarrier;
  }
  if (!all_at_barrier) return released;
  for (int t = 0; t < threads_; ++t) fibres_[static_cast<size_t>(t)]->state = State::kRunnable;
  return true;
}

bool Emulator::Device::ReleaseWarp(int first) {
  const auto run = fibres_[static_cast<size_t>(first)]->run;
  void* lanes[kWarp];
  for (int lane = 0; lane < kWarp; ++lane) {
    const Fibre& fibre = *fibres_[static_cast<size_t>(first + lane)];
    if (fibre.state != State::kTogether || fibre.run != run) return false;
    lanes[lane] = fibre.operands;
  }
  if (!run(lanes)) return false;
  for (int t = first; t < first + kWarp; ++t) {
    fibres_[static_cast<size_t>(t)]->state = State::kRunnable;
  }
  return true;
}

float* Emulator::Device::TakeShared(int number, int count) {
  if (static_cast<size_t>(number) == shared_.size()) {
    shared_taken_ += static_cast<int64_t>(sizeof(float)) * ((count + 3) / 4 * 4);
    if (shared_taken_ > shared_bytes_) {
      SetProblem(absl::StrCat("shared arrays of ", shared_taken_, " bytes exceed the launch's ",
                              shared_bytes_, " bytes of shared memory"));
    }
    void* memory = nullptr;
    if (posix_memalign(&memory, sizeof(Float4), sizeof(float) * static_cast<size_t>(count)) != 0) {
      std::abort();
    }
    auto* data = static_cast<float*>(memory);
    std::fill_n(data, count, std::numeric_limits<float>::quiet_NaN());
    shared_.push_back({.data = data, .count = count});
  }
  const SharedArray& array = shared_[static_cast<size_t>(number)];
  if (array.count != count) SetProblem("threads of a block take different shared arrays");
  return array.data;
}

void Emulator::Device::WaitForCopies() {
  constexpr size_t kBytes = 16;
  for (const Fibre::Copy& copy : current_->copies) {
    if (reinterpret_cast<uintptr_t>(copy.from) % kBytes != 0 ||
        reinterpret_cast<uintptr_t>(copy.to) % kBytes != 0) {
      ReportOddAddress();
    }
    if (copy.there) {
      std::memcpy(copy.to, copy.from, kBytes);
    } else {
      std::memset(copy.to, 0, kBytes);
    }
  }
  current_->copies.clear();
}

void Emulator::Device::ReleaseShared() {
  for (const SharedArray& array : shared_) std::free(array.data);
  shared_.clear();
  shared_taken_ = 0;
}

int Thread() { return running->thread(); }
int Threads() { return running->threads(); }
int64_t Block() { return running->block(); }
void Barrier() { running->WaitAtBarrier(); }
void Together(bool (*run)(void* const* lanes), void* operands) { running->Together(run, operands); }

namespace {

struct Addends {
  int mask;
  float* numbers;
  int count;
};

bool RunAddOther(void* const* lanes) {
  const auto of = [&](int lane) -> const Addends& { return *static_cast<Addends*>(lanes[lane]); };
  const int mask = of(0).mask, count = of(0).count;
  std::vector<float> sums;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (of(lane).mask != mask || of(lane).count != count) return false;
    for (int k = 0; k < count; ++k) {
      sums.push_back(of(lane).numbers[k] + of(lane ^ mask).numbers[k]);
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    std::copy_n(&sums[static_cast<size_t>(lane * count)], count, of(lane).numbers);
  }
  return true;
}

}  // namespace

void AddOther(int mask, float* numbers, int count) {
  Addends mine = {mask, numbers, count};
  Together(&RunAddOther, &mine);
}

float* TakeSharedArray(int number, int count) { return running->TakeShared(number, count); }

void StartCopy(const void* from, bool there, void* to) { running->StartCopy(from, there, to); }
void WaitForCopies() { running->WaitForCopies(); }

void ReportOddAddress() { running->SetProblem("misaligned vector load or store"); }

Emulator::Emulator(const Options& options) : device_(std::make_unique<Device>(options)) {}
Emulator::~Emulator() = default;

const std::string& Emulator::problem() const { return device_->problem(); }
int64_t Emulator::launches() const { return device_->launches(); }
int64_t Emulator::largest_shared_bytes() const { return device_->largest_shared_bytes(); }

void Emulator::Run(int64_t blocks, int threads, int64_t shared_bytes,
                   const std::function<void()>& kernel) {
  device_->Run(blocks, threads, shared_bytes, kernel);
}

}  // namespace lengthwise::kernels::simt
