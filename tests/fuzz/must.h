// Asserts a property of a fuzz target's input. A violation ends the process.
#ifndef LENGTHWISE_TESTS_FUZZ_MUST_H_
#define LENGTHWISE_TESTS_FUZZ_MUST_H_

#include <cstdio>
#include <cstdlib>

namespace lengthwise {

inline void Must(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::abort();
}

}  // namespace lengthwise

#endif  // LENGTHWISE_TESTS_FUZZ_MUST_H_
