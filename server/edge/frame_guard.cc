#include "server/edge/frame_guard.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

// RFC 9113, sections 3.4, 4.1, 6 and 7.
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kHeaderBytes = 9;
constexpr uint8_t kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kGoAway = 7,
                  kWindowUpdate = 8, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4, kPadded = 8, kPriority = 32;
constexpr size_t kPriorityBytes = 5;
constexpr uint32_t kNoError = 0, kCancel = 8, kEnhanceYourCalm = 11;
constexpr absl::string_view kMaxConcurrentStreams("\0\3", 2);
// Before each gRPC message: one byte of flags and four of its length.
constexpr int kPrefixBytes = 5;
// What gRPC needs for a DATA frame beside its bytes.
constexpr int64_t kFrameCost = 256;
// A smaller DATA frame that does not end its stream is tiny: its bytes cost gRPC up to a hundred
// times their number.
constexpr uint32_t kTinyData = 64;
// Most messages of a call that are smaller. gRPC needs seventy bytes for each that nobody reads.
constexpr int kMostTinyMessages = 100;
// Pause before a principal that has its most streams is looked at again.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::string_view kHealthCheck = "/grpc.health.v1.Health/Check";

uint32_t ReadBigEndian(const char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

void AppendFrame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload,
                 std::string& to) {
  absl::StrAppend(&to, BigEndian(static_cast<uint32_t>(payload.size())).substr(1),
                  std::string(1, static_cast<char>(type)), std::string(1, static_cast<char>(flags)),
                  BigEndian(stream), payload);
}

// A response that consists of a status (gRPC's "Trailers-Only").
std::string Answer(const absl::Status& status) {
  std::string message;  // percent-encoded
  for (const char c : status.message()) {
    if (c >= ' ' && c <= '~' && c != '%') {
      message += c;
    } else {
      absl::StrAppend(&message, "%", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
  }
  return WriteHeaderBlock({{":status", "200"},
                           {"content-type", "application/grpc"},
                           {"grpc-status", absl::StrCat(static_cast<int>(status.code()))},
                           {"grpc-message", message}});
}

}  // namespace

FrameGuard::FrameGuard(const Limits& limits, Admit admit)
    : limits_(limits),
      admit_(std::move(admit)),
      principal_(std::make_shared<Principal>(limits.stranger)),
      control_bucket_(limits.control_rate, limits.control_burst),
      headers_(std::make_unique<HeaderReader>()) {}

FrameGuard::~FrameGuard() { principal_->open_streams -= open_streams(); }

FrameGuard::Frame FrameGuard::Parse(const char* header) {
  Frame frame;
  frame.left = ReadBigEndian(header, 3);
  frame.type = static_cast<uint8_t>(header[3]);
  frame.flags = static_cast<uint8_t>(header[4]);
  frame.stream = ReadBigEndian(header + 5, 4) & 0x7fffffff;
  return frame;
}

bool FrameGuard::Take(platform::TokenBucket& bucket, absl::Time now) {
  if (!turn_.has_value()) turn_ = bucket.Reserve(now);
  if (now < *turn_) {
    retry_at_ = *turn_;
    return false;
  }
  return true;
}

absl::StatusOr<bool> FrameGuard::MayBegin(const Frame& frame, absl::Time now) {
  if (block_stream_ != 0 && (frame.type != kContinuation || frame.stream != block_stream_)) {
    return absl::InvalidArgumentError("a header block is interrupted by another frame");
  }
  const bool has_padding = frame.type == kData || frame.type == kHeaders;
  if (has_padding && (frame.flags & kPadded) != 0) {
    return absl::InvalidArgumentError("frames with padding are not accepted");
  }
  switch (frame.type) {
    case kHeaders:
    case kContinuation: {
      if (frame.stream == 0) return absl::InvalidArgumentError("a header block has no stream");
      if (frame.type == kContinuation && block_stream_ == 0) {
        return absl::InvalidArgumentError("a CONTINUATION frame continues nothing");
      }
      const int64_t before = frame.type == kContinuation ? block_bytes_ : 0;
      // Frame headers count too, or endless empty CONTINUATION frames would pass the limit.
      if (before + frame.left + (frame.type == kContinuation ? kHeaderBytes : 0) >
          static_cast<uint64_t>(limits_.header_bytes)) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the headers of a call are larger than ", limits_.header_bytes, " bytes"));
      }
      if (frame.type == kContinuation) return true;
      if (frame.stream <= last_stream_) return Take(control_bucket_, now);
      if (open_streams() >= principal_->most_streams_of_a_connection) return false;
      if (principal_->open_streams >= principal_->most_streams) {
        retry_at_ = now + kLookAgain;
        return false;
      }
      return Take(principal_->new_streams, now);
    }
    case kData:
      // Strangers have nothing to send but a health check's small message.
      return (is_trusted() && (frame.left >= kTinyData || (frame.flags & kEndStream) != 0)) ||
             Take(control_bucket_, now);
    case kRstStream: {
      const auto stream = streams_.find(frame.stream);
      if (stream == streams_.end()) return Take(control_bucket_, now);
      return stream->second.server_answered || Take(principal_->resets, now);
    }
    case kWindowUpdate:
      return Take(is_trusted() ? principal_->window_updates : control_bucket_, now);
    default:
      return Take(control_bucket_, now);
  }
}

