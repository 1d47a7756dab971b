#include "platform/user_directories.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

class UserDirectoriesTest : public testing::Test {
 protected:
  UserDirectoriesTest() {
    for (const char* name : {"XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}) unsetenv(name);
    setenv("HOME", "/home/ada", 1);
  }
};

TEST_F(UserDirectoriesTest, AreBelowTheHome) {
  EXPECT_EQ(CacheDirectory(), "/home/ada/.cache/lengthwise");
  EXPECT_EQ(DataDirectory(), "/home/ada/.local/share/lengthwise");
  EXPECT_EQ(StateDirectory(), "/home/ada/.local/state/lengthwise");
}

TEST_F(UserDirectoriesTest, FollowTheirVariables) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  setenv("XDG_DATA_HOME", "/data", 1);
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(CacheDirectory(), "/cache/lengthwise");
  EXPECT_EQ(DataDirectory(), "/data/lengthwise");
  EXPECT_EQ(StateDirectory(), "/state/lengthwise");
}

TEST_F(UserDirectoriesTest, TildeIsTheHome) {
  EXPECT_EQ(ExpandHome("~/a"), "/home/ada/a");
  EXPECT_EQ(ExpandHome("~bea/a"), "~bea/a");
  EXPECT_EQ(ExpandHome("b/~/a"), "b/~/a");
  EXPECT_EQ(ExpandHome("~/a", nullptr), "~/a");
}

TEST_F(UserDirectoriesTest, IgnoreRelativePaths) {
  setenv("XDG_CACHE_HOME", "cache", 1);
  EXPECT_EQ(CacheDirectory(), "/home/ada/.cache/lengthwise");
}

TEST_F(UserDirectoriesTest, AreUnknownWithoutAHome) {
  setenv("HOME", "", 1);
  EXPECT_EQ(CacheDirectory(), std::nullopt);
  unsetenv("HOME");
  EXPECT_EQ(CacheDirectory(), std::nullopt);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(CacheDirectory(), "/cache/lengthwise");
}

}  // namespace
}  // namespace lengthwise::platform
