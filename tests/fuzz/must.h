// What a fuzz target says of its input: a property that does not hold ends the process.
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
