#include "client/display/records.h"

#include "client/display/record_writer.h"

namespace lengthwise::client {
namespace {

void Write(const Records& records, RecordFormat format, std::ostream& out) {
  RecordWriter writer(format, records.columns, out);
  for (const auto& row : records.rows) writer.Write(row);
  writer.Finish();
}

}  // namespace

Value OrNothing(std::optional<double> number) {
  if (!number.has_value()) return {};
  return *number;
}

void WriteCsv(const Records& records, std::ostream& out) {
  Write(records, RecordFormat::kCsv, out);
}

void WriteJson(const Records& records, std::ostream& out) {
  Write(records, RecordFormat::kJson, out);
}

void WriteJsonLine(const std::vector<std::string>& columns, const std::vector<Value>& row,
                   std::ostream& out) {
  out << "{";
  for (size_t i = 0; i < columns.size(); ++i) {
    out << (i > 0 ? "," : "") << JsonText(columns[i]) << ":" << JsonText(row[i]);
  }
  out << "}\n";
}

}  // namespace lengthwise::client
