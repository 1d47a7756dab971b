// Records that come one by one.
#ifndef LENGTHWISE_CLIENT_DISPLAY_RECORD_WRITER_H_
#define LENGTHWISE_CLIENT_DISPLAY_RECORD_WRITER_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/display/records.h"

namespace lengthwise::client {

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

#endif  // LENGTHWISE_CLIENT_DISPLAY_RECORD_WRITER_H_
