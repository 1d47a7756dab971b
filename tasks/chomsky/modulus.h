// The parameter `modulus`, shared by the modular arithmetic tasks.
#ifndef LENGTHWISE_TASKS_CHOMSKY_MODULUS_H_
#define LENGTHWISE_TASKS_CHOMSKY_MODULUS_H_

#include <cstdint>

#include "catalogue/entry.h"

namespace lengthwise::tasks::chomsky {

// The upper limit keeps products of two residues within 32 bits.
inline catalogue::ParameterEntry ModulusParameter() {
  return {.name = "modulus",
          .default_value = int64_t{5},
          .documentation = "Modulus of all values. Its digits are the first tokens.",
          .minimum = 2,
          .maximum = 1000};
}

inline int32_t Modulus(const catalogue::Parameters& parameters) {
  return static_cast<int32_t>(parameters.Int("modulus"));
}

// The representative of `value` in {0, ..., modulus - 1}.
inline int32_t Residue(int32_t value, int32_t modulus) {
  const int32_t remainder = value % modulus;
  return remainder < 0 ? remainder + modulus : remainder;
}

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_MODULUS_H_
