// No LibTorch, whose exceptions it is about.
#ifndef LENGTHWISE_WORKER_TRAINING_EXCEPTION_TEXT_H_
#define LENGTHWISE_WORKER_TRAINING_EXCEPTION_TEXT_H_

#include <exception>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::worker::training {

// What people are told of it: LibTorch's messages go on for pages, with a stack trace.
inline std::string FirstLine(const std::exception& exception) {
  const absl::string_view text = exception.what();
  const std::string line(text.substr(0, text.find('\n')));
  return line.empty() ? "an exception without a message" : line;
}

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_EXCEPTION_TEXT_H_
