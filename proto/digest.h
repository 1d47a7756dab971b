// Serializes and hashes messages deterministically: equal messages give equal bytes on every
// machine, although protobuf by default writes map entries in any order.
#ifndef LENGTHWISE_PROTO_DIGEST_H_
#define LENGTHWISE_PROTO_DIGEST_H_

#include <string>

#include "google/protobuf/message_lite.h"

namespace lengthwise {

// Returns the serialized message with map entries sorted by key.
std::string SerializeDeterministically(const google::protobuf::MessageLite& message);

// Returns the SHA-256 of those bytes, 64 lower-case hexadecimal digits. Digests are stored (pack
// keys, requests, checkpoints), so the result must never change.
std::string Digest(const google::protobuf::MessageLite& message);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_DIGEST_H_
