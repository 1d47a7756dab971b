// LengthBuckets: ranges of lengths, by which the accuracies of a running trial are shown.
#ifndef LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_
#define LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_

#include <cstdint>
#include <string>

namespace lengthwise::server {

// At most kMost ranges of equal width, from 1 to the longest length. The width divides the longest
// training length, so that no range mixes seen and unseen lengths, unless that would leave fewer
// than a third of the ranges. Otherwise it is a round number.
class LengthBuckets {
 public:
  static constexpr int32_t kMost = 20;

  // `seen_up_to` 0: unknown.
  LengthBuckets(int32_t seen_up_to, int32_t longest);

  int32_t width() const { return width_; }

  // "041-060", or "041" for a range of one length. Labels sort as text in the order of lengths.
  // Lengths beyond the longest belong to the last range, lengths below 1 to the first.
  std::string Label(int32_t length) const;

 private:
  const int32_t longest_;
  const int32_t width_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_
