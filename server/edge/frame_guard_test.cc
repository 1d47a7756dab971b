#include "server/edge/frame_guard.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr int kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kWindowUpdate = 8,
              kContinuation = 9;
constexpr int kEndStream = 1, kEndHeaders = 4, kPadded = 8, kPriority = 32;

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

std::string Call(uint32_t id, const HeaderFields& fields) {
  return Frame(kHeaders, kEndHeaders, id, WriteHeaderBlock(fields));
}
// Strangers may make this call.
std::string OpenStream(uint32_t id) {
  return Call(id, {{":path", "/grpc.health.v1.Health/Check"}});
}
std::string CallWith(const std::string& token, uint32_t id) {
  return Call(id, {{":path", "/a.B/C"}, {"authorization", token}});
}
// What gRPC keeps of a call's headers.
int64_t BlockOf(const std::string& call) { return static_cast<int64_t>(call.size()) - 9; }
std::string ResetOf(uint32_t id) { return Frame(kRstStream, 0, id, Number(8, 4)); }
// A message with its five-byte prefix.
std::string Message(size_t size) {
  return std::string(1, '\0') + Number(size, 4) + std::string(size, 'x');
}

class FrameGuardTest : public testing::Test {
 protected:
  static FrameGuard::Limits Small() {
    FrameGuard::Limits limits;
    limits.stranger.most_streams_of_a_connection = 3;
    limits.stranger.most_message_bytes = 100;
    limits.stranger.new_streams = {/*rate=*/1, /*burst=*/10};
    limits.header_bytes = 200;
    return limits;
  }
  using Principal = FrameGuard::Principal;
  static absl::StatusOr<std::shared_ptr<Principal>> Admit(absl::string_view method,
                                                          absl::string_view authorization) {
    EXPECT_EQ(method, "a.B/C");
    if (authorization != "good") return absl::UnauthenticatedError("who? 100 %");
    return std::make_shared<Principal>(Principal{.most_message_bytes = 1000});
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

  // The frames that the guard itself sends to the client.
  std::string Told() {
    std::string told;
    guard_.AppendOwnFrames(told);
    return told;
  }
  // Begins the connection, and makes it trusted with stream 1.
  void Begin() {
    Client(kPreface);
    Server(Frame(kSettings, 0, 0));
  }
  void Trust() {
    Begin();
    EXPECT_EQ(Client(CallWith("good", 1)), CallWith("good", 1));
    EXPECT_TRUE(guard_.is_trusted());
  }

  FrameGuard guard_{Small(), Admit};
  absl::Time now_ = absl::UnixEpoch();
  std::string waiting_;
  absl::Status status_;
};

TEST_F(FrameGuardTest, OrdinaryCallsPassUnchanged) {
  std::string sent = absl::StrCat(kPreface, Frame(kSettings, 0, 0));
  for (const uint32_t id : {1, 3}) {
    sent += id == 1
                ? CallWith("good", id)
                : Frame(kHeaders, 0, id, "some") + Frame(kContinuation, kEndHeaders, id, "more");
    const std::string messages = Message(0) + Message(700);
    sent += Frame(kData, 0, id, messages.substr(0, 7));
    sent += Frame(kData, kEndStream, id, messages.substr(7));
  }
  for (const size_t part : {1, 2, 9, 100, 100'000}) {
    FrameGuard guard(Small(), Admit);
    std::string seen, rest;
    for (size_t at = 0; at < sent.size(); at += part) {
      rest += sent.substr(at, part);
      const absl::StatusOr<size_t> taken = guard.FromClient(rest, now_, seen);
      ASSERT_TRUE(taken.ok()) << taken.status();
      rest.erase(0, *taken);
    }
    EXPECT_EQ(seen, sent);
    EXPECT_EQ(guard.open_streams(), 2);
    EXPECT_EQ(guard.held_bytes(), BlockOf(CallWith("good", 1)) + 4 + 9 + 4);
    const std::string answer =
        Frame(kHeaders, kEndHeaders, 1, "a") + Frame(kHeaders, kEndHeaders | kEndStream, 1, "b");
    std::string answered;
    for (const char byte : answer) guard.FromServer({&byte, 1}, answered);
    EXPECT_EQ(answered, answer);
    EXPECT_EQ(guard.open_streams(), 1);
  }
}

TEST_F(FrameGuardTest, UndecidedCallHoldsBackItsConnection) {
  int asked = 0;
  absl::StatusOr<std::shared_ptr<Principal>> decision = nullptr;
  FrameGuard guard(Small(), [&](absl::string_view method, absl::string_view authorization) {
    ++asked;
    return method == "a.B/C" ? decision : absl::InternalError(authorization);
  });
  std::string seen;
  const std::string first = absl::StrCat(kPreface, CallWith("some", 1));
  const std::string second = CallWith("other", 3) + Frame(kData, kEndStream, 3, Message(7));
  EXPECT_EQ(guard.FromClient(first + second, now_, seen).value(), first.size());
  EXPECT_EQ(guard.FromClient(second, now_, seen).value(), 0u);
  EXPECT_EQ(guard.FromClient("", now_, seen).value(), 0u);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(seen, kPreface);
  EXPECT_EQ(guard.retry_at(), absl::InfiniteFuture());
  decision = std::make_shared<Principal>();
  EXPECT_EQ(guard.FromClient(second, now_, seen).value(), second.size());
  EXPECT_EQ(seen, first + second);
  EXPECT_TRUE(guard.is_trusted());
}

TEST_F(FrameGuardTest, UndecidedCallMayBeRefused) {
  absl::StatusOr<std::shared_ptr<Principal>> decision = nullptr;
  FrameGuard guard(Small(), [&](absl::string_view, absl::string_view) { return decision; });
  std::string seen, answer;
  ASSERT_TRUE(guard.FromClient(absl::StrCat(kPreface, CallWith("some", 1)), now_, seen).ok());
  guard.FromServer(Frame(kSettings, 0, 0), answer);
  EXPECT_EQ(answer, Frame(kSettings, 0, 0));
  decision = absl::UnauthenticatedError("who are you");
  ASSERT_TRUE(guard.FromClient("", now_, seen).ok());
  guard.AppendOwnFrames(answer);
  EXPECT_THAT(answer, HasSubstr("who are you"));
  EXPECT_EQ(seen, kPreface);
  EXPECT_EQ(guard.open_streams(), 0);
  // Later calls are written anew, because gRPC has not seen the first block.
  decision = std::make_shared<Principal>();
  ASSERT_TRUE(guard.FromClient(CallWith("good", 3), now_, seen).ok());
  EXPECT_EQ(seen, kPreface + CallWith("good", 3));
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
  Trust();
  std::string sent;
  for (uint32_t id = 3; id < 1000; id += 2) sent += Frame(kHeaders, kEndHeaders, id, "unread");
  EXPECT_EQ(Client(sent), sent);
}

TEST_F(FrameGuardTest, PrincipalHasSoManyStreamsOnAllConnections) {
  const auto ada = std::make_shared<Principal>(Principal{.most_streams = 3});
  const auto admit = [&](absl::string_view, absl::string_view) {
    return absl::StatusOr<std::shared_ptr<Principal>>(ada);
  };
  auto first = std::make_unique<FrameGuard>(Small(), admit);
  FrameGuard second(Small(), admit);
  std::string seen;
  const std::string two = absl::StrCat(kPreface, CallWith("good", 1), CallWith("good", 3));
  EXPECT_EQ(*first->FromClient(two, now_, seen), two.size());
  const std::string third = CallWith("good", 3);
  EXPECT_EQ(*second.FromClient(two, now_, seen), two.size() - third.size());
  EXPECT_EQ(second.retry_at(), now_ + absl::Milliseconds(100));
  first->FromServer(ResetOf(1), seen);
  EXPECT_EQ(*second.FromClient(third, now_, seen), third.size());
  EXPECT_EQ(ada->open_streams, 3);
  first.reset();
  EXPECT_EQ(ada->open_streams, 2);
}

// A worker has one connection with a few calls, so thousands of calls on one need no room.
TEST_F(FrameGuardTest, ConnectionOfAPrincipalHasSoManyStreams) {
  const auto fleet = std::make_shared<Principal>(Principal{.most_streams_of_a_connection = 2});
  FrameGuard guard(Small(), [&](absl::string_view, absl::string_view) {
    return absl::StatusOr<std::shared_ptr<Principal>>(fleet);
  });
  std::string seen, told;
  const std::string two = absl::StrCat(kPreface, CallWith("good", 1), CallWith("good", 3));
  const std::string third = CallWith("good", 5);
  EXPECT_EQ(*guard.FromClient(two + third, now_, seen), two.size());
  // It waits for no time: a stream must end first.
  EXPECT_EQ(guard.retry_at(), absl::InfiniteFuture());
  guard.FromServer(Frame(kSettings, 0, 0), told);
  // MAX_CONCURRENT_STREAMS, so that an honest client does not send what waits.
  EXPECT_EQ(told, Frame(kSettings, 0, 0) + Frame(kSettings, 0, 0, Number(3, 2) + Number(2, 4)));
  guard.FromServer(ResetOf(3), told);
  EXPECT_EQ(*guard.FromClient(third, now_, seen), third.size());
  EXPECT_EQ(seen, two + third);
}

TEST_F(FrameGuardTest, ConnectionsOfAPrincipalTakeTurns) {
  const auto ada = std::make_shared<Principal>(
      Principal{.new_streams = platform::TokenBucket(/*rate=*/1, /*burst=*/1)});
  const auto admit = [&](absl::string_view, absl::string_view) {
    return absl::StatusOr<std::shared_ptr<Principal>>(ada);
  };
  std::vector<std::unique_ptr<FrameGuard>> guards;
  std::string seen;
  for (int i = 0; i < 3; ++i) {
    guards.push_back(std::make_unique<FrameGuard>(Small(), admit));
    const std::string first = kPreface + CallWith("good", 1);
    EXPECT_EQ(*guards[i]->FromClient(first, now_, seen), first.size());
  }
  // The unit that is there goes to the first, the next ones to the others in turn, whoever asks.
  const std::string next = CallWith("", 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*guards[i]->FromClient(next, now_, seen), i == 0 ? next.size() : 0);
  }
  EXPECT_EQ(*guards[0]->FromClient(CallWith("", 5), now_ + absl::Seconds(1), seen), 0);
  EXPECT_EQ(*guards[1]->FromClient(next, now_ + absl::Seconds(1), seen), next.size());
  EXPECT_EQ(*guards[2]->FromClient(next, now_ + absl::Seconds(1), seen), 0);
  EXPECT_EQ(guards[2]->retry_at(), now_ + absl::Seconds(2));
}

TEST_F(FrameGuardTest, TinyFramesWaitForTheirRate) {
  Trust();
  const std::string tiny = Frame(kData, 0, 1, "x");
  std::string sent;
  for (int i = 0; i < 1000; ++i) sent += tiny;
  Client(sent);
  EXPECT_EQ(waiting_.size(), 500 * tiny.size());
  now_ += absl::Seconds(1);
  Client("");
  EXPECT_EQ(waiting_.size(), 400 * tiny.size());
}

TEST_F(FrameGuardTest, ServerSeesNothingOfARefusedCall) {
  Begin();
  EXPECT_EQ(Client(CallWith("bad", 1) + Frame(kData, kEndStream, 1, Message(50))), "");
  // UNAUTHENTICATED with the reason, a reset without an error, and the window that the data took.
  const std::string told = Told();
  EXPECT_THAT(told, HasSubstr(absl::StrCat("\x0bgrpc-status\x02", "16")));
  EXPECT_THAT(told, HasSubstr("who? 100 %25"));
  EXPECT_THAT(told, HasSubstr(Frame(kRstStream, 0, 1, Number(0, 4))));
  EXPECT_THAT(told, testing::EndsWith(Frame(kWindowUpdate, 0, 0, Number(55, 4))));
  EXPECT_EQ(Client(ResetOf(1) + Frame(kWindowUpdate, 0, 1, Number(9, 4))), "");
  EXPECT_EQ(guard_.open_streams(), 0);
  EXPECT_FALSE(guard_.is_trusted());
}

TEST_F(FrameGuardTest, StrangersDataWaitsForItsRate) {
  Begin();
  const std::string tiny = Frame(kData, 0, 1, "x");
  std::string sent = CallWith("bad", 1);
  for (int i = 0; i < 1000; ++i) sent += tiny;
  Client(sent);
  // 500 at once, and 100 a second.
  EXPECT_EQ(waiting_.size(), 500 * tiny.size());
  now_ += absl::Seconds(1);
  Client("");
  EXPECT_EQ(waiting_.size(), 400 * tiny.size());
}

TEST_F(FrameGuardTest, NothingIsToldBeforeTheServersSettings) {
  Client(kPreface + CallWith("bad", 1));
  EXPECT_EQ(Told(), "");
  const std::string told = Server(Frame(kSettings, 0, 0));
  EXPECT_THAT(told, testing::StartsWith(Frame(kSettings, 0, 0)));
  EXPECT_THAT(told, HasSubstr("grpc-status"));
}

TEST_F(FrameGuardTest, HealthCheckPassesWithOneSmallMessage) {
  Begin();
  const std::string check = OpenStream(1) + Frame(kData, 0, 1, Message(100));
  EXPECT_EQ(Client(check), check);
  EXPECT_THAT(Client(Frame(kData, 0, 1, Message(0))), testing::EndsWith(ResetOf(1)));
  EXPECT_THAT(Told(), HasSubstr("such a call has at most 1 small message"));
  const std::string start = OpenStream(3) + Frame(kData, 0, 3, Message(101).substr(0, 9));
  EXPECT_EQ(Client(start), start + ResetOf(3));
  EXPECT_FALSE(guard_.is_trusted());
}

TEST_F(FrameGuardTest, BlocksAfterAWithheldOneAreWrittenAnew) {
  Begin();
  // The refused block adds "authorization: good" to the table, which the next one refers to.
  const std::string added = std::string("\x40\x0d") + "authorization" + "\x04" + "good";
  const std::string path = WriteHeaderBlock({{":path", "/a.B/C"}});
  const std::string refused = WriteHeaderBlock({{"authorization", "bad"}}) + added + path;
  EXPECT_EQ(Client(Frame(kHeaders, kEndHeaders, 1, refused)), "");
  EXPECT_EQ(Client(Frame(kHeaders, kEndHeaders, 3, path + "\xbe")), CallWith("good", 3));
  EXPECT_EQ(Client(Frame(kHeaders, 0, 5, path) + Frame(kContinuation, kEndHeaders, 5, "\xbe")),
            CallWith("good", 5));
}

TEST_F(FrameGuardTest, PriorityOfACallIsLeftOut) {
  Begin();
  const std::string block = WriteHeaderBlock({{":path", "/a.B/C"}, {"authorization", "good"}});
  EXPECT_EQ(Client(Frame(kHeaders, kEndHeaders | kPriority, 1, "12345" + block)),
            CallWith("good", 1));
}

TEST_F(FrameGuardTest, MalformedBlockEndsTheConnection) {
  Begin();
  Client(Frame(kHeaders, kEndHeaders, 1, "\xff\xff\xff\xff\xff\xff"));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("malformed"));
}

