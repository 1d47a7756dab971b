// Owns file descriptors, raises their limit, and prepares a process that opens some.
#ifndef LENGTHWISE_PLATFORM_DESCRIPTORS_H_
#define LENGTHWISE_PLATFORM_DESCRIPTORS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace lengthwise::platform {

// Closes its descriptor when destroyed.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Descriptor old(std::exchange(descriptor_, other.release()));
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  // Releases ownership; the caller closes the descriptor.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Returns the current soft limit of open descriptors; Linux's default if it cannot be read.
inline int64_t DescriptorLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<int64_t>(limit.rlim_cur) : 1024;
}

// Raises the soft limit of open descriptors to the hard one. Returns the resulting limit.
inline int64_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return DescriptorLimit();
}

// Call it first in main. Opens /dev/null for standard streams that are closed (`2>&-`): otherwise
// the next file would take a stream's number, and log lines would be written into it. Standard
// output stays unwritable, so that lost output is an error. Ignores SIGXFSZ, so that a file beyond
// `ulimit -f` fails as one on a full disk does.
inline void PrepareFiles() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened =
        open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
  signal(SIGXFSZ, SIG_IGN);
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_DESCRIPTORS_H_
