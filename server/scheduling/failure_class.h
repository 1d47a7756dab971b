// When two failures are the same failure.
#ifndef LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_
#define LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::server {

// The reason without what differs between two failures of one cause: every word with a digit in it
// (a count, a size, an address, a host's number) becomes "#". At most 200 bytes of it.
std::string FailureClass(absl::string_view reason);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_
