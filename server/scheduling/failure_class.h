// FailureClass: recognizes that two failures have the same cause.
#ifndef LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_
#define LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::server {

// The reason without the parts that differ between failures of one cause: each word that contains a
// digit (a count, a size, an address, a host's number) becomes "#". At most 200 bytes.
std::string FailureClass(absl::string_view reason);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_FAILURE_CLASS_H_
