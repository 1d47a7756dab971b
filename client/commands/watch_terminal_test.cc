// A watch in a real terminal while trials run, the window is resized, and the server goes away and
// returns.
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection/testing/faulty_server.h"
#include "client/display/testing/pseudo_terminal.h"
#include "client/display/testing/screen.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTrials = 300;
constexpr absl::Duration kDeadline = absl::Seconds(60);

// Half of the trials run.
class HalfRunningServer : public FaultyServer {
 public:
  HalfRunningServer() {
    real().SubmitText(absl::StrCat(
        "name: e\ntasks: bucket_sort\n"
        "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\nencodings: none\n"
        "learning_rates: 0.001\nseeds: 0..",
        kTrials - 1,
        "\ntraining: {steps: 200, batch_size: 4, lengths: 2}\n"
        "evaluation: {lengths: 4, sequences: 8}\n"));
    real().LeaseTrials("experiments/e-1", kTrials / 2);
  }
};

template <typename Server>
class WatchTerminal : public testing::Test {
 protected:
  explicit WatchTerminal(const TerminalSize& size = {.width = 100, .height = 20})
      : terminal_({"client/lengthwise", "watch", "e-1", "--server", server_.address()},
                  {{"TERM", "xterm"}, {"LENGTHWISE_CONFIG", ""}, {"NO_COLOR", "1"}}, size),
        screen_(size) {}

  // Reads until the screen contains the text and returns the screen.
  std::string ScreenWith(const std::string& text) {
    const absl::Time deadline = absl::Now() + kDeadline;
    std::string seen;
    do {
      screen_.Write(terminal_.ReadFor(absl::Milliseconds(20)));
      seen = absl::StrJoin(screen_.Lines(), "\n");
    } while (seen.find(text) == std::string::npos && absl::Now() < deadline && !terminal_.ended());
    return seen;
  }

  Server server_;
  PseudoTerminal terminal_;
  Screen screen_;
};

class WatchTerminalTest : public WatchTerminal<HalfRunningServer> {};

TEST_F(WatchTerminalTest, FitsHundredsOfTrialsAndFollowsResizes) {
  std::string seen = ScreenWith("more:");
  // A headline, column names, sixteen trials and a count of the rest; the last line is the
  // cursor's.
  EXPECT_THAT(seen, AllOf(HasSubstr("150 running, 150 queued"), HasSubstr("seed 0 "),
                          HasSubstr("seed 15 "), Not(HasSubstr("seed 16 ")),
                          HasSubstr("\n  and 284 more: 134 running, 150 queued")));
  EXPECT_EQ(screen_.Lines().size(), 19u);
  EXPECT_FALSE(screen_.cursor_is_shown());

  for (const TerminalSize size :
       {TerminalSize{.width = 60, .height = 10}, TerminalSize{.width = 140, .height = 40}}) {
    terminal_.Resize(size);
    screen_.Resize(size);
    const int shown = size.height - 4;
    seen = ScreenWith(absl::StrCat("and ", kTrials - shown, " more"));
    EXPECT_THAT(seen, HasSubstr(absl::StrCat("seed ", shown - 1, " "))) << seen;
    EXPECT_EQ(screen_.Lines().size(), static_cast<size_t>(size.height) - 1) << seen;
  }
}

TEST_F(WatchTerminalTest, HeadlineReportsServerOutageAndReturn) {
  ScreenWith("more:");
  server_.Stop();
  EXPECT_THAT(ScreenWith("connection lost"),
              AllOf(HasSubstr("connection lost 0:0"), HasSubstr("150 running")));
  server_.Start();
  EXPECT_THAT(ScreenWith("connected again"),
              AllOf(HasSubstr("connected again after 0:0"), HasSubstr("150 running")));
}

TEST_F(WatchTerminalTest, CtrlCLeavesTheTerminalInOrder) {
  ScreenWith("more:");
  EXPECT_FALSE(screen_.cursor_is_shown());
  terminal_.Type("\x03");
  while (!terminal_.ended()) screen_.Write(terminal_.ReadFor(absl::Milliseconds(20)));
  EXPECT_TRUE(screen_.cursor_is_shown());
  EXPECT_THAT(absl::StrJoin(screen_.Lines(), "\n"), HasSubstr("150 running"));
}

TEST(DumbTerminalTest, WatchPrintsLines) {
  HalfRunningServer server;
  for (const char* name : {"dumb", ""}) {
    PseudoTerminal terminal({"client/lengthwise", "watch", "e-1", "--server", server.address()},
                            {{"TERM", name}, {"LENGTHWISE_CONFIG", ""}},
                            {.width = 80, .height = 20});
    const auto seen = terminal.ReadUntil("seed 149  started on", kDeadline);
    ASSERT_TRUE(seen.has_value()) << terminal.unread();
    EXPECT_THAT(*seen, Not(HasSubstr("\x1b"))) << name;
  }
}

// One of two trials has ended.
class ExtensibleServer : public RealServer {
 public:
  ExtensibleServer() {
    const std::string experiment = Submit("e", {"none", "sin_cos"});
    LeaseTrials(experiment, 1);
    EndTrial(TrialsOf(experiment)[0], v1::SUCCEEDED);
  }
};

class WatchExtendedTest : public WatchTerminal<ExtensibleServer> {};

TEST_F(WatchExtendedTest, ShowsAddedTrialsBeforeTheyStart) {
  EXPECT_THAT(ScreenWith("1 queued"), AllOf(HasSubstr("1 done"), HasSubstr("50 %")));
  EXPECT_TRUE(server_.calls().Extend("experiments/e-1", {1}).ok());
  EXPECT_THAT(ScreenWith("3 queued"), HasSubstr("25 %"));
}

}  // namespace
}  // namespace lengthwise::client
