#include "platform/usable_cpus.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

// Lines of /proc/self/mountinfo in a container, under systemd and on a v1 host.
constexpr char kMountV2[] =
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kMountsV1[] =
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:16 - cgroup cgroup "
    "rw,cpu,cpuacct\n";

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

TEST_F(UsableCpusTest, AllCpusWithoutALimit) {
  EXPECT_EQ(Count().count, 16);
  EXPECT_EQ(Count().limit, "the machine's CPUs");
  EXPECT_EQ(Count(/*affinity_cpus=*/0).count, 16);  // unknown
}

TEST_F(UsableCpusTest, AffinityLimits) {
  EXPECT_EQ(Count(3).count, 3);
  EXPECT_EQ(Count(3).limit, "the CPU affinity");
}

TEST_F(UsableCpusTest, QuotaV2Limits) {
  Write("/proc/self/cgroup", "0::/system.slice/worker.service\n");
  Write("/proc/self/mountinfo", kMountV2);
  Write("/sys/fs/cgroup/system.slice/worker.service/cpu.max", "400000 100000\n");
  EXPECT_EQ(Count().count, 4);
  EXPECT_EQ(Count().limit, "the cgroup's CPU quota of 4");
  EXPECT_EQ(Count(2).limit, "the CPU affinity");
}

TEST_F(UsableCpusTest, QuotaIsRoundedUp) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/proc/self/mountinfo", kMountV2);
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Count().count, 2);
  EXPECT_EQ(Count().limit, "the cgroup's CPU quota of 1.5");
  Write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(Count().count, 1);
}

TEST_F(UsableCpusTest, SmallestQuotaOfParentsLimits) {
  Write("/proc/self/cgroup", "0::/a/b/c\n");
  Write("/proc/self/mountinfo", kMountV2);
  Write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "500000 50000\n");
  EXPECT_EQ(Count().count, 3);
}

TEST_F(UsableCpusTest, QuotaV1Limits) {
  Write("/proc/self/cgroup", "7:cpuset:/x\n4:cpu,cpuacct:/outer/inner\n0::/unrelated\n");
  Write("/proc/self/mountinfo", kMountsV1);
  Write("/sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us", "250000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_period_us", "50000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/outer/inner/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/outer/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Count().count, 5);
}

// Docker without a cgroup namespace: the path is the host's, the mount is the container's.
TEST_F(UsableCpusTest, ContainerWithTheHostsPathLimits) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc/inner\n");
  Write("/proc/self/mountinfo",
        "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Count().count, 2);
  // The process was moved out of the mounted cgroup, so its own files are not visible.
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/elsewhere\n");
  EXPECT_EQ(Count().count, 2);
}

TEST_F(UsableCpusTest, SlurmLimits) {
  environment_ = {{"SLURM_CPUS_PER_TASK", "6"}, {"SLURM_CPUS_ON_NODE", "12"}};
  EXPECT_EQ(Count().count, 6);
  EXPECT_EQ(Count().limit, "SLURM_CPUS_PER_TASK=6");
  EXPECT_EQ(Count(2).count, 2);
  environment_ = {{"SLURM_CPUS_ON_NODE", "12"}};
  EXPECT_EQ(Count().count, 12);
}

TEST_F(UsableCpusTest, NonsenseDoesNotLimit) {
  environment_ = {{"SLURM_CPUS_PER_TASK", "many"}, {"SLURM_CPUS_ON_NODE", "-3"}};
  Write("/proc/self/cgroup", "nonsense\n0::\n3:cpu\n");
  Write("/proc/self/mountinfo", std::string("- \n - \n1 2 3 - cgroup2\n\n") + kMountV2);
  for (const char* text :
       {"", "\n", "max\n", "0 0\n", "-1 100000\n", "nan 100000\n", "1e300 1\n"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Count().count, 16) << text;
  }
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
