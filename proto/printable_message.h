// Escapes untrusted text in messages for printing.
#ifndef LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_
#define LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_

#include "google/protobuf/message.h"

namespace lengthwise {

// Replaces every string field of `message` and its nested messages, including map values, by its
// platform::PrintableText. Leaves bytes fields, map keys and google.protobuf.Any unchanged.
void MakePrintable(google::protobuf::Message& message);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_PRINTABLE_MESSAGE_H_
