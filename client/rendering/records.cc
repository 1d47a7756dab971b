#include "client/rendering/records.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

std::string ToCsv(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) {
    return std::isfinite(*number) ? FormatExact(*number) : "";
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
    return "\"" + absl::StrReplaceAll(*text, {{"\"", "\"\""}}) + "\"";
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return absl::StrJoin(*list, " ");
  }
  return "";
}

nlohmann::ordered_json ToJson(const Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

std::string ToJsonObject(const std::vector<std::string>& columns, const std::vector<Value>& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (size_t i = 0; i < columns.size(); ++i) object[columns[i]] = ToJson(row[i]);
  // What is not UTF-8 in a user's text is replaced, not refused.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void WriteCsv(const Records& records, std::ostream& out) {
  for (size_t i = 0; i < records.columns.size(); ++i) {
    out << (i > 0 ? "," : "") << records.columns[i];
  }
  out << "\n";
  WriteCsvRows(records, out);
}

void WriteCsvRows(const Records& records, std::ostream& out) {
  for (const auto& row : records.rows) {
    for (size_t i = 0; i < row.size(); ++i) out << (i > 0 ? "," : "") << ToCsv(row[i]);
    out << "\n";
  }
}

void WriteJson(const Records& records, std::ostream& out) {
  out << "[";
  for (size_t i = 0; i < records.rows.size(); ++i) {
    out << (i > 0 ? ",\n " : "\n ") << ToJsonObject(records.columns, records.rows[i]);
  }
  out << (records.rows.empty() ? "]\n" : "\n]\n");
}

void WriteJsonLine(const std::vector<std::string>& columns, const std::vector<Value>& row,
                   std::ostream& out) {
  out << ToJsonObject(columns, row) << "\n";
}

}  // namespace lengthwise::client
