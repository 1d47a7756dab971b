#include "worker/connection/backoff.h"

#include <set>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

const Backoff::Options kOptions = {.initial = absl::Milliseconds(100), .maximum = absl::Seconds(5)};

TEST(Backoff, DoublesUpToTheMaximumWithinHalfOfJitter) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    Backoff backoff(kOptions, seed);
    for (const double longest : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0}) {
      const double wait = absl::ToDoubleSeconds(backoff.Next());
      EXPECT_GE(wait, longest / 2 - 1e-9);
      EXPECT_LE(wait, longest + 1e-9);
    }
  }
}

TEST(Backoff, ResetsAfterASuccess) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 10; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(100));
}

TEST(Backoff, DifferentSeedsGiveDifferentWaits) {
  std::set<absl::Duration> waits;
  for (uint32_t seed = 1; seed <= 20; ++seed) waits.insert(Backoff(kOptions, seed).Next());
  EXPECT_GT(waits.size(), 15u);
}

}  // namespace
}  // namespace lengthwise::worker
