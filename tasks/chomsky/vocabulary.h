// The parameter `vocabulary`, shared by the string tasks.
#ifndef LENGTHWISE_TASKS_CHOMSKY_VOCABULARY_H_
#define LENGTHWISE_TASKS_CHOMSKY_VOCABULARY_H_

#include <cstdint>

#include "catalogue/entry.h"

namespace lengthwise::tasks::chomsky {

inline catalogue::ParameterEntry VocabularyParameter(int64_t default_value) {
  return {.name = "vocabulary",
          .default_value = default_value,
          .documentation = "Number of distinct tokens.",
          .minimum = 2,
          .maximum = 1000};
}

inline int32_t Vocabulary(const catalogue::Parameters& parameters) {
  return static_cast<int32_t>(parameters.Int("vocabulary"));
}

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_VOCABULARY_H_
