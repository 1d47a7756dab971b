"""Counts the CPUs that this process can use, as the programs do (platform/usable_cpus.cc)."""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path


def count_usable_cpus(
    affinity_cpus: int | None = None, root: str = "", environment: Mapping[str, str] = os.environ
) -> int:
    """The smallest of the CPU affinity, the quotas of the process's cgroup and all its parents (v1 and v2), and Slurm's CPUs
    of the task (SLURM_CPUS_PER_TASK) or else of the job on this node (SLURM_CPUS_ON_NODE). At least 1.

    Quotas are rounded up: a thread that is throttled part of the time still adds speed. Limits that cannot be read are
    ignored. Tests replace the arguments. `root` is a directory with proc/self/cgroup, proc/self/mountinfo and the mount
    points listed there.
    """
    limits = [len(os.sched_getaffinity(0)) if affinity_cpus is None else affinity_cpus]
    limits += [math.ceil(quota) for quota in _quotas(root)]
    for variable in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        try:
            limits.append(int(environment[variable]))
            break
        except (KeyError, ValueError):
            continue
    return min(limit for limit in limits if limit >= 1)


def _lines(path: str) -> list[str]:
    """Empty if the file cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return []


def _first_line(path: str) -> str:
    return next(iter(_lines(path)), "")


def _quotas(root: str) -> Iterator[float]:
    """CPU quotas of the process's cgroup and its mounted parents, in CPUs."""
    # "ID:CONTROLLERS:PATH", with no controllers for v2 (cgroups(7)).
    for line in _lines(f"{root}/proc/self/cgroup"):
        fields = line.split(":", 2)
        if len(fields) < 3 or (fields[1] and "cpu" not in fields[1].split(",")):
            continue
        v2 = not fields[1]
        mount = _find_mount(root, v2)
        if mount is None:
            continue
        mounted, point = mount
        path = fields[2]
        # A container may see its cgroup's full path although only that cgroup is mounted.
        if mounted != "/":
            path = path[len(mounted) :] if path.startswith(mounted) else ""
        top = root + point
        directory = top + (path.removesuffix("/") if path.startswith("/") else "")
        while True:
            quota = _read_quota(directory, v2)
            if quota is not None:
                yield quota
            if len(directory) <= len(top):
                break
            directory = directory.rpartition("/")[0]


def _find_mount(root: str, v2: bool) -> tuple[str, str] | None:
    """The mounted cgroup and the mount point of the hierarchy that limits CPU time."""
    # "ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE SUPER_OPTIONS" (proc(5)).
    for line in _lines(f"{root}/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        place, kind = before.split(" "), after.split(" ")
        if len(place) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" if v2 else kind[0] == "cgroup" and "cpu" in kind[2].split(","):
            return place[3], place[4]
    return None


def _read_quota(directory: str, v2: bool) -> float | None:
    """None without a limit: "max", -1, or no such file."""
    if v2:
        quota, _, period = _first_line(f"{directory}/cpu.max").partition(" ")
    else:
        quota, period = _first_line(f"{directory}/cpu.cfs_quota_us"), _first_line(f"{directory}/cpu.cfs_period_us")
    try:
        quota_us, period_us = float(quota), float(period)
    except ValueError:
        return None
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None
