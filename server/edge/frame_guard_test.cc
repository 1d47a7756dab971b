#include "server/edge/frame_guard.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr int kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kContinuation = 9;
constexpr int kEndStream = 1, kEndHeaders = 4, kPadded = 8;

std::string Number(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// RFC 9113, section 4.1.
std::string Frame(int type, int flags, uint32_t stream, const std::string& payload = "") {
  return Number(payload.size(), 3) + Number(type, 1) + Number(flags, 1) + Number(stream, 4) +
         payload;
}

std::string OpenStream(uint32_t id) { return Frame(kHeaders, kEndHeaders, id, "headers"); }
std::string ResetOf(uint32_t id) { return Frame(kRstStream, 0, id, Number(8, 4)); }
// A message with its five-byte prefix.
std::string Message(size_t size) {
  return std::string(1, '\0') + Number(size, 4) + std::string(size, 'x');
}

class FrameGuardTest : public testing::Test {
 protected:
  static FrameGuard::Limits Small() {
    FrameGuard::Limits limits;
    limits.streams = 3;
    limits.stream_rate = limits.reset_rate = 1;
    limits.stream_burst = 10;
    limits.reset_burst = 2;
    limits.header_bytes = 100;
    limits.message_bytes = 1000;
    limits.trusted_message_bytes = 2000;
    return limits;
  }

  // Returns the bytes that the server sees. Bytes that the guard did not take go first next time.
  std::string Client(const std::string& bytes) {
    waiting_ += bytes;
    std::string seen;
    const absl::StatusOr<size_t> taken = guard_.FromClient(waiting_, now_, seen);
    status_ = taken.status();
    if (taken.ok()) waiting_.erase(0, *taken);
    return seen;
  }
  std::string Server(const std::string& bytes) {
    std::string seen;
    guard_.FromServer(bytes, seen);
    return seen;
  }

  FrameGuard guard_{Small()};
  absl::Time now_ = absl::UnixEpoch();
  std::string waiting_;
  absl::Status status_;
};

TEST_F(FrameGuardTest, OrdinaryCallsPassUnchanged) {
  std::string sent = absl::StrCat(kPreface, Frame(kSettings, 0, 0));
  for (const uint32_t id : {1, 3}) {
    sent += Frame(kHeaders, 0, id, "some") + Frame(kContinuation, kEndHeaders, id, "more");
    const std::string messages = Message(0) + Message(700);
    sent += Frame(kData, 0, id, messages.substr(0, 7));
    sent += Frame(kData, kEndStream, id, messages.substr(7));
  }
  for (const size_t part : {1, 2, 9, 100, 100'000}) {
    FrameGuard guard(Small());
    std::string seen, rest;
    for (size_t at = 0; at < sent.size(); at += part) {
      rest += sent.substr(at, part);
      const absl::StatusOr<size_t> taken = guard.FromClient(rest, now_, seen);
      ASSERT_TRUE(taken.ok()) << taken.status();
      rest.erase(0, *taken);
    }
    EXPECT_EQ(seen, sent);
    EXPECT_EQ(guard.open_streams(), 2);
    EXPECT_EQ(guard.incomplete_bytes(), 0);
    const std::string answer =
        Frame(kHeaders, kEndHeaders, 1, "a") + Frame(kHeaders, kEndHeaders | kEndStream, 1, "b");
    std::string answered;
    for (const char byte : answer) guard.FromServer({&byte, 1}, answered);
    EXPECT_EQ(answered, answer);
    EXPECT_EQ(guard.open_streams(), 1);
  }
}

TEST_F(FrameGuardTest, StreamBeyondTheLimitWaits) {
  Client(kPreface);
  EXPECT_EQ(Client(OpenStream(1) + OpenStream(3) + OpenStream(5) + OpenStream(7)),
            OpenStream(1) + OpenStream(3) + OpenStream(5));
  EXPECT_EQ(guard_.retry_at(), absl::InfiniteFuture());
  Server(ResetOf(3));
  EXPECT_EQ(Client(""), OpenStream(7));
}

TEST_F(FrameGuardTest, TrustedConnectionsMayOpenMore) {
  guard_.Trust();
  std::string sent = kPreface;
  for (uint32_t id = 1; id < 1000; id += 2) sent += OpenStream(id);
  EXPECT_EQ(Client(sent), sent);
}

TEST_F(FrameGuardTest, ResetsWaitForTheirRate) {
  Client(kPreface);
  Client(OpenStream(1) + ResetOf(1) + OpenStream(3) + ResetOf(3));
  EXPECT_EQ(Client(OpenStream(5) + ResetOf(5)), OpenStream(5));
  EXPECT_EQ(guard_.retry_at(), now_ + absl::Seconds(1));
  now_ += absl::Seconds(1);
  EXPECT_EQ(Client(""), ResetOf(5));
  EXPECT_EQ(guard_.open_streams(), 0);
}

TEST_F(FrameGuardTest, EndlessHeaderBlockIsRefused) {
  Client(kPreface);
  Client(Frame(kHeaders, 0, 1, std::string(60, 'x')));
  Client(Frame(kContinuation, 0, 1, std::string(20, 'x')));
  EXPECT_TRUE(status_.ok());
  Client(Frame(kContinuation, 0, 1, std::string(20, 'x')));
  EXPECT_EQ(status_.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FrameGuardTest, EmptyContinuationsAreCounted) {
  Client(kPreface);
  Client(Frame(kHeaders, 0, 1));
  for (int i = 0; i < 11; ++i) Client(Frame(kContinuation, 0, 1));
  EXPECT_TRUE(status_.ok());
  Client(Frame(kContinuation, 0, 1));
  EXPECT_EQ(status_.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FrameGuardTest, NonsenseIsRefused) {
  Client(kPreface);
  Client(Frame(kContinuation, 0, 1));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("continues nothing"));
  waiting_.clear();
  Client(Frame(kHeaders, 0, 1) + Frame(kData, 0, 1));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("interrupted"));
  FrameGuard guard(Small());
  std::string seen;
  EXPECT_THAT(std::string(guard
                              .FromClient(absl::StrCat(kPreface, OpenStream(1),
                                                       Frame(kData, kPadded, 1, "x")),
                                          now_, seen)
                              .status()
                              .message()),
              HasSubstr("padding"));
}

TEST_F(FrameGuardTest, LargeMessageEndsItsCallEarly) {
  Client(kPreface);
  Client(OpenStream(1) + OpenStream(3));
  const std::string start = Frame(kData, 0, 1, Message(1001).substr(0, 8));
  EXPECT_EQ(Client(start), start + ResetOf(1));
  std::string told;
  guard_.AppendOwnFrames(told);
  // RESOURCE_EXHAUSTED, and a reset without an error.
  EXPECT_THAT(told, HasSubstr(absl::StrCat("\x0bgrpc-status\x01", "8")));
  EXPECT_THAT(told, HasSubstr("a message has 1001 bytes; accepted: at most 1000"));
  EXPECT_EQ(told.substr(told.size() - 13), Frame(kRstStream, 0, 1, Number(0, 4)));
  EXPECT_EQ(guard_.open_streams(), 1);
  EXPECT_EQ(guard_.incomplete_bytes(), 0);
  const std::string other = Frame(kData, kEndStream, 3, Message(1000));
  EXPECT_EQ(Client(other), other);

  guard_.Trust();
  const std::string larger = OpenStream(5) + Frame(kData, kEndStream, 5, Message(2000));
  EXPECT_EQ(Client(larger), larger);
}

TEST_F(FrameGuardTest, LargeMessageAfterAnAnswerIsReset) {
  Client(kPreface);
  Client(OpenStream(1));
  Server(Frame(kHeaders, kEndHeaders, 1, "headers"));
  Client(Frame(kData, 0, 1, Message(1001)));
  std::string told;
  guard_.AppendOwnFrames(told);
  // ENHANCE_YOUR_CALM, which gRPC reads as RESOURCE_EXHAUSTED.
  EXPECT_EQ(told, Frame(kRstStream, 0, 1, Number(11, 4)));
}

TEST_F(FrameGuardTest, CountsUnfinishedMessagesUntilStreamEnd) {
  Client(kPreface);
  Client(OpenStream(1) + Frame(kData, 0, 1, Message(500).substr(0, 105)));
  Client(OpenStream(3) + Frame(kData, 0, 3, Message(500).substr(0, 55)));
  EXPECT_EQ(guard_.incomplete_bytes(), 150);
  Client(ResetOf(1));
  EXPECT_EQ(guard_.incomplete_bytes(), 50);
  Server(ResetOf(3));
  EXPECT_EQ(guard_.incomplete_bytes(), 0);
}

TEST_F(FrameGuardTest, OwnFramesStandBetweenTheServers) {
  Client(kPreface);
  Client(OpenStream(1));
  const std::string answer = Frame(kHeaders, 0, 1, "a") + Frame(kContinuation, kEndHeaders, 1, "b");
  std::string told = Server(answer.substr(0, 12));
  Client(Frame(kData, 0, 1, Message(1001)));
  guard_.AppendOwnFrames(told);
  EXPECT_EQ(told, answer.substr(0, 12));
  EXPECT_EQ(Server(answer.substr(12)), answer.substr(12) + Frame(kRstStream, 0, 1, Number(11, 4)));
}

TEST_F(FrameGuardTest, ServerSeesOnlyTheStartOfAnotherProtocol) {
  const std::string hello = "\x16\x03\x01 a TLS ClientHello where plain text is spoken";
  EXPECT_EQ(Client(hello), hello.substr(0, 24));
  EXPECT_EQ(Client("more"), "");
  EXPECT_TRUE(status_.ok());
}

}  // namespace
}  // namespace lengthwise::server
