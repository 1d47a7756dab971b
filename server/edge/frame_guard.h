// Shows gRPC no call of a stranger, and limits how much one HTTP/2 connection may demand of gRPC
// before a handler sees a call.
//
// gRPC 1.51 reads a whole message before it compares its size with the limit, keeps header blocks
// of any length, starts a call for each stream, however fast the client resets them, and keeps
// messages that nobody reads. The guard sits in front of gRPC and sees the frames of both
// directions. It parses frame headers and the five bytes before each message.
//
// A connection is untrusted until one of its calls shows valid credentials. Until then the guard
// reads header blocks and answers refused calls itself: gRPC sees neither their headers nor their
// data. Only a health check passes, with one small message. Later header blocks pass unread, unless
// a block was withheld: those after it may refer to fields that gRPC does not know, so the guard
// writes each of them anew.
//
// - Streams, resets, windows, control or tiny frames that come too fast: the connection waits
//   (back-pressure), and nothing is lost.
// - A message that is too large: its call ends with RESOURCE_EXHAUSTED; other calls continue.
// - A header block that is too large or malformed, or padding: the connection ends with GOAWAY.
//
// The guard passes frames on instead of ending HTTP/2 at a library and starting it again towards
// gRPC. That was tried with nghttp2 1.52 on 2026-11-30: 781 lines instead of 717 (with
// header_block), 5 us of its own per call instead of 0.4, the edge's thread twice as long busy per
// uploaded MB, 31 KiB per idle connection instead of 3, and 65 KiB for each stopped reader, whose
// window ends here.
#ifndef LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_
#define LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/token_bucket.h"
#include "server/edge/header_block.h"

namespace lengthwise::server {

// A pure object: no sockets, time is an argument. Not thread-safe.
class FrameGuard {
 public:
  // What the trusted connections of one principal share: more connections bring no more of it. An
  // untrusted connection has one for itself.
  struct Principal {
    static constexpr double kStreamRate = 20'000, kStreamBurst = 2'000;
    static constexpr double kResetRate = 1'000, kResetBurst = 2'000;
    // Clients send one for about 16 KiB that they read.
    static constexpr double kWindowRate = 100'000, kWindowBurst = 100'000;
    // gRPC's limit of a connection.
    static constexpr int kMostStreams = 8192;

    int64_t most_streams = kMostStreams;
    // Of one connection, which waits until one ends. If fewer, its client is told.
    int64_t most_streams_of_a_connection = kMostStreams;
    // Bytes of a message, without the five-byte prefix.
    int64_t most_message_bytes = 8 << 20;
    platform::TokenBucket new_streams{kStreamRate, kStreamBurst};
    // Of calls before their answer: the client has paid one frame for what gRPC has begun, and need
    // not wait for it.
    platform::TokenBucket resets{kResetRate, kResetBurst};
    platform::TokenBucket window_updates{kWindowRate, kWindowBurst};
    int64_t open_streams = 0;
    int64_t message_bytes = 0;  // the edge's
    int64_t connections = 0;    // the edge's
  };

  // Limits per connection.
  struct Limits {
    // Before trust.
    Principal stranger = {
        .most_streams_of_a_connection = 16, .most_message_bytes = 256, .new_streams = {20, 50}};
    // SETTINGS, PING, PRIORITY, unknown frames, tiny ones of DATA and resets of streams that are
    // not open, per second, and largest burst. Before trust, WINDOW_UPDATE and all DATA too.
    double control_rate = 100;
    double control_burst = 500;
    // Bytes of a header block, HEADERS and its CONTINUATION frames, and of the fields in it.
    int64_t header_bytes = 16 << 10;
  };

  // Checks the credentials of a call, "package.Service/Method" and the header "authorization". Its
  // principal makes the connection trusted. Otherwise the call ends with this status. Null: not
  // decided yet; the guard takes nothing, and asks again at the next FromClient.
  using Admit = std::function<absl::StatusOr<std::shared_ptr<Principal>>(absl::string_view,
                                                                         absl::string_view)>;

  FrameGuard(const Limits& limits, Admit admit);
  ~FrameGuard();

  bool is_trusted() const { return is_trusted_; }
  // Null before trust.
  Principal* principal() const { return is_trusted_ ? principal_.get() : nullptr; }

