// TFRecord framing, which event files have: length, masked checksum of the length, bytes, masked
// checksum of the bytes (tensorflow/core/lib/io/record_writer.h).
#ifndef LENGTHWISE_CLIENT_EXPORT_RECORD_FILE_H_
#define LENGTHWISE_CLIENT_EXPORT_RECORD_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::client {

// CRC-32C (Castagnoli) as RFC 3720, appendix B.4, computes it. Debian 12 packages no library for
// it.
uint32_t Crc32c(absl::string_view data);

// One record, framed.
std::string FramedRecord(absl::string_view data);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_RECORD_FILE_H_
