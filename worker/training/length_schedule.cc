#include "worker/training/length_schedule.h"

#include "random/stream.h"

namespace lengthwise::worker::training {

int64_t LengthOfStep(const v1::Training& training, int64_t step) {
  random::Stream stream(training.schedule_seed(), random::Purpose::kLengths,
                        static_cast<uint64_t>(step));
  return stream.Between(training.lengths().min(), training.lengths().max());
}

}  // namespace lengthwise::worker::training
