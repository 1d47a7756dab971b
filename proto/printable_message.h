// Messages whose text is fit to be printed.
#ifndef LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_
#define LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_

#include "google/protobuf/message.h"

namespace lengthwise {

// Replaces every string field of `message` and of the messages in it, map values included, by
// platform::PrintableText of it. Fields of type bytes, keys of maps and google.protobuf.Any stay.
void MakePrintable(google::protobuf::Message& message);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_
