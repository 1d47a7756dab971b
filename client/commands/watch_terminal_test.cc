// A watch in a real terminal while trials run, the window is resized, and the server goes away and
// returns.
#include <signal.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection/fake_server.h"
#include "client/display/pseudo_terminal.h"
#include "client/display/screen.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTrials = 300;
constexpr absl::Duration kDeadline = absl::Seconds(60);

// Half of its trials run. The watch stream stays open until the test breaks or ends it.
class HalfRunningServer : public FakeServer {
 public:
  HalfRunningServer() {
    std::vector<std::string> encodings;
    for (int i = 0; i < kTrials; ++i) encodings.push_back(absl::StrCat("encoding_", i));
    AddExperiment("e-1", encodings);
  }
  ~HalfRunningServer() override { mode_ = Mode::kEnded; }

  enum class Mode { kServing, kAway, kEnded };
  void Set(Mode mode) { mode_ = mode; }

 private:
  grpc::Status WatchExperiment(grpc::ServerContext* context, const v1::WatchExperimentRequest*,
                               grpc::ServerWriter<v1::WatchExperimentResponse>* writer) override {
    if (mode_ == Mode::kServing) {
      v1::WatchExperimentResponse response;
      for (int i = 0; i < kTrials; i += 2) {
        v1::Event& event = *response.add_events();
        event.set_position(i + 1);
        event.set_trial(absl::StrCat("experiments/e-1/trials/bucket_sort-encoding_", i));
        event.mutable_state_change()->set_to(v1::RUNNING);
      }
      response.set_caught_up(true);
      response.set_next_position(kTrials + 1);
      writer->Write(response);
    }
    while (mode_ == Mode::kServing && !context->IsCancelled())
      absl::SleepFor(absl::Milliseconds(5));
    if (mode_ == Mode::kEnded) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, "the server stops"};
  }

  std::atomic<Mode> mode_ = Mode::kServing;
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
  EXPECT_THAT(seen, AllOf(HasSubstr("150 running, 150 queued"), HasSubstr("encoding_0 "),
                          HasSubstr("encoding_30 "), Not(HasSubstr("encoding_32 ")),
                          HasSubstr("\n  and 284 more: 134 running, 150 queued")));
  EXPECT_EQ(screen_.Lines().size(), 19u);
  EXPECT_FALSE(screen_.cursor_is_shown());

  for (const TerminalSize size :
       {TerminalSize{.width = 60, .height = 10}, TerminalSize{.width = 140, .height = 40}}) {
    terminal_.Resize(size);
    screen_.Resize(size);
    const int shown = size.height - 4;
    seen = ScreenWith(absl::StrCat("and ", kTrials - shown, " more"));
    EXPECT_THAT(seen, HasSubstr(absl::StrCat("encoding_", 2 * (shown - 1), " "))) << seen;
    EXPECT_EQ(screen_.Lines().size(), static_cast<size_t>(size.height) - 1) << seen;
  }
}

TEST_F(WatchTerminalTest, HeadlineReportsServerOutageAndReturn) {
  ScreenWith("more:");
  server_.Set(HalfRunningServer::Mode::kAway);
  EXPECT_THAT(ScreenWith("connection lost"),
              AllOf(HasSubstr("connection lost 0:0"), HasSubstr("150 running")));
  server_.Set(HalfRunningServer::Mode::kServing);
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

// Its trial has ended, but the stream stays open, as if more trials were queued.
class ExtendedServer : public FakeServer {
 public:
  ExtendedServer() { AddExperiment("e-1", {"none"}); }
  ~ExtendedServer() override { stopping_ = true; }

 private:
  grpc::Status WatchExperiment(grpc::ServerContext* context, const v1::WatchExperimentRequest*,
                               grpc::ServerWriter<v1::WatchExperimentResponse>* writer) override {
    v1::WatchExperimentResponse response;
    v1::Event& event = *response.add_events();
    event.set_position(1);
    event.set_trial("experiments/e-1/trials/bucket_sort-none");
    event.mutable_state_change()->set_to(v1::SUCCEEDED);
    response.set_caught_up(true);
    response.set_next_position(2);
    writer->Write(response);
    while (!stopping_ && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  }

  std::atomic<bool> stopping_ = false;
};

class WatchExtendedTest : public WatchTerminal<ExtendedServer> {};

TEST_F(WatchExtendedTest, ShowsAddedTrialsBeforeTheyStart) {
  EXPECT_THAT(ScreenWith("1 done"), HasSubstr("100 %"));
  server_.AddTrials("experiments/e-1", {"sin_cos"});
  EXPECT_THAT(ScreenWith("1 queued"), HasSubstr("50 %"));
}

}  // namespace
}  // namespace lengthwise::client