  // Takes a prefix of `bytes` from the client and appends the part that gRPC may see to
  // `to_server`. Returns the prefix's length. The caller passes the other bytes again, before the
  // client's next ones: they are an incomplete frame header, or begin with a frame that must wait
  // (`retry_at`). INVALID_ARGUMENT or RESOURCE_EXHAUSTED: the connection must end; the message says
  // why.
  absl::StatusOr<size_t> FromClient(absl::string_view bytes, absl::Time now,
                                    std::string& to_server);
  // Time at which FromClient can take the remaining bytes. InfiniteFuture while it waits for more
  // bytes, or for the server to end a stream.
  absl::Time retry_at() const { return retry_at_; }

  // Takes all of `bytes` from gRPC and appends them to `to_client`, with the guard's own frames
  // between gRPC's.
  void FromServer(absl::string_view bytes, std::string& to_client);
  // Appends the guard's own frames if gRPC is between two frames; else they wait.
  void AppendOwnFrames(std::string& to_client);
  // Queues a GOAWAY with `reason` and calls AppendOwnFrames.
  void AppendGoAway(absl::string_view reason, std::string& to_client);

  // Memory that gRPC needs for incomplete messages and the headers of open streams.
  int64_t held_bytes() const { return held_bytes_; }
  int64_t open_streams() const { return static_cast<int64_t>(streams_.size()); }

 private:
  struct Stream {
    // The incoming message: prefix bytes received, size, body bytes received, and their share of
    // held_bytes_. Its header block's share stays until the stream ends.
    int prefix = 0;
    uint32_t size = 0;
    int64_t received = 0;
    int64_t held = 0;
    int64_t block = 0;
    int messages = 0;  // that have come; without large ones
    bool client_ended = false;
    bool server_answered = false;
    bool server_ended = false;
    // Why its message is not accepted: the stream ends with the current frame.
    absl::Status refusal;
  };
  // A frame header, and how much of its payload is still to come.
  struct Frame {
    uint32_t left = 0;
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
  };

  static Frame Parse(const char* header);
  // Returns true if the frame may begin now. False: it must wait; sets retry_at_ if a rate limit
  // holds it back. An error says why the connection must end.
  absl::StatusOr<bool> MayBegin(const Frame& frame, absl::Time now);
  // Takes a unit for the frame that waits. Connections that share a bucket take turns.
  bool Take(platform::TokenBucket& bucket, absl::Time now);
  void BeginClientFrame(const Frame& frame);
  absl::Status EndClientFrame(std::string& to_server);
  // At the end of a header block that the guard reads: passes or answers its call, or keeps it in
  // fields_ until there is a decision.
  absl::Status EndBlock(std::string& to_server);
  void TakeMessageBytes(Stream& stream, absl::string_view bytes);
  // Answers the call with `status`, which is not OK, and closes its stream.
  void Refuse(uint32_t id, const absl::Status& status);
  void CloseStream(uint32_t id);
  void EndServerFrame();

  const Limits limits_;
  const Admit admit_;
  bool is_trusted_ = false;
  std::shared_ptr<Principal> principal_;
  std::optional<absl::Time> turn_;  // of the frame that waits
  platform::TokenBucket control_bucket_;
  absl::Time retry_at_ = absl::InfiniteFuture();

  // Client to server.
  size_t preface_ = 0;  // bytes of the preface received
  Frame frame_;         // the newest that has begun
  bool frame_passes_ = true;
  uint32_t block_stream_ = 0;  // stream with an open header block; 0: none
  int64_t block_bytes_ = 0;
  bool block_opens_stream_ = false;
  bool block_ends_stream_ = false;
  std::unique_ptr<HeaderReader> headers_;  // null: blocks pass unread
  std::string block_;                      // what the reader gets at the block's end
  std::optional<HeaderFields> fields_;     // of the block, while its call waits for a decision
  bool withheld_ = false;                  // a block, so that later ones are written anew
  uint32_t last_stream_ = 0;
  int64_t held_bytes_ = 0;
  absl::flat_hash_map<uint32_t, Stream> streams_;

  // Server to client.
  bool server_began_ = false;  // its SETTINGS come before any other frame
  std::string server_header_;  // received part of a frame header
  Frame server_frame_;
  bool server_in_block_ = false;  // CONTINUATION frames follow
  std::string own_frames_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_
