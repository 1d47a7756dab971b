#include "server/edge/header_block.h"

#include <cstdint>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

// RFC 9113, section 6.5.2.
constexpr size_t kFieldOverhead = 32;

// RFC 7541, section 5.2, without Huffman coding: the length in 7 bits or more, and the text.
void AppendText(absl::string_view text, std::string& to) {
  constexpr size_t kPrefix = 127;
  if (text.size() < kPrefix) {
    to += static_cast<char>(text.size());
  } else {
    to += static_cast<char>(kPrefix);
    size_t rest = text.size() - kPrefix;
    for (; rest >= 128; rest /= 128) to += static_cast<char>(rest % 128 + 128);
    to += static_cast<char>(rest);
  }
  absl::StrAppend(&to, text);
}

}  // namespace

HeaderReader::HeaderReader() {
  nghttp2_hd_inflater* inflater = nullptr;
  if (nghttp2_hd_inflate_new(&inflater) != 0) abort();  // no memory
  inflater_.reset(inflater);
}

absl::StatusOr<HeaderFields> HeaderReader::Read(absl::string_view block, size_t most) {
  HeaderFields fields;
  size_t bytes = 0;
  while (true) {
    nghttp2_nv field = {};
    int flags = 0;
    const ssize_t read = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags,
                                                reinterpret_cast<const uint8_t*>(block.data()),
                                                block.size(), /*in_final=*/1);
    if (read < 0) return absl::InvalidArgumentError("a header block is malformed");
    block.remove_prefix(read);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      bytes += field.namelen + field.valuelen + kFieldOverhead;
      if (bytes > most) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the headers of a call are larger than ", most, " bytes"));
      }
      fields.emplace_back(std::string(reinterpret_cast<char*>(field.name), field.namelen),
                          std::string(reinterpret_cast<char*>(field.value), field.valuelen));
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater_.get());
  return fields;
}

absl::string_view FieldOf(const HeaderFields& fields, absl::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "";
}

std::string WriteHeaderBlock(const HeaderFields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';  // RFC 7541, section 6.2.2: a literal without indexing
    AppendText(name, block);
    AppendText(value, block);
  }
  return block;
}

}  // namespace lengthwise::server
