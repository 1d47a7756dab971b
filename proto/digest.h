// Messages as bytes that are the same for equal messages, on every machine: protobuf writes maps in
// any order unless it is told otherwise.
#ifndef LENGTHWISE_PROTO_DIGEST_H_
#define LENGTHWISE_PROTO_DIGEST_H_

#include <string>

#include "google/protobuf/message_lite.h"

namespace lengthwise {

// Returns the serialized message, with the entries of its maps in the order of their keys.
std::string SerializeDeterministically(const google::protobuf::MessageLite& message);

// Returns the SHA-256 of those bytes, 64 lower-case hexadecimal digits. Digests are stored
// (pack keys, requests, checkpoints): a change of them breaks what is stored.
std::string Digest(const google::protobuf::MessageLite& message);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_DIGEST_H_
