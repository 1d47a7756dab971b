// Turns termination signals into a count, so that a command can clean up after Ctrl-C.
#ifndef LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_
#define LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_

namespace lengthwise::client {

// While a guard exists, SIGINT, SIGTERM, SIGHUP and SIGPIPE are counted and do not end the process.
// Under nohup SIGHUP stays ignored, and so does SIGPIPE if it was. After a SIGPIPE (the reader of
// the output, such as `head`, has ended), it is ignored once the outermost guard is gone. For the
// main thread. Guards may be nested; all share one count.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Signals received since the outermost guard was created.
  int count() const;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_INTERRUPT_H_
