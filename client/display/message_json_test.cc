#include "client/display/message_json.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {
namespace {

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
