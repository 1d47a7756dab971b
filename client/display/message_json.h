// Messages of the API as JSON.
#ifndef LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_
#define LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace lengthwise::client {

// The message in proto3's JSON mapping with the fields' names of proto/, on one line, or indented
// with `indented`. Entries of maps are sorted by key, so that equal messages give equal text.
// INTERNAL where JSON cannot hold it, as a timestamp beyond the year 9999.
absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message,
                                        bool indented = false);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_