void FrameGuard::BeginClientFrame(const Frame& frame) {
  frame_ = frame;
  turn_.reset();  // also of a reset whose call was answered meanwhile
  const bool is_block = frame.type == kHeaders || frame.type == kContinuation;
  if (frame.type == kHeaders) {
    block_bytes_ = 0;
    block_stream_ = frame.stream;
    block_opens_stream_ = frame.stream > last_stream_;
    block_ends_stream_ = (frame.flags & kEndStream) != 0;
    if (block_opens_stream_) {
      last_stream_ = frame.stream;
      streams_.try_emplace(frame.stream);
      ++principal_->open_streams;
    }
  }
  if (frame.type == kContinuation) block_bytes_ += kHeaderBytes;
  if (is_block) block_bytes_ += frame.left;
  // A block that the guard reads passes at its end. gRPC knows no stream whose call was refused.
  frame_passes_ = is_block ? headers_ == nullptr
                           : is_trusted() || frame.stream == 0 || streams_.contains(frame.stream);
  if (frame.type == kData && !frame_passes_ && frame.left > 0) {
    AppendFrame(kWindowUpdate, 0, 0, BigEndian(frame.left), own_frames_);
  }
}

absl::Status FrameGuard::EndClientFrame(std::string& to_server) {
  bool ends = frame_.type == kData && (frame_.flags & kEndStream) != 0;
  if (block_stream_ != 0 && headers_ != nullptr && (frame_.flags & kPriority) != 0 &&
      frame_.type == kHeaders && !fields_.has_value()) {
    if (block_.size() < kPriorityBytes) return absl::InvalidArgumentError("a frame is too short");
    block_.erase(0, kPriorityBytes);
  }
  if (block_stream_ != 0 && (frame_.flags & kEndHeaders) != 0) {
    ends = block_ends_stream_;
    if (headers_ != nullptr) {
      RETURN_IF_ERROR(EndBlock(to_server));
      if (fields_.has_value()) return absl::OkStatus();
    }
    block_stream_ = 0;
  }
  const auto found = streams_.find(frame_.stream);
  if (found == streams_.end()) return absl::OkStatus();
  Stream& stream = found->second;
  if (!stream.refusal.ok()) {
    // gRPC drops later frames of a stream that it considers reset.
    AppendFrame(kRstStream, 0, frame_.stream, BigEndian(kCancel), to_server);
    Refuse(frame_.stream, absl::Status(stream.refusal));
    return absl::OkStatus();
  }
  if (block_opens_stream_ && (frame_.type == kHeaders || frame_.type == kContinuation)) {
    held_bytes_ += block_bytes_ - std::exchange(stream.block, block_bytes_);
  }
  stream.client_ended |= ends;
  if (frame_.type == kRstStream || (stream.client_ended && stream.server_ended)) {
    CloseStream(frame_.stream);
  }
  return absl::OkStatus();
}

