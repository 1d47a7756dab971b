// Ctrl-C, noticed instead of obeyed.
#ifndef LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_
#define LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_

namespace lengthwise::client {

// While it lives, SIGINT, SIGTERM and SIGHUP are counted and do not end the process. For the main
// thread. Guards may be nested; all share one count.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Signals since the outermost guard was made.
  int count() const;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_
