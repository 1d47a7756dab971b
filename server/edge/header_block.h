// Reads and writes HTTP/2 header blocks (HPACK, RFC 7541).
#ifndef LENGTHWISE_SERVER_EDGE_HEADER_BLOCK_H_
#define LENGTHWISE_SERVER_EDGE_HEADER_BLOCK_H_

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::server {

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

// Reads the blocks that one side of a connection sends. Each block may refer to fields of earlier
// ones, so it must get every block, in order.
class HeaderReader {
 public:
  HeaderReader();

  // INVALID_ARGUMENT if the block is malformed. RESOURCE_EXHAUSTED if its fields exceed `most`
  // bytes as RFC 9113 (section 6.5.2) counts them: 32 more than name and value. A block can expand
  // a thousandfold.
  absl::StatusOr<HeaderFields> Read(absl::string_view block, size_t most);

 private:
  struct Delete {
    void operator()(nghttp2_hd_inflater* inflater) const { nghttp2_hd_inflate_del(inflater); }
  };
  std::unique_ptr<nghttp2_hd_inflater, Delete> inflater_;
};

// The value of the first field with this name. Empty if there is none.
absl::string_view FieldOf(const HeaderFields& fields, absl::string_view name);

// A block that neither uses nor changes the reader's table, so that it may stand between blocks of
// another writer. At most as large as its fields are by HeaderReader's count.
std::string WriteHeaderBlock(const HeaderFields& fields);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_HEADER_BLOCK_H_
