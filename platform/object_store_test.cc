#include "platform/object_store.h"

#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

ObjectStoreError ErrorIn(const std::string& body) {
  return ObjectStoreErrorOf({.status = 403, .headers = {}, .body = body});
}

TEST(ObjectStoreTest, ErrorHasCodeAndMessage) {
  const ObjectStoreError error = ErrorIn(
      "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access &lt;Denied&gt;."
      "</Message></Error>");
  EXPECT_EQ(error.code, "AccessDenied");
  EXPECT_EQ(error.message, "Access <Denied>.");
}

TEST(ObjectStoreTest, ErrorShowsNoSignature) {
  const ObjectStoreError error = ErrorIn(
      "<Error><Code>SignatureDoesNotMatch</Code><Message>GET "
      "/a?X-Amz-Signature=12</Message></Error>");
  EXPECT_EQ(error.code, "SignatureDoesNotMatch");
  EXPECT_EQ(error.message, "");
}

TEST(ObjectStoreTest, OtherAnswersHaveNoError) {
  for (const char* body : {"", "<html>502 Bad Gateway", "<ListBucketResult/>"}) {
    EXPECT_EQ(ErrorIn(body).code, "") << body;
    EXPECT_EQ(ErrorIn(body).message, "") << body;
  }
}

TEST(ObjectStoreTest, TimeoutGrowsWithTheSize) {
  EXPECT_EQ(TransferTimeout(0), absl::Seconds(30));
  EXPECT_EQ(TransferTimeout(10 << 20), absl::Seconds(40));
}

}  // namespace
}  // namespace lengthwise::platform
