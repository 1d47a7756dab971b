// Data for programs: the same rows as CSV or JSON.
#ifndef LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_
#define LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace lengthwise::client {

// monostate: there is no value (null in JSON, nothing in CSV). A list is an array in JSON, its
// numbers with spaces between them in CSV.
using Value =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>>;

// The number, or no value.
Value OrNothing(std::optional<double> number);

struct Records {
  std::vector<std::string> columns;
  // As many values as there are columns in each.
  std::vector<std::vector<Value>> rows;
};

// RFC 4180 with a header line and "\n" line ends. Doubles read back the same; those that are not
// finite are empty.
void WriteCsv(const Records& records, std::ostream& out);

// An array of objects, one a line. Doubles that are not finite are null.
void WriteJson(const Records& records, std::ostream& out);

// One JSON object and its line end.
void WriteJsonLine(const std::vector<std::string>& columns, const std::vector<Value>& row,
                   std::ostream& out);

enum class RecordFormat { kCsv, kJson };

// Writes rows as they come, in the formats of WriteCsv and WriteJson, so that millions of them take
// neither memory nor long. Not thread-safe.
class RecordWriter {
 public:
  RecordWriter(RecordFormat format, std::vector<std::string> columns, std::ostream& out);

  // As many values as there are columns.
  void Write(const std::vector<Value>& row);
  // Once, after the last row. What was written before may still be in memory.
  void Finish();

 private:
  // Rows repeat most of the values of the row before; their text is made once.
  struct Cell {
    std::string key;
    Value value;
    std::string text;
  };

  const RecordFormat format_;
  std::ostream& out_;
  std::vector<Cell> cells_;
  std::string buffer_;
  bool any_rows_ = false;
};

// A value as a cell of CSV, and as JSON.
std::string CsvText(const Value& value);
std::string JsonText(const Value& value);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_
