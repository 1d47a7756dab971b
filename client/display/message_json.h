// Writes messages of the API as JSON.
#ifndef LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_
#define LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace lengthwise::client {

// Returns the message in proto3's JSON mapping with the field names of proto/, on one line or, with
// `indented`, on several. Map entries are sorted by key, so that equal messages give equal text.
// INTERNAL if JSON cannot represent it, such as a timestamp beyond the year 9999.
absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message,
                                        bool indented = false);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_MESSAGE_JSON_H_
