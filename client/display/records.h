// Writes data for other programs: rows as CSV or JSON, and messages of the API as JSON.
#ifndef LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_
#define LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace lengthwise::client {

// monostate means no value: null in JSON, empty in CSV. A list is an array in JSON and
// space-separated numbers in CSV.
using Value = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
                           std::vector<int64_t>>;

// Returns the number, or no value.
Value OrNothing(std::optional<double> number);

struct Records {
  std::vector<std::string> columns;
  // Each row has one value per column.
  std::vector<std::vector<Value>> rows;
};

enum class RecordFormat {
  // RFC 4180 with a header line and "\n" line ends. Doubles round-trip; non-finite ones are empty.
  kCsv,
  // An array of objects, one per line. Non-finite doubles are null.
  kJson,
};

// Returns the text as a cell of CSV, in quotes if it has a comma, a quote or a line end.
std::string CsvCell(const std::string& text);

void WriteRecords(const Records& records, RecordFormat format, std::ostream& out);

// One JSON object and its line end.
void WriteJsonLine(const std::vector<std::string>& columns, const std::vector<Value>& row,
                   std::ostream& out);

// Streams rows, so that millions of them need little memory and time. Not thread-safe.
class RecordWriter {
 public:
  RecordWriter(RecordFormat format, std::vector<std::string> columns, std::ostream& out);

  // One value per column.
  void Write(const std::vector<Value>& row);
  // Call it once, after the last row. Until then rows may be buffered in memory.
  void Finish();

 private:
  // Caches the text of a column's last value, because most values repeat from row to row.
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

// Returns the message in proto3's JSON mapping with the field names of proto/, on one line or, with
// `indented`, on several. Map entries are sorted by key, so that equal messages give equal text.
// INTERNAL if JSON cannot represent it, such as a timestamp beyond the year 9999.
absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message,
                                        bool indented = false);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_RECORDS_H_
