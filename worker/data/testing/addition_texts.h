// Texts of decimal addition for tests: numbers of 2 to 9 digits, 40 a batch, in passes of at most
// 256 tokens.
#ifndef LENGTHWISE_WORKER_DATA_TESTING_ADDITION_TEXTS_H_
#define LENGTHWISE_WORKER_DATA_TESTING_ADDITION_TEXTS_H_

#include <cstdint>
#include <memory>

#include "catalogue/entry.h"
#include "proto/specification.pb.h"
#include "tasks/catalogue.h"
#include "tasks/text_task.h"
#include "worker/data/text_examples.h"

namespace lengthwise::worker::data {

inline constexpr int64_t kSequences = 40;
inline constexpr int64_t kTokens = 256;

inline v1::Training AdditionTraining() {
  v1::Training training;
  training.set_batch_size(kSequences);
  training.mutable_lengths()->set_min(2);
  training.mutable_lengths()->set_max(9);
  training.mutable_packing()->set_tokens(kTokens);
  return training;
}

inline TextExamples AdditionTexts(const v1::Training& training = AdditionTraining(),
                                  const catalogue::Parameters& parameters = {},
                                  bool marks_prompts = false) {
  auto task = tasks::CreateTask("decimal_addition", parameters).value();
  return TextExamples(
      std::unique_ptr<tasks::TextTask>(dynamic_cast<tasks::TextTask*>(task.release())), training,
      marks_prompts);
}

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TESTING_ADDITION_TEXTS_H_