absl::Status FrameGuard::EndBlock(std::string& to_server) {
  if (!fields_.has_value()) {
    ASSIGN_OR_RETURN(fields_, headers_->Read(block_, limits_.header_bytes));
  }
  const uint32_t id = frame_.stream;
  const absl::string_view path = FieldOf(*fields_, ":path");
  const bool asks = !is_trusted() && block_opens_stream_ && path != kHealthCheck;
  absl::StatusOr<std::shared_ptr<Principal>> principal = nullptr;
  if (asks) {
    principal = admit_(absl::StripPrefix(path, "/"), FieldOf(*fields_, "authorization"));
    if (principal.ok() && *principal == nullptr) return absl::OkStatus();
  }
  const HeaderFields fields = *std::exchange(fields_, std::nullopt);
  const std::string block = std::exchange(block_, {});
  if (!principal.ok()) Refuse(id, principal.status());
  if (asks && principal.ok()) {
    is_trusted_ = true;
    principal_ = *std::move(principal);
    principal_->open_streams += open_streams();
    const auto most = static_cast<uint32_t>(principal_->most_streams_of_a_connection);
    if (most < Principal::kMostStreams) {
      AppendFrame(kSettings, 0, 0, absl::StrCat(kMaxConcurrentStreams, BigEndian(most)),
                  own_frames_);
    }
  }
  // Of a call that was refused, now or before.
  if (!is_trusted() && !streams_.contains(id)) {
    withheld_ = true;
    return absl::OkStatus();
  }
  AppendFrame(kHeaders, kEndHeaders | (block_ends_stream_ ? kEndStream : 0), id,
              withheld_ ? WriteHeaderBlock(fields) : block, to_server);
  if (is_trusted() && !withheld_) headers_.reset();
  return absl::OkStatus();
}

void FrameGuard::CloseStream(uint32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  held_bytes_ -= found->second.held + found->second.block;
  streams_.erase(found);
  --principal_->open_streams;
}

void FrameGuard::Refuse(uint32_t id, const absl::Status& status) {
  const bool answered = streams_[id].server_answered;
  if (!answered) AppendFrame(kHeaders, kEndStream | kEndHeaders, id, Answer(status), own_frames_);
  // gRPC clients map ENHANCE_YOUR_CALM to RESOURCE_EXHAUSTED if no status came before.
  AppendFrame(kRstStream, 0, id, BigEndian(answered ? kEnhanceYourCalm : kNoError), own_frames_);
  CloseStream(id);
}

void FrameGuard::TakeMessageBytes(Stream& stream, absl::string_view bytes) {
  const int64_t most = principal_->most_message_bytes;
  const int most_messages = is_trusted() ? kMostTinyMessages : 1;
  while (!bytes.empty() && stream.refusal.ok()) {
    if (stream.prefix < kPrefixBytes) {
      if (stream.prefix > 0) stream.size = stream.size << 8 | static_cast<uint8_t>(bytes[0]);
      bytes.remove_prefix(1);
      if (++stream.prefix < kPrefixBytes) continue;
      if (stream.size > most) {
        stream.refusal = absl::ResourceExhaustedError(
            absl::StrCat("a message has ", stream.size, " bytes; accepted: at most ", most));
        return;
      }
    }
    const size_t part = std::min<size_t>(bytes.size(), stream.size - stream.received);
    stream.received += static_cast<int64_t>(part);
    bytes.remove_prefix(part);
    if (stream.received == stream.size) {
      const bool is_tiny = stream.size < kTinyData || !is_trusted();
      if (is_tiny && ++stream.messages > most_messages) {
        stream.refusal = absl::ResourceExhaustedError(
            absl::StrCat("such a call has at most ", most_messages, " small messages"));
      }
      held_bytes_ -= std::exchange(stream.held, 0);
      stream.prefix = 0;
      stream.size = 0;
      stream.received = 0;
    } else {
      stream.held += static_cast<int64_t>(part) + kFrameCost;
      held_bytes_ += static_cast<int64_t>(part) + kFrameCost;
    }
  }
}

