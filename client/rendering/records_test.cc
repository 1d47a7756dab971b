#include "client/rendering/records.h"

#include <cmath>
#include <sstream>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

Records Example() {
  return {
      .columns = {"name", "count", "rate", "alive", "note"},
      .rows = {{std::string("a,\"b\""), int64_t{3}, 0.1, true, std::monostate{}},
               {std::string("ü"), int64_t{-1}, std::nan(""), false, std::string("two\nlines")}}};
}

TEST(RecordsTest, CsvQuotesWhatNeedsIt) {
  std::ostringstream out;
  WriteCsv(Example(), out);
  EXPECT_EQ(out.str(),
            "name,count,rate,alive,note\n"
            "\"a,\"\"b\"\"\",3,0.1,true,\n"
            "ü,-1,,false,\"two\nlines\"\n");
}

TEST(RecordsTest, JsonIsAnArrayOfObjects) {
  std::ostringstream out;
  WriteJson(Example(), out);
  EXPECT_EQ(
      out.str(),
      "[\n"
      " {\"name\":\"a,\\\"b\\\"\",\"count\":3,\"rate\":0.1,\"alive\":true,\"note\":null},\n"
      " {\"name\":\"ü\",\"count\":-1,\"rate\":null,\"alive\":false,\"note\":\"two\\nlines\"}\n"
      "]\n");
}

TEST(RecordsTest, NoRowsAreAnEmptyArray) {
  std::ostringstream out;
  WriteJson({.columns = {"a"}}, out);
  EXPECT_EQ(out.str(), "[]\n");
}

}  // namespace
}  // namespace lengthwise::client