TEST_F(FrameGuardTest, ResetsOfEndedStreamsWaitForTheirRate) {
  Client(kPreface);
  EXPECT_EQ(Client(OpenStream(1) + ResetOf(1)), OpenStream(1) + ResetOf(1));
  EXPECT_EQ(guard_.open_streams(), 0);
  std::string sent;
  for (int i = 0; i < 1000; ++i) sent += ResetOf(1);
  Client(sent);
  EXPECT_EQ(waiting_.size(), 500 * ResetOf(1).size());
  now_ += absl::Seconds(1);
  Client("");
  EXPECT_EQ(waiting_.size(), 400 * ResetOf(1).size());
}

// Rapid reset.
TEST_F(FrameGuardTest, ResetsOfCallsWithoutAnAnswerWaitForTheirRate) {
  Trust();
  std::string sent;
  for (uint32_t i = 1; i <= 4000; ++i) {
    sent += CallWith("good", 2 * i + 1) + ResetOf(2 * i + 1);
    if (i % 4 == 0) {
      now_ += absl::Milliseconds(1);
      Client(std::exchange(sent, {}));
    }
  }
  EXPECT_EQ(guard_.open_streams(), 2) << "the first call, and one whose reset waits";
  const size_t pair = (CallWith("good", 3) + ResetOf(3)).size();
  EXPECT_EQ(waiting_.size() / pair, 4000 - 2000 - 1000) << "the burst, and those of a second";
  EXPECT_LE(guard_.retry_at(), now_ + absl::Milliseconds(1));
}

