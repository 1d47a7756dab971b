"""Validates the manifests of deploy/kubernetes: check_kubernetes.py DIRECTORY

Kubernetes' own kinds are held against its schema (kubernetes-validate --strict). KEDA's ScaledJob and Prometheus'
ServiceMonitor are not in it: of the first its pod is validated, as that of a Job. Without kubernetes-validate the check
says so and succeeds.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

_FOREIGN = {"ScaledJob", "ServiceMonitor", "Kustomization"}


def fail(message: str) -> None:
    sys.exit(f"check_kubernetes: {message}")


def seconds(duration: str) -> int:
    """Of "90s" or "5m"."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def worker_pods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if resource["kind"] == "Job":
        yield resource["spec"]["template"]
    if resource["kind"] == "ScaledJob":
        yield resource["spec"]["jobTargetRef"]["template"]


def check_worker(name: str, pod: dict[str, Any]) -> None:
    arguments = dict(argument.lstrip("-").split("=", 1) for argument in pod["spec"]["containers"][0]["args"])
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    if grace <= seconds(arguments["drain_timeout"]):
        fail(f"{name}: terminationGracePeriodSeconds is {grace}, no more than --drain_timeout")
    if pod["spec"]["restartPolicy"] != "Never":
        fail(f"{name}: a worker that ended because nothing waits would be started again")


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    try:
        import kubernetes_validate
        import yaml
    except ImportError as error:
        print(f"skipped: {error.name} is not installed (pip install kubernetes-validate)")
        return
    pods = []
    checked = 0
    for path in sorted(directory.glob("*/*.yaml")):
        name = str(path.relative_to(directory))
        resource = yaml.safe_load(path.read_text())
        if resource["kind"] in {"Deployment", "HorizontalPodAutoscaler"}:
            fail(f"{name}: scaling a Deployment down kills any pod, also one that trains")
        if resource["kind"] == "Kustomization":
            for file in resource["resources"]:
                if not (path.parent / file).exists():
                    fail(f"{name}: there is no {file}")
        for pod in worker_pods(resource):
            check_worker(name, pod)
            pods.append(pod)
        if resource["kind"] == "ScaledJob":
            target = dict(resource["spec"]["jobTargetRef"])
            resource = {"apiVersion": "batch/v1", "kind": "Job", "metadata": resource["metadata"], "spec": target}
        if resource["kind"] in _FOREIGN:
            continue
        version = kubernetes_validate.latest_version()
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            fail(f"{name}: {error.message}")
        checked += 1
    if checked < 5 or len(pods) != 2:
        fail(f"only {checked} manifests and {len(pods)} workers were found in {directory}")
    if pods[0] != pods[1]:
        fail("the workers of workers/ and of autoscaled_workers/ differ")
    print(f"{checked} manifests are valid for Kubernetes {version}")


if __name__ == "__main__":
    main()
