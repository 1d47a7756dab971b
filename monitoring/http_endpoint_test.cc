#include "monitoring/http_endpoint.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/scrape.h"

namespace lengthwise::monitoring {
namespace {

using ::testing::HasSubstr;

TEST(HttpEndpoint, SaysWhichBuildItIsAndWhatTheProcessTakes) {
  const auto endpoint = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const std::string text = Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_build_info{program=\"test\",version=\""));
  EXPECT_THAT(text, HasSubstr("\n# TYPE process_cpu_seconds_total counter\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes "));
}

TEST(HttpEndpoint, SaysThatItsPortIsTaken) {
  const auto first = HttpEndpoint::Start("127.0.0.1:0", "test", {}).value();
  const absl::Status status = HttpEndpoint::Start(first->address(), "test", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(first->address()));
}

}  // namespace
}  // namespace lengthwise::monitoring
