// Counts the CPUs that this process can use, which are often fewer than the machine has.
#ifndef LENGTHWISE_PLATFORM_USABLE_CPUS_H_
#define LENGTHWISE_PLATFORM_USABLE_CPUS_H_

#include <functional>
#include <string>

namespace lengthwise::platform {

struct UsableCpus {
  // At least 1.
  int count = 1;
  // Limit that sets the count, as a noun phrase: "the CPU affinity", "the cgroup's CPU quota of
  // 1.5".
  std::string limit;
};

// Sources of the limits, replaceable in tests.
struct CpuLimitSources {
  // CPUs in the affinity mask (taskset, cpusets). 0 if unknown.
  int affinity_cpus = 0;
  // CPUs of the machine that are online.
  int machine_cpus = 1;
  // Directory that contains proc/self/cgroup, proc/self/mountinfo and the mount points listed
  // there. Empty for the real ones.
  std::string root;
  // Returns null for a variable that is not set.
  std::function<const char*(const char*)> getenv;
};

// Returns the smallest of: the machine's CPUs, the affinity mask, the CPU quotas of the process's
// cgroup and all its parents (v1 and v2), and Slurm's CPUs of the task (SLURM_CPUS_PER_TASK) or
// else of the job on this node (SLURM_CPUS_ON_NODE). Rounds quotas up: a thread that is throttled
// part of the time still adds speed. Ignores limits that cannot be read.
UsableCpus CountUsableCpus(const CpuLimitSources& sources);

// Counts the CPUs of the calling process.
UsableCpus CountUsableCpus();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_USABLE_CPUS_H_