TEST_F(FrameGuardTest, WindowsWaitForTheirRate) {
  Trust();
  const std::string window = Frame(kWindowUpdate, 0, 0, Number(1, 4));
  std::string sent;
  for (int i = 0; i < 110'000; ++i) sent += window;
  EXPECT_EQ(Client(sent).size() / window.size(), 100'000u);
  now_ += absl::Milliseconds(10);
  EXPECT_EQ(Client("").size() / window.size(), 1'000u);
}

TEST_F(FrameGuardTest, NextCallDoesNotWaitForTheTurnOfAReset) {
  const auto ada = std::make_shared<Principal>(
      Principal{.resets = platform::TokenBucket(/*rate=*/1, /*burst=*/1)});
  FrameGuard guard(Small(), [&](absl::string_view, absl::string_view) {
    return absl::StatusOr<std::shared_ptr<Principal>>(ada);
  });
  std::string seen, told;
  const std::string sent =
      absl::StrCat(kPreface, CallWith("good", 1), CallWith("good", 3), ResetOf(1));
  EXPECT_EQ(*guard.FromClient(sent, now_, seen), sent.size());
  guard.FromServer(Frame(kSettings, 0, 0), told);
  const std::string next = ResetOf(3) + CallWith("good", 5);
  EXPECT_EQ(*guard.FromClient(next, now_, seen), 0u) << "the reset waits a second";
  guard.FromServer(Frame(kWindowUpdate, 0, 3, Number(9, 4)), told);
  EXPECT_EQ(*guard.FromClient(next, now_, seen), 0u) << "a window is no answer";
  guard.FromServer(Frame(kHeaders, kEndHeaders, 3), told);
  EXPECT_EQ(*guard.FromClient(next, now_, seen), next.size());
}

TEST_F(FrameGuardTest, ResetsAfterAnAnswerPass) {
  Trust();
  for (uint32_t i = 1; i <= 4000; ++i) {
    now_ += absl::Milliseconds(0.1);
    const uint32_t id = 2 * i + 1;
    Client(CallWith("good", id));
    Server(Frame(kHeaders, kEndHeaders, id));
    EXPECT_EQ(Client(ResetOf(id)), ResetOf(id));
  }
}

TEST_F(FrameGuardTest, StreamsThatAreResetWaitForTheRateOfNewOnes) {
  Client(kPreface);
  std::string sent;
  for (uint32_t id = 1; id < 101; id += 2) sent += OpenStream(id) + ResetOf(id);
  Client(sent);
  EXPECT_EQ(waiting_.size(), 40 * (OpenStream(1) + ResetOf(1)).size());
  EXPECT_EQ(guard_.retry_at(), now_ + absl::Seconds(1));
}

TEST_F(FrameGuardTest, EndlessHeaderBlockIsRefused) {
  Client(kPreface);
  Client(Frame(kHeaders, 0, 1, std::string(120, 'x')));
  Client(Frame(kContinuation, 0, 1, std::string(40, 'x')));
  EXPECT_TRUE(status_.ok());
  Client(Frame(kContinuation, 0, 1, std::string(40, 'x')));
  EXPECT_EQ(status_.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FrameGuardTest, EmptyContinuationsAreCounted) {
  Client(kPreface);
  Client(Frame(kHeaders, 0, 1));
  for (int i = 0; i < 22; ++i) Client(Frame(kContinuation, 0, 1));
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
  FrameGuard guard(Small(), Admit);
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
  Trust();
  const std::string start = Frame(kData, 0, 1, Message(1001).substr(0, 8));
  EXPECT_EQ(Client(start), start + ResetOf(1));
  const std::string told = Told();
  // RESOURCE_EXHAUSTED, and a reset without an error.
  EXPECT_THAT(told, HasSubstr(absl::StrCat("\x0bgrpc-status\x01", "8")));
  EXPECT_THAT(told, HasSubstr("a message has 1001 bytes; accepted: at most 1000"));
  EXPECT_EQ(told.substr(told.size() - 13), Frame(kRstStream, 0, 1, Number(0, 4)));
  EXPECT_EQ(guard_.open_streams(), 0);
  EXPECT_EQ(guard_.held_bytes(), 0);
  const std::string other = CallWith("", 3) + Frame(kData, kEndStream, 3, Message(1000));
  EXPECT_EQ(Client(other), other);
}

// A call whose handler reads no more than one would keep thousands.
TEST_F(FrameGuardTest, CallWithManyTinyMessagesEnds) {
  Trust();
  std::string hundred, large;
  for (int i = 0; i < 100; ++i) {
    hundred += Message(i % 64);
    large += Message(64);
  }
  EXPECT_THAT(Client(Frame(kData, 0, 1, hundred) + Frame(kData, 0, 1, large)),
              testing::Not(HasSubstr(ResetOf(1))));
  EXPECT_THAT(Client(Frame(kData, 0, 1, Message(0) + std::string(64, 'x'))),
              testing::EndsWith(ResetOf(1)));
  EXPECT_THAT(Told(), HasSubstr("such a call has at most 100 small messages"));
  EXPECT_EQ(guard_.held_bytes(), 0);
}

TEST_F(FrameGuardTest, LargeMessageAfterAnAnswerIsReset) {
  Trust();
  Server(Frame(kHeaders, kEndHeaders, 1, "headers"));
  Client(Frame(kData, 0, 1, Message(1001)));
  // ENHANCE_YOUR_CALM, which gRPC reads as RESOURCE_EXHAUSTED.
  EXPECT_EQ(Told(), Frame(kRstStream, 0, 1, Number(11, 4)));
}

TEST_F(FrameGuardTest, CountsUnfinishedMessagesUntilStreamEnd) {
  Trust();
  Client(Frame(kData, 0, 1, Message(500).substr(0, 105)));
  Client(CallWith("", 3) + Frame(kData, 0, 3, Message(500).substr(0, 55)));
  // gRPC needs 256 bytes more for each frame.
  const int64_t first = BlockOf(CallWith("good", 1)), second = BlockOf(CallWith("", 3));
  EXPECT_EQ(guard_.held_bytes(), first + 100 + 256 + second + 50 + 256);
  Client(ResetOf(1));
  EXPECT_EQ(guard_.held_bytes(), second + 50 + 256);
  Server(ResetOf(3));
  EXPECT_EQ(guard_.held_bytes(), 0);
}

TEST_F(FrameGuardTest, OwnFramesStandBetweenTheServers) {
  Trust();
  const std::string answer = Frame(kHeaders, 0, 1, "a") + Frame(kContinuation, kEndHeaders, 1, "b");
  std::string told = Server(answer.substr(0, 12));
  Client(Frame(kData, 0, 1, Message(1001)));
  guard_.AppendOwnFrames(told);
  EXPECT_EQ(told, answer.substr(0, 12));
  EXPECT_EQ(Server(answer.substr(12)), answer.substr(12) + Frame(kRstStream, 0, 1, Number(11, 4)));
}

TEST_F(FrameGuardTest, AnotherProtocolEndsTheConnection) {
  EXPECT_EQ(Client("PRI"), "PRI");
  EXPECT_EQ(Client("VATE * HTTP/1.1\r\n"), "");
  EXPECT_THAT(std::string(status_.message()), HasSubstr("this is not HTTP/2"));
  FrameGuard guard(Small(), Admit);
  std::string seen;
  EXPECT_FALSE(guard.FromClient("\x16\x03\x01 a TLS ClientHello", now_, seen).ok());
  EXPECT_EQ(seen, "");
}

}  // namespace
}  // namespace lengthwise::server
