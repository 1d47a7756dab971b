#include "client/export/record_file.h"

#include <array>

namespace lengthwise::client {
namespace {

// 0x1EDC6F41 with its bits reversed.
constexpr uint32_t kPolynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8; }

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
  return bytes;
}

}  // namespace

uint32_t Crc32c(absl::string_view data) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : data) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return crc ^ 0xFFFFFFFF;
}

std::string FramedRecord(absl::string_view data) {
  std::string record = LittleEndian<uint64_t>(data.size());
  record += LittleEndian(Masked(Crc32c(record)));
  record.append(data.data(), data.size());
  record += LittleEndian(Masked(Crc32c(data)));
  return record;
}

}  // namespace lengthwise::client
