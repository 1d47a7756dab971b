#include "platform/private_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/descriptors.h"

namespace lengthwise::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The test's own temporary directory, whose path is short.
class PrivateSocketTest : public testing::Test {
 protected:
  PrivateSocketTest() {
    EXPECT_NE(mkdtemp(place_.data()), nullptr);
    setenv("TMPDIR", place_.c_str(), 1);
    unsetenv("XDG_RUNTIME_DIR");
  }
  ~PrivateSocketTest() override { std::filesystem::remove_all(place_); }

  std::string Own(const std::string& place) const {
    return absl::StrCat(place, "/lengthwise-", geteuid());
  }

  std::string place_ = "/tmp/private_socket_test.XXXXXX";
};

void Listen(const std::string& path, Descriptor& listener) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  listener = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

TEST_F(PrivateSocketTest, IsInADirectoryOfItsUserAlone) {
  EXPECT_EQ(PrivateSocketPath("a").value(), Own(place_) + "/a");
  struct stat status;
  ASSERT_EQ(lstat(Own(place_).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(PrivateSocketPath("b").value(), Own(place_) + "/b");
}

TEST_F(PrivateSocketTest, SocketOfAKilledServerIsReplaced) {
  const std::string path = PrivateSocketPath("a").value();
  Descriptor killed, next;
  Listen(path, killed);
  killed = Descriptor();
  ASSERT_TRUE(std::filesystem::is_socket(path));
  EXPECT_EQ(PrivateSocketPath("a").value(), path);
  Listen(path, next);
}

TEST_F(PrivateSocketTest, OthersSocketsGoWhenNobodyListens) {
  const std::string directory = std::filesystem::path(PrivateSocketPath("a").value()).parent_path();
  Descriptor killed, starting, serving;
  Listen(directory + "/killed", killed);
  killed = Descriptor();
  Listen(directory + "/starting", starting);
  Listen(directory + "/serving", serving);
  ASSERT_EQ(listen(serving.get(), 1), 0);
  std::ofstream(directory + "/file");
  const timespec long_ago[2] = {};
  for (const char* old : {"/killed", "/serving", "/file"}) {
    ASSERT_EQ(utimensat(AT_FDCWD, (directory + old).c_str(), long_ago, 0), 0);
  }
  ASSERT_TRUE(PrivateSocketPath("a").ok());
  EXPECT_FALSE(std::filesystem::exists(directory + "/killed"));
  for (const char* stays : {"/starting", "/serving", "/file"}) {
    EXPECT_TRUE(std::filesystem::exists(directory + stays)) << stays;
  }
}

TEST_F(PrivateSocketTest, LongTemporaryDirectoryIsLeftOut) {
  for (const std::string& unfit :
       {place_ + "/" + std::string(100, 'd'), place_ + "/a b", place_ + "/none"}) {
    if (unfit != place_ + "/none") std::filesystem::create_directory(unfit);
    setenv("TMPDIR", unfit.c_str(), 1);
    EXPECT_EQ(PrivateSocketPath("private_socket_test").value(),
              Own("/tmp") + "/private_socket_test");
  }
}

// /proc has no room for sockets.
TEST_F(PrivateSocketTest, FileSystemWithoutSocketsIsLeftOut) {
  setenv("TMPDIR", "/proc/self", 1);
  EXPECT_EQ(PrivateSocketPath("private_socket_test").value(), Own("/tmp") + "/private_socket_test");
}

TEST_F(PrivateSocketTest, DirectoryThatOthersMayEnterIsRefused) {
  std::filesystem::create_directory(Own(place_));
  ASSERT_EQ(chmod(Own(place_).c_str(), 0755), 0);
  EXPECT_THAT(PrivateSocketPath("a").value(), StartsWith(Own("/tmp")));
  // A link to a directory of this user, which another user made.
  std::filesystem::remove_all(Own(place_));
  std::filesystem::create_directory(place_ + "/mine");
  ASSERT_EQ(chmod((place_ + "/mine").c_str(), 0700), 0);
  std::filesystem::create_symlink(place_ + "/mine", Own(place_));
  EXPECT_THAT(PrivateSocketPath("a").value(), StartsWith(Own("/tmp")));
}

TEST_F(PrivateSocketTest, DirectoryThatAnotherUserMadeIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  std::filesystem::create_directory(Own(place_));
  ASSERT_EQ(chmod(Own(place_).c_str(), 0700), 0);
  ASSERT_EQ(chown(Own(place_).c_str(), 65534, 65534), 0);
  EXPECT_THAT(PrivateSocketPath("a").value(), StartsWith(Own("/tmp")));
}

// It is deleted at logout.
TEST_F(PrivateSocketTest, RuntimeDirectoryIsLast) {
  setenv("XDG_RUNTIME_DIR", (place_ + "/run").c_str(), 1);
  std::filesystem::create_directory(place_ + "/run");
  EXPECT_EQ(PrivateSocketPath("a").value(), Own(place_) + "/a");
  unsetenv("TMPDIR");
  EXPECT_EQ(PrivateSocketPath("private_socket_test").value(), Own("/tmp") + "/private_socket_test");
}

TEST_F(PrivateSocketTest, WithoutAPlaceEachHasItsReason) {
  setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
  const std::string name(120, 'n');
  EXPECT_THAT(
      std::string(PrivateSocketPath(name).status().message()),
      testing::AllOf(StartsWith("there is no place for the server's socket: " + place_),
                     HasSubstr("; /tmp/lengthwise-"), HasSubstr("; /run/user/1/lengthwise-"),
                     HasSubstr(" is longer than 107 bytes"),
                     HasSubstr("set TMPDIR to a directory of your own on a local disk")));
}

}  // namespace
}  // namespace lengthwise::platform
