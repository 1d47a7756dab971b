// Bounds what one HTTP/2 connection may ask of the gRPC library before a handler sees it.
//
// gRPC 1.51 reads a whole message before it compares its size with the limit, keeps header blocks
// of any length, and makes a call of each stream however fast streams are reset. The guard stands
// in front of it and sees the frames of both directions. It reads frame headers and the five bytes
// before each message; header blocks pass as they are.
//
// - Streams, resets or control frames that come too fast: the connection waits (back-pressure), and
//   nothing is lost.
// - A message that is too large: its call ends with RESOURCE_EXHAUSTED; others go on.
// - A header block that is too large, or padding: the connection ends with GOAWAY.
#ifndef LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_
#define LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/token_bucket.h"

namespace lengthwise::server {

// A pure object: no sockets, time is an argument. Not thread-safe.
class FrameGuard {
 public:
  // Of one connection. Those of trusted connections are for clients whose token was accepted.
  struct Limits {
    // Open streams. A connection beyond it waits until one ends.
    int64_t streams = 16;
    int64_t trusted_streams = 8192;
    // New streams a second, and how many at once.
    double stream_rate = 20;
    double stream_burst = 50;
    double trusted_stream_rate = 20'000;
    double trusted_stream_burst = 20'000;
    // Streams that the client resets, a second and at once.
    double reset_rate = 20;
    double reset_burst = 50;
    double trusted_reset_rate = 1000;
    double trusted_reset_burst = 5000;
    // SETTINGS, PING, PRIORITY and unknown frames, a second and at once.
    double control_rate = 1000;
    double control_burst = 5000;
    // Bytes of a header block: HEADERS and its CONTINUATION frames.
    int64_t header_bytes = 16 << 10;
    // Bytes of a message, without the five before it.
    int64_t message_bytes = (4 << 20) + (64 << 10);  // the gate says more of 4 MiB and a little
    int64_t trusted_message_bytes = 8 << 20;
  };

  explicit FrameGuard(const Limits& limits);

  // From now on the trusted limits hold.
  void Trust();

  // Takes a prefix of what the client sent and appends what gRPC may see of it to `to_server`.
  // Returns the prefix's length. What is not taken comes again, before what the client sends next:
  // a frame header that is not complete, or a frame that must wait (`retry_at`). INVALID_ARGUMENT
  // or RESOURCE_EXHAUSTED: the connection must end; the message says why.
  absl::StatusOr<size_t> FromClient(absl::string_view bytes, absl::Time now,
                                    std::string& to_server);
  // When FromClient should be called again for what it did not take: InfiniteFuture while it waits
  // for more bytes, or for the server to end a stream.
  absl::Time retry_at() const { return retry_at_; }

  // Takes what gRPC sent, all of it, and appends it to `to_client`, with the guard's own frames
  // between gRPC's.
  void FromServer(absl::string_view bytes, std::string& to_client);
  // Appends the guard's own frames, if gRPC is between two frames.
  void AppendOwnFrames(std::string& to_client);
  // Appends a GOAWAY with `reason` under the same condition.
  void AppendGoAway(absl::string_view reason, std::string& to_client);

  // Bytes that gRPC keeps of messages whose end has not come.
  int64_t incomplete_bytes() const { return incomplete_bytes_; }
  int64_t open_streams() const { return static_cast<int64_t>(streams_.size()); }

 private:
  struct Stream {
    // Of the message that is coming in: bytes of its prefix, and of itself, that are there.
    int prefix = 0;
    uint32_t size = 0;
    int64_t received = 0;
    bool client_ended = false;
    bool server_answered = false;
    bool server_ended = false;
    // Its message is too large: it ends with the frame.
    bool refused = false;
  };
  // A frame header, and how much of its payload is still to come.
  struct Frame {
    uint32_t left = 0;
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
  };

  static Frame Parse(const char* header);
  // Whether the frame may begin now; else sets retry_at_, or returns why the connection must end.
  absl::StatusOr<bool> MayBegin(const Frame& frame, absl::Time now);
  bool Take(platform::TokenBucket& bucket, absl::Time now);
  void BeginClientFrame(const Frame& frame);
  void EndClientFrame(std::string& to_server);
  void TakeMessageBytes(Stream& stream, absl::string_view bytes);
  void Refuse(Stream& stream);
  void CloseStream(uint32_t id);
  void EndServerFrame();

  const Limits limits_;
  bool trusted_ = false;
  platform::TokenBucket streams_bucket_;
  platform::TokenBucket resets_bucket_;
  platform::TokenBucket control_bucket_;
  absl::Time retry_at_ = absl::InfiniteFuture();

  // Of the client's direction.
  size_t preface_ = 0;      // bytes of the preface that came
  bool not_http2_ = false;  // the preface is another protocol's: gRPC sees no more of it
  bool in_frame_ = false;
  Frame frame_;
  uint32_t block_stream_ = 0;  // whose header block is open; 0: none
  int64_t block_bytes_ = 0;
  bool block_ends_stream_ = false;
  uint32_t last_stream_ = 0;
  int64_t incomplete_bytes_ = 0;
  absl::flat_hash_map<uint32_t, Stream> streams_;

  // Of the server's direction.
  std::string server_header_;  // the part of a frame header that came
  Frame server_frame_;
  bool server_in_frame_ = false;
  bool server_in_block_ = false;  // CONTINUATION frames follow
  std::string own_frames_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_FRAME_GUARD_H_
