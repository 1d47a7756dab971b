#include "platform/usable_cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lengthwise::platform {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Converts microseconds of CPU time per period to CPUs; nullopt without a limit ("max", -1, or a
// missing file).
std::optional<double> Quota(absl::string_view quota, absl::string_view period) {
  double quota_us = 0, period_us = 0;
  if (!absl::SimpleAtod(quota, &quota_us) || !absl::SimpleAtod(period, &period_us) ||
      !(quota_us > 0) || !(period_us > 0)) {
    return std::nullopt;
  }
  return quota_us / period_us;
}

std::optional<double> QuotaV1(const std::string& directory) {
  return Quota(FirstLine(directory + "/cpu.cfs_quota_us"),
               FirstLine(directory + "/cpu.cfs_period_us"));
}

std::optional<double> QuotaV2(const std::string& directory) {
  const std::pair<std::string, std::string> fields =
      absl::StrSplit(FirstLine(directory + "/cpu.max"), absl::MaxSplits(' ', 1));
  return Quota(fields.first, fields.second);
}

struct Mount {
  std::string root;  // the mounted cgroup
  std::string point;
};

// Lines are "ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE SUPER_OPTIONS" (proc(5)).
std::optional<Mount> FindMount(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<std::string> place = absl::StrSplit(halves.first, ' ');
    const std::vector<std::string> kind = absl::StrSplit(halves.second, ' ');
    if (place.size() < 5 || kind.size() < 3) continue;
    if (v2 ? kind[0] == "cgroup2"
           : kind[0] == "cgroup" && absl::c_linear_search(absl::StrSplit(kind[2], ','), "cpu")) {
      return Mount{.root = place[3], .point = place[4]};
    }
  }
  return std::nullopt;
}

// Returns the smallest quota of the process's cgroup and its mounted parents.
std::optional<double> ReadQuota(const std::string& root) {
  std::optional<double> smallest;
  std::ifstream file(root + "/proc/self/cgroup");
  // Lines are "ID:CONTROLLERS:PATH", with no controllers for v2 (cgroups(7)).
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool v2 = fields[1].empty();
    if (!v2 && !absl::c_linear_search(absl::StrSplit(fields[1], ','), "cpu")) continue;
    const std::optional<Mount> mount = FindMount(root, v2);
    if (!mount.has_value()) continue;
    // A container may see its cgroup's full path although only that cgroup is mounted.
    absl::string_view below = fields[2];
    if (mount->root != "/" && !absl::ConsumePrefix(&below, mount->root)) below = "";
    if (!absl::StartsWith(below, "/")) below = "";
    const std::string top = root + mount->point;
    std::string directory = absl::StrCat(top, absl::StripSuffix(below, "/"));
    while (true) {
      const std::optional<double> quota = v2 ? QuotaV2(directory) : QuotaV1(directory);
      if (quota.has_value()) smallest = std::min(smallest.value_or(*quota), *quota);
      if (directory.size() <= top.size()) break;
      directory.resize(directory.rfind('/'));
    }
  }
  return smallest;
}

}  // namespace

UsableCpus CountUsableCpus(const CpuLimitSources& sources) {
  UsableCpus usable = {.count = std::max(1, sources.machine_cpus), .limit = "the machine's CPUs"};
  const auto limit_to = [&usable](int count, std::string limit) {
    if (count >= 1 && count < usable.count) usable = {.count = count, .limit = std::move(limit)};
  };
  limit_to(sources.affinity_cpus, "the CPU affinity");
  if (const std::optional<double> quota = ReadQuota(sources.root); quota.has_value()) {
    // Clamped, so that a huge quota does not overflow int.
    limit_to(static_cast<int>(std::ceil(std::min(*quota, 1e6))),
             absl::StrCat("the cgroup's CPU quota of ", *quota));
  }
  for (const char* variable : {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}) {
    const char* text = sources.getenv(variable);
    int count = 0;
    if (text == nullptr || !absl::SimpleAtoi(text, &count)) continue;
    limit_to(count, absl::StrCat(variable, "=", count));
    break;
  }
  return usable;
}

UsableCpus CountUsableCpus() {
  CpuLimitSources sources;
  sources.machine_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more than 1,024 CPUs; the affinity then stays unknown.
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) sources.affinity_cpus = CPU_COUNT(&mask);
  sources.getenv = [](const char* name) -> const char* { return std::getenv(name); };
  return CountUsableCpus(sources);
}

}  // namespace lengthwise::platform
