#include "client/display/records.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {
namespace {

Records ExampleRecords() {
  return {
      .columns = {"name", "count", "rate", "alive", "note"},
      .rows = {{std::string("a,\"b\""), int64_t{3}, 0.1, true, std::monostate{}},
               {std::string("ü"), int64_t{-1}, std::nan(""), false, std::string("two\nlines")}}};
}

TEST(RecordsTest, CsvQuotesOnlySpecialText) {
  std::ostringstream out;
  WriteRecords(ExampleRecords(), RecordFormat::kCsv, out);
  EXPECT_EQ(out.str(),
            "name,count,rate,alive,note\n"
            "\"a,\"\"b\"\"\",3,0.1,true,\n"
            "ü,-1,,false,\"two\nlines\"\n");
}

TEST(RecordsTest, JsonIsAnArrayOfObjects) {
  std::ostringstream out;
  WriteRecords(ExampleRecords(), RecordFormat::kJson, out);
  EXPECT_EQ(
      out.str(),
      "[\n"
      " {\"name\":\"a,\\\"b\\\"\",\"count\":3,\"rate\":0.1,\"alive\":true,\"note\":null},\n"
      " {\"name\":\"ü\",\"count\":-1,\"rate\":null,\"alive\":false,\"note\":\"two\\nlines\"}\n"
      "]\n");
}

TEST(RecordsTest, NoRowsAreAnEmptyArray) {
  std::ostringstream out;
  WriteRecords({.columns = {"a"}}, RecordFormat::kJson, out);
  EXPECT_EQ(out.str(), "[]\n");
}

// nlohmann::json parses the numbers to the same values.
TEST(RecordsTest, JsonNumbersAreThoseOfAJsonLibrary) {
  for (const double value :
       {0.0, -0.0, 1.0, -3.0, 0.1, 1e-4, 0.00012345, 9.99e-5, 1e-5, -2.5e-310, 1.0 / 3, 0.21653366,
        123456.789, 999999999999999.0, 1e15, 1.5e15, 1e16, 1.7976931348623157e308, 5e-324}) {
    std::ostringstream out;
    WriteJsonLine({"x"}, {value}, out);
    EXPECT_EQ(out.str(), "{\"x\":" + nlohmann::json(value).dump() + "}\n");
    EXPECT_EQ(nlohmann::json::parse(out.str())["x"].get<double>(), value);
  }
}

// Values repeat from row to row, then change in value and type.
TEST(RecordsTest, EveryRowHasItsOwnValues) {
  const std::vector<std::vector<Value>> rows = {{Value(), std::string("a")},
                                                {int64_t{1}, std::string("a")},
                                                {1.0, std::string("")},
                                                {true, std::string("a")},
                                                {Value(), Value()},
                                                {std::nan(""), Value()},
                                                {int64_t{1}, std::string("a")}};
  for (const RecordFormat format : {RecordFormat::kCsv, RecordFormat::kJson}) {
    std::ostringstream out;
    RecordWriter writer(format, {"x", "y"}, out);
    for (const std::vector<Value>& row : rows) writer.Write(row);
    writer.Finish();
    EXPECT_EQ(out.str(), format == RecordFormat::kCsv ? "x,y\n,a\n1,a\n1,\ntrue,a\n,\n,\n1,a\n"
                                                      : "[\n {\"x\":null,\"y\":\"a\"},\n"
                                                        " {\"x\":1,\"y\":\"a\"},\n"
                                                        " {\"x\":1.0,\"y\":\"\"},\n"
                                                        " {\"x\":true,\"y\":\"a\"},\n"
                                                        " {\"x\":null,\"y\":null},\n"
                                                        " {\"x\":null,\"y\":null},\n"
                                                        " {\"x\":1,\"y\":\"a\"}\n]\n");
  }
}

// More rows than the buffer holds.
TEST(RecordsTest, ManyRowsAreAllWritten) {
  std::ostringstream out;
  RecordWriter writer(RecordFormat::kJson, {"i", "text"}, out);
  constexpr int kRows = 20'000;
  for (int i = 0; i < kRows; ++i) writer.Write({int64_t{i}, std::string("the same")});
  writer.Finish();
  const nlohmann::json all = nlohmann::json::parse(out.str());
  ASSERT_EQ(all.size(), kRows);
  for (int i = 0; i < kRows; ++i) ASSERT_EQ(all[static_cast<size_t>(i)]["i"], i);
}

TEST(MessageJsonTest, SortsMapsByKey) {
  v1::Component component;
  component.set_name("sin_cos");
  std::string expected;
  // Enough that no other order is sorted by chance.
  for (int i = 29; i >= 10; --i) {
    const std::string key = absl::StrCat("parameter_", i);
    (*component.mutable_parameters())[key].set_number_value(i);
    expected = absl::StrCat("\"", key, "\":", i, expected.empty() ? "" : ",", expected);
  }
  const auto json = MessageJson(component);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(*json, absl::StrCat("{\"name\":\"sin_cos\",\"parameters\":{", expected, "}}"));
}

TEST(MessageJsonTest, KeepsTheFieldsNames) {
  v1::Training training;
  training.set_batch_size(4);
  EXPECT_EQ(*MessageJson(training), "{\"batch_size\":4}");
  EXPECT_EQ(*MessageJson(training, /*indented=*/true), "{\n \"batch_size\": 4\n}\n");
}

}  // namespace

}  // namespace lengthwise::client
