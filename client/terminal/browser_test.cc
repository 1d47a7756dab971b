#include "client/terminal/browser.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

class BrowserTest : public testing::Test {
 protected:
  BrowserTest()
      : directory_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    variables_["PATH"] = directory_;
  }

  // A program that writes what it was given to the file "shown".
  std::string Program(const std::string& name) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\nprintf %s \"$1\" > '" << directory_ << "/new'\n/bin/mv '"
                        << directory_ << "/new' '" << directory_ << "/shown'\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  absl::Status Open(const std::string& path) {
    return OpenInBrowser(path, [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string Shown() {
    const std::string path = directory_ + "/shown";
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!std::filesystem::exists(path) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  const std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(BrowserTest, StartsTheFirstBrowserThatIsThere) {
  variables_["BROWSER"] = "not-there:looker";
  Program("looker");
  EXPECT_TRUE(Open("a picture.svg").ok());
  EXPECT_EQ(Shown(), "a picture.svg");
}

TEST_F(BrowserTest, AsksTheDesktopWhereThereIsOne) {
  Program("xdg-open");
  EXPECT_THAT(std::string(Open("x.svg").message()), HasSubstr("there is no display"));
  variables_["DISPLAY"] = ":0";
  EXPECT_TRUE(Open("x.svg").ok());
  EXPECT_EQ(Shown(), "x.svg");
}

TEST_F(BrowserTest, SaysWhatToDoWhereNothingShowsPictures) {
  variables_["DISPLAY"] = ":0";
  EXPECT_THAT(std::string(Open("x.svg").message()), HasSubstr("apt-get install xdg-utils"));
  variables_["BROWSER"] = "/nowhere/firefox";
  EXPECT_THAT(std::string(Open("x.svg").message()), HasSubstr("$BROWSER names /nowhere/firefox"));
}

}  // namespace
}  // namespace lengthwise::client
