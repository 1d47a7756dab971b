#include "gtest/gtest.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {
namespace {

TEST(FailureClassTest, NumbersAddressesAndHostsAreIgnored) {
  EXPECT_EQ(FailureClass("cannot allocate 1048576 bytes at 0x7f3a9c on n07"),
            FailureClass("cannot allocate 2048 bytes at 0x55d0 on n11"));
  EXPECT_EQ(FailureClass("disk is 99.5 % full"), "disk is #.# % full");
}

TEST(FailureClassTest, OtherWordsMakeAnotherFailure) {
  EXPECT_NE(FailureClass("cannot read the checkpoint"), FailureClass("cannot write it"));
  EXPECT_NE(FailureClass("CUBLAS_STATUS_ALLOC_FAILED"), FailureClass("CUDNN_STATUS_ALLOC_FAILED"));
}

TEST(FailureClassTest, AnyReasonHasAShortClass) {
  EXPECT_EQ(FailureClass(""), "");
  EXPECT_EQ(FailureClass(std::string(100'000, 'x')).size(), 200u);
  EXPECT_EQ(FailureClass(std::string("\xff\0\n", 3)), std::string("\xff\0\n", 3));
}

}  // namespace
}  // namespace lengthwise::server
