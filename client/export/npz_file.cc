#include "client/export/npz_file.h"

#include <zlib.h>

#include <bit>
#include <cassert>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lengthwise::client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");

constexpr uint16_t kVersion = 20;      // of the ZIP format that a reader needs
constexpr uint16_t kFirstDate = 0x21;  // 1980-01-01: the same arrays give the same bytes
constexpr uint64_t kMaxBytes = std::numeric_limits<uint32_t>::max();

template <typename T>
void Put(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

// Version 1.0: magic, version, the header's length, the header as a Python literal, padded so that
// the data starts at a multiple of 64.
std::string NpyHeader(absl::string_view type, const std::vector<int64_t>& shape) {
  std::string header =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  constexpr size_t kBefore = 10;
  header.append(63 - (kBefore + header.size()) % 64, ' ');
  header += '\n';
  std::string npy("\x93NUMPY\x01\x00", 8);
  Put(static_cast<uint16_t>(header.size()), npy);
  return npy + header;
}

template <typename T>
absl::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// What the local header and the directory share: version to size.
void PutCommon(uint32_t crc, uint32_t size, size_t name_size, std::string& out) {
  Put(kVersion, out);
  Put(uint16_t{0}, out);  // flags
  Put(uint16_t{0}, out);  // stored, not compressed
  Put(uint16_t{0}, out);  // time
  Put(kFirstDate, out);
  Put(crc, out);
  Put(size, out);
  Put(size, out);
  Put(static_cast<uint16_t>(name_size), out);
  Put(uint16_t{0}, out);  // extra field
}

}  // namespace

absl::Status NpzFile::Add(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
  return AddBytes(name, "<f4", shape, sizeof(float), BytesOf(values));
}

absl::Status NpzFile::Add(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<double>& values) {
  return AddBytes(name, "<f8", shape, sizeof(double), BytesOf(values));
}

absl::Status NpzFile::Add(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& values) {
  return AddBytes(name, "<i8", shape, sizeof(int64_t), BytesOf(values));
}

absl::Status NpzFile::AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                                absl::string_view bytes) {
  return AddBytes(name, "<f4", shape, sizeof(float), bytes);
}

absl::Status NpzFile::AddBytes(const std::string& name, absl::string_view type,
                               const std::vector<int64_t>& shape, size_t item_size,
                               absl::string_view bytes) {
  [[maybe_unused]] size_t expected = item_size;
  for (const int64_t extent : shape) expected *= static_cast<size_t>(extent);
  assert(bytes.size() == expected);
  Entry entry{.name = name + ".npy"};
  const std::string header = NpyHeader(type, shape);
  if (entries_.size() >= 65'535 || offset_ + header.size() + bytes.size() + 1024 > kMaxBytes) {
    return absl::FailedPreconditionError(
        "the trial's arrays are more than an .npz file takes (4 GiB); export it as json, or record "
        "fewer or shorter attention maps");
  }
  entry.offset = static_cast<uint32_t>(offset_);
  entry.size = static_cast<uint32_t>(header.size() + bytes.size());
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  entry.crc = static_cast<uint32_t>(crc);
  std::string local("PK\x03\x04", 4);
  PutCommon(entry.crc, entry.size, entry.name.size(), local);
  local += entry.name;
  absl::Status status = Append(local);
  if (status.ok()) status = Append(header);
  if (status.ok()) status = Append(bytes);
  entries_.push_back(std::move(entry));
  return status;
}

absl::Status NpzFile::Finish() {
  const uint64_t start = offset_;
  for (const Entry& entry : entries_) {
    std::string central("PK\x01\x02", 4);
    Put(kVersion, central);  // of the writer
    PutCommon(entry.crc, entry.size, entry.name.size(), central);
    Put(uint16_t{0}, central);  // comment
    Put(uint16_t{0}, central);  // disk
    Put(uint16_t{0}, central);  // internal attributes
    Put(uint32_t{0}, central);  // external attributes
    Put(entry.offset, central);
    central += entry.name;
    if (absl::Status status = Append(central); !status.ok()) return status;
  }
  std::string end("PK\x05\x06", 4);
  Put(uint16_t{0}, end);  // disk
  Put(uint16_t{0}, end);  // disk of the directory
  Put(static_cast<uint16_t>(entries_.size()), end);
  Put(static_cast<uint16_t>(entries_.size()), end);
  Put(static_cast<uint32_t>(offset_ - start), end);
  Put(static_cast<uint32_t>(start), end);
  Put(uint16_t{0}, end);  // comment
  return Append(end);
}

absl::Status NpzFile::Append(absl::string_view bytes) {
  offset_ += bytes.size();
  return file_.Append(bytes);
}

}  // namespace lengthwise::client
