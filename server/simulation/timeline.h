// Simulated time and random events.
#ifndef LENGTHWISE_SERVER_SIMULATION_TIMELINE_H_
#define LENGTHWISE_SERVER_SIMULATION_TIMELINE_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>

#include "absl/time/time.h"

namespace lengthwise::server {

// Runs actions in the order of their times; at equal times, in the order in which they were added.
// The same seed gives the same run on every machine.
class Timeline {
 public:
  explicit Timeline(uint64_t seed) : random_(seed) {}

  absl::Time now() const { return now_; }
  int64_t events() const { return events_; }

  void After(absl::Duration wait, std::function<void()> happen) {
    queue_.push({now_ + wait, ++asked_, std::move(happen)});
  }
  // False if nothing is left.
  bool RunNext() {
    if (queue_.empty()) return false;
    // The action may add more.
    const std::function<void()> happen = std::move(const_cast<Entry&>(queue_.top()).happen);
    now_ = queue_.top().time;
    queue_.pop();
    ++events_;
    happen();
    return true;
  }

  // From 0 to bound - 1.
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  bool Chance(int64_t one_in) { return one_in > 0 && Below(one_in) == 0; }
  // A random duration between `least` and `most` milliseconds.
  absl::Duration Between(int64_t least, int64_t most) {
    return absl::Microseconds(1000 * least + Below(1000 * (most - least) + 1));
  }

 private:
  struct Entry {
    absl::Time time;
    int64_t asked = 0;
    std::function<void()> happen;
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::pair(a.time, a.asked) > std::pair(b.time, b.asked);
    }
  };

  std::mt19937_64 random_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  int64_t asked_ = 0;
  int64_t events_ = 0;
  std::priority_queue<Entry> queue_;
};

// Probabilities of faults, as one in N. 0: never.
struct Weather {
  int64_t message_lost = 40;
  int64_t message_doubled = 40;
  int64_t message_delayed = 20;  // for seconds, so that later messages overtake it
  int64_t commit_fails = 400;
  int64_t server_dies = 4000;   // in a group
  int64_t worker_dies = 1500;   // at a heartbeat, by SIGKILL
  int64_t worker_drains = 700;  // at a heartbeat, by SIGTERM
  int64_t partition = 500;      // at a heartbeat
};

inline constexpr Weather kFairWeather = {0, 0, 0, 0, 0, 0, 0, 0};

// The network between workers and the server: loses, duplicates and delays messages.
class Network {
 public:
  Network(Timeline& timeline, const Weather& weather) : timeline_(timeline), weather_(weather) {}

  void Send(bool reachable, const std::function<void()>& arrive) {
    if (!reachable || timeline_.Chance(weather_.message_lost)) return;
    const int copies = timeline_.Chance(weather_.message_doubled) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      const bool late = copy > 0 || timeline_.Chance(weather_.message_delayed);
      timeline_.After(late ? timeline_.Between(1, 9000) : timeline_.Between(1, 20), arrive);
    }
  }

 private:
  Timeline& timeline_;
  const Weather& weather_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_TIMELINE_H_
