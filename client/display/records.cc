#include "client/display/records.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/display/numbers.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "proto/digest.h"

namespace lengthwise::client {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// Formats doubles like nlohmann::json, with a point or an exponent that distinguishes them from
// integers.
std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e15);
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof(buffer), value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// Formats a value as a cell of this format.
std::string TextOf(const Value& value, RecordFormat format) {
  const bool csv = format == RecordFormat::kCsv;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* natural = std::get_if<uint64_t>(&value)) return std::to_string(*natural);
  if (const auto* number = std::get_if<double>(&value)) {
    if (!csv) return NumberText(*number);
    return std::isfinite(*number) ? FormatExact(*number) : "";
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    // Invalid UTF-8 in a user's text is replaced, not rejected.
    const auto replace = nlohmann::json::error_handler_t::replace;
    if (!csv) return nlohmann::json(*text).dump(-1, ' ', false, replace);
    return CsvCell(*text);
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return csv ? absl::StrJoin(*list, " ") : absl::StrCat("[", absl::StrJoin(*list, ","), "]");
  }
  return csv ? "" : "null";
}

}  // namespace

RecordWriter::RecordWriter(RecordFormat format, std::vector<std::string> columns, std::ostream& out)
    : format_(format), out_(out) {
  const bool csv = format == RecordFormat::kCsv;
  for (const std::string& column : columns) {
    // Starts with the text of Value(), the initial cached value.
    const std::string name = TextOf(column, format);
    cells_.push_back({.key = name + ":", .value = {}, .text = TextOf({}, format)});
    if (csv) absl::StrAppend(&buffer_, cells_.size() > 1 ? "," : "", name);
  }
  buffer_ += csv ? "\n" : "[";
}

void RecordWriter::Write(const std::vector<Value>& row) {
  const bool csv = format_ == RecordFormat::kCsv;
  if (!csv) buffer_ += any_rows_ ? ",\n {" : "\n {";
  any_rows_ = true;
  for (size_t i = 0; i < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    if (row[i] != cell.value) {
      cell.value = row[i];
      cell.text = TextOf(row[i], format_);
    }
    if (i > 0) buffer_ += ',';
    if (!csv) buffer_ += cell.key;
    buffer_ += cell.text;
  }
  buffer_ += csv ? "\n" : "}";
  if (buffer_.size() < kBufferBytes) return;
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void RecordWriter::Finish() {
  if (format_ == RecordFormat::kJson) buffer_ += any_rows_ ? "\n]\n" : "]\n";
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

Value OrNothing(std::optional<double> number) {
  if (!number.has_value()) return {};
  return *number;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return "\"" + absl::StrReplaceAll(text, {{"\"", "\"\""}}) + "\"";
}

void WriteRecords(const Records& records, RecordFormat format, std::ostream& out) {
  RecordWriter writer(format, records.columns, out);
  for (const auto& row : records.rows) writer.Write(row);
  writer.Finish();
}

void WriteJsonLine(const std::vector<std::string>& columns, const std::vector<Value>& row,
                   std::ostream& out) {
  out << "{";
  for (size_t i = 0; i < columns.size(); ++i) {
    out << (i > 0 ? "," : "") << TextOf(columns[i], RecordFormat::kJson) << ":"
        << TextOf(row[i], RecordFormat::kJson);
  }
  out << "}\n";
}

namespace {

constexpr char kTypePrefix[] = "type.googleapis.com";

}  // namespace

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message, bool indented) {
  static google::protobuf::util::TypeResolver* const resolver =
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypePrefix, google::protobuf::DescriptorPool::generated_pool());
  // MessageToJsonString writes map entries in memory order, which varies. The JSON of a serialized
  // message follows the order of its bytes, which is deterministic here.
  const std::string bytes = SerializeDeterministically(message);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = indented;
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver, absl::StrCat(kTypePrefix, "/", message.GetTypeName()), bytes, &json, options);
  if (status.ok()) return json;
  return absl::InternalError(absl::StrCat("cannot write a ", message.GetTypeName(), " as JSON"));
}

}  // namespace lengthwise::client
