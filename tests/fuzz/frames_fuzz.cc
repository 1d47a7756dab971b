// HTTP/2 frames of both directions, as they arrive at the server's edge.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/edge/frame_guard.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  if (size < 1) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  using Principal = server::FrameGuard::Principal;
  const auto principal = std::make_shared<Principal>();
  server::FrameGuard guard({},
                           [&](absl::string_view method,
                               absl::string_view) -> absl::StatusOr<std::shared_ptr<Principal>> {
                             if (method == "known") return principal;
                             return absl::UnauthenticatedError("unknown");
                           });
  const absl::Time now = absl::UnixEpoch();
  std::string rest = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", to_server, to_client;
  // Split into parts of a size that the input chooses. Each part goes both ways.
  const size_t part = 1 + data[0];
  for (size_t at = 0; at < bytes.size(); at += part) {
    rest += std::string(bytes.substr(at, part));
    const auto taken = guard.FromClient(rest, now, to_server);
    if (!taken.ok()) return 0;
    Must(*taken <= rest.size(), "no more is taken than given");
    rest.erase(0, *taken);
    guard.FromServer(bytes.substr(at, part), to_client);
    Must(guard.held_bytes() >= 0, "message sizes are not negative");
    Must(guard.held_bytes() <= 257 * static_cast<int64_t>(bytes.size()),
         "no message exceeds the bytes sent, with 256 for each frame");
    const server::FrameGuard::Limits limits;
    const int64_t most =
        guard.is_trusted() ? principal->most_streams : limits.stranger.most_streams_of_a_connection;
    Must(guard.open_streams() <= most, "the limit holds");
    Must(principal->open_streams == (guard.is_trusted() ? guard.open_streams() : 0),
         "the principal has the streams of its connections");
  }
  return 0;
}
