#include "models/parameters/safetensors.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "platform/status_macros.h"

namespace lengthwise::models {
namespace {

using Json = nlohmann::json;

constexpr size_t kSizeBytes = 8;
// Limit of the reference implementation: a longer header is an attack, not a model.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr absl::string_view kMetadataKey = "__metadata__";

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a valid safetensors file: ", what));
}

// Little endian, whatever the machine's byte order.
void AppendUint64(uint64_t value, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

uint64_t ReadUint64(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kSizeBytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

std::optional<DataType> DataTypeOfName(absl::string_view name) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat64}) {
    if (name == DataTypeName(type)) return type;
  }
  return std::nullopt;
}

// Bytes of a tensor; nothing if they exceed `limit`, which also prevents overflow of the product.
std::optional<uint64_t> TensorBytes(const std::vector<int64_t>& shape, DataType type,
                                    uint64_t limit) {
  uint64_t bytes = static_cast<uint64_t>(DataTypeSize(type));
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  for (const int64_t extent : shape) {
    if (bytes > limit / static_cast<uint64_t>(extent)) return std::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

// Checks one entry of the header against the `data` that follows it.
absl::StatusOr<std::pair<uint64_t, TensorView>> ReadEntry(const std::string& name,
                                                          const Json& entry,
                                                          absl::string_view data) {
  const auto damaged = [&](absl::string_view what) {
    return Damaged(absl::StrCat("tensor \"", name, "\" ", what));
  };
  if (!entry.is_object()) return damaged("is not described by an object");
  const auto type_field = entry.find("dtype");
  if (type_field == entry.end() || !type_field->is_string()) return damaged("has no dtype");
  const std::string& type_name = type_field->get_ref<const std::string&>();
  const std::optional<DataType> type = DataTypeOfName(type_name);
  if (!type.has_value()) {
    return damaged(absl::StrCat("has dtype \"", type_name, "\"; F32 and F64 are accepted"));
  }

  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array()) return damaged("has no shape");
  TensorView view{.name = name, .type = *type};
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX) {
      return damaged("has a shape that is not made of non-negative integers");
    }
    view.shape.push_back(extent.get<int64_t>());
  }

  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned()) {
    return damaged("has no data_offsets [begin, end]");
  }
  const uint64_t begin = (*offsets)[0].get<uint64_t>();
  const uint64_t end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    return damaged(absl::StrCat("lies at bytes ", begin, " to ", end, " of ", data.size(),
                                "; is the file truncated?"));
  }
  if (TensorBytes(view.shape, view.type, data.size()) != end - begin) {
    return damaged(absl::StrCat("has ", end - begin, " bytes, which do not match its shape"));
  }
  view.bytes = data.substr(begin, end - begin);
  return std::make_pair(begin, std::move(view));
}

}  // namespace

absl::string_view DataTypeName(DataType type) { return type == DataType::kFloat32 ? "F32" : "F64"; }

int64_t DataTypeSize(DataType type) { return type == DataType::kFloat32 ? 4 : 8; }

std::string WriteSafetensors(const TensorFile& file) {
  Json header = Json::object();  // sorted by key
  if (!file.metadata.empty()) header[std::string(kMetadataKey)] = file.metadata;
  uint64_t offset = 0;
  for (const TensorView& tensor : file.tensors) {
    if (TensorBytes(tensor.shape, tensor.type, tensor.bytes.size()) != tensor.bytes.size() ||
        tensor.name == kMetadataKey || header.contains(tensor.name)) {
      std::cerr << "tensor \"" << tensor.name << "\" has a taken name or a wrong size\n";
      std::abort();
    }
    const uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", std::string(DataTypeName(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  json.append((8 - json.size() % 8) % 8, ' ');

  std::string bytes;
  bytes.reserve(kSizeBytes + json.size() + offset);
  AppendUint64(json.size(), bytes);
  bytes.append(json);
  for (const TensorView& tensor : file.tensors) absl::StrAppend(&bytes, tensor.bytes);
  return bytes;
}

absl::StatusOr<TensorFile> ReadSafetensors(absl::string_view bytes) {
  if (bytes.size() < kSizeBytes) return Damaged("shorter than 8 bytes");
  const uint64_t header_size = ReadUint64(bytes);
  if (header_size > kMaxHeaderBytes || header_size > bytes.size() - kSizeBytes) {
    return Damaged(absl::StrCat("a header of ", header_size, " bytes in a file of ", bytes.size()));
  }
  const absl::string_view data = bytes.substr(kSizeBytes + header_size);
  const Json header = Json::parse(bytes.substr(kSizeBytes, header_size), /*cb=*/nullptr,
                                  /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged("the header is not a JSON object");

  TensorFile file;
  std::vector<std::pair<uint64_t, TensorView>> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      if (!entry.is_object()) return Damaged("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Damaged("__metadata__ has a value that is not text");
        file.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    ASSIGN_OR_RETURN(entries.emplace_back(), ReadEntry(name, entry, data));
  }

  // In file order each tensor must begin where the last ended. Of tensors at the same offset, empty
  // ones come first.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second.bytes.size()) <
           std::make_pair(b.first, b.second.bytes.size());
  });
  uint64_t end = 0;
  for (auto& [begin, view] : entries) {
    if (begin != end) {
      return Damaged(absl::StrCat("tensor \"", view.name, "\" begins at byte ", begin,
                                  " of the data, where byte ", end,
                                  " is next: ", begin < end ? "an overlap" : "a hole"));
    }
    end = begin + view.bytes.size();
    file.tensors.push_back(std::move(view));
  }
  if (end != data.size()) {
    return Damaged(absl::StrCat(data.size() - end, " bytes after the last tensor"));
  }
  return file;
}

}  // namespace lengthwise::models
