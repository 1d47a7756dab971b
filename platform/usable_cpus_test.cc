#include "platform/usable_cpus.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lengthwise::platform {
namespace {

// A machine with 16 CPUs whose files are in a test directory.
class UsableCpusTest : public testing::Test {
 protected:
  UsableCpusTest()
      : root_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  UsableCpus Count(int affinity_cpus = 16) {
    return CountUsableCpus({.affinity_cpus = affinity_cpus,
                            .machine_cpus = 16,
                            .root = root_,
                            .getenv = [this](const char* name) -> const char* {
                              const auto found = environment_.find(name);
                              return found == environment_.end() ? nullptr : found->second.c_str();
                            }});
  }

  const std::string root_;
  std::map<std::string, std::string> environment_;
};

TEST_F(UsableCpusTest, AreThoseOfTheCases) {
  std::ifstream file("platform/usable_cpus_cases.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_FALSE(cases.empty());
  for (const auto& one : cases) {
    std::filesystem::remove_all(root_);
    for (const auto& [path, text] : one["files"].items()) Write("/" + path, text);
    environment_ = one["environment"].get<std::map<std::string, std::string>>();
    EXPECT_EQ(Count(one["affinity"]).count, one["cpus"]) << one["name"];
  }
}

TEST_F(UsableCpusTest, LimitIsNamed) {
  EXPECT_EQ(Count().limit, "the machine's CPUs");
  EXPECT_EQ(Count(/*affinity_cpus=*/0).count, 16);  // unknown
  EXPECT_EQ(Count(3).limit, "the CPU affinity");
  environment_ = {{"SLURM_CPUS_PER_TASK", "6"}};
  EXPECT_EQ(Count().limit, "SLURM_CPUS_PER_TASK=6");
  environment_.clear();
  Write("/proc/self/cgroup", "0::/\n");
  Write("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  Write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(Count().limit, "the cgroup's CPU quota of 4");
  EXPECT_EQ(Count(2).limit, "the CPU affinity");
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Count().limit, "the cgroup's CPU quota of 1.5");
}

TEST(UsableCpusOfThisProcessTest, FollowsTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int count = CountUsableCpus().count;
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace lengthwise::platform