absl::StatusOr<size_t> FrameGuard::FromClient(absl::string_view bytes, absl::Time now,
                                              std::string& to_server) {
  retry_at_ = absl::InfiniteFuture();
  if (fields_.has_value()) {
    RETURN_IF_ERROR(EndClientFrame(to_server));
  }
  absl::string_view rest = bytes;
  const auto pass = [&](size_t count) {
    if (frame_passes_) to_server.append(rest.data(), count);
    rest.remove_prefix(count);
  };
  if (preface_ < kPreface.size()) {
    const size_t part = std::min(rest.size(), kPreface.size() - preface_);
    if (rest.substr(0, part) != kPreface.substr(preface_, part)) {
      return absl::InvalidArgumentError(
          "this is not HTTP/2; does the client use TLS where the server does not?");
    }
    preface_ += part;
    pass(part);
  }
  while (true) {
    if (fields_.has_value()) return bytes.size() - rest.size();
    if (frame_.left == 0) {
      if (rest.size() < kHeaderBytes) return bytes.size() - rest.size();
      const Frame frame = Parse(rest.data());
      ASSIGN_OR_RETURN(const bool may, MayBegin(frame, now));
      if (!may) return bytes.size() - rest.size();
      BeginClientFrame(frame);
      pass(kHeaderBytes);
    }
    const size_t part = std::min<size_t>(rest.size(), frame_.left);
    if (frame_.type == kData) {
      if (const auto stream = streams_.find(frame_.stream); stream != streams_.end()) {
        TakeMessageBytes(stream->second, rest.substr(0, part));
      }
    }
    if (block_stream_ != 0 && headers_ != nullptr) absl::StrAppend(&block_, rest.substr(0, part));
    pass(part);
    frame_.left -= part;
    if (frame_.left > 0) return bytes.size() - rest.size();
    RETURN_IF_ERROR(EndClientFrame(to_server));
  }
}

void FrameGuard::FromServer(absl::string_view bytes, std::string& to_client) {
  while (!bytes.empty()) {
    if (server_frame_.left == 0) {
      AppendOwnFrames(to_client);
      const size_t part = std::min(bytes.size(), kHeaderBytes - server_header_.size());
      server_header_.append(bytes.data(), part);
      to_client.append(bytes.data(), part);
      bytes.remove_prefix(part);
      if (server_header_.size() < kHeaderBytes) return;
      server_frame_ = Parse(server_header_.data());
      server_header_.clear();
    }
    const size_t part = std::min<size_t>(bytes.size(), server_frame_.left);
    to_client.append(bytes.data(), part);
    bytes.remove_prefix(part);
    server_frame_.left -= part;
    if (server_frame_.left == 0) EndServerFrame();
  }
  AppendOwnFrames(to_client);
}

void FrameGuard::EndServerFrame() {
  server_began_ = true;
  if (server_frame_.type == kHeaders || server_frame_.type == kContinuation) {
    server_in_block_ = (server_frame_.flags & kEndHeaders) == 0;
  }
  const bool ends = (server_frame_.type == kData || server_frame_.type == kHeaders) &&
                    (server_frame_.flags & kEndStream) != 0;
  const auto found = streams_.find(server_frame_.stream);
  if (found == streams_.end()) return;
  // Not by a window for the rest of its message.
  found->second.server_answered |= server_frame_.type == kHeaders;
  if (!ends && server_frame_.type != kRstStream) return;
  found->second.server_ended = true;
  if (server_frame_.type == kRstStream || found->second.client_ended) {
    CloseStream(server_frame_.stream);
  }
}

void FrameGuard::AppendOwnFrames(std::string& to_client) {
  const bool between =
      server_began_ && server_frame_.left == 0 && !server_in_block_ && server_header_.empty();
  if (between) to_client += std::exchange(own_frames_, {});
}

void FrameGuard::AppendGoAway(absl::string_view reason, std::string& to_client) {
  AppendFrame(kGoAway, 0, 0,
              absl::StrCat(BigEndian(last_stream_), BigEndian(kEnhanceYourCalm), reason),
              own_frames_);
  AppendOwnFrames(to_client);
}

}  // namespace lengthwise::server
