"""The manifests of deploy/kubernetes fit Kubernetes' schema and let a worker store its checkpoint before it is killed.

The schema lacks KEDA's ScaledJob and the Prometheus operator's ServiceMonitor and PrometheusRule. The ScaledJob's
pod is validated as the pod of a Job.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile
import unittest
from typing import Any

_DIRECTORY = pathlib.Path("deploy/kubernetes")
# Kinds defined by projects other than Kubernetes.
_FOREIGN = {"ServiceMonitor", "PrometheusRule", "Kustomization", "Component"}


def read_manifests() -> dict[str, dict[str, Any]]:
    """Returns every manifest by its path below deploy/kubernetes."""
    import yaml

    paths = sorted(_DIRECTORY.glob("**/*.yaml"))
    return {str(path.relative_to(_DIRECTORY)): yaml.safe_load(path.read_text()) for path in paths}


def seconds(duration: str) -> int:
    """Parses "90s" or "5m"."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def worker_pods(manifests: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the pods that run workers, by their manifest's path."""
    pods = {}
    for name, manifest in manifests.items():
        if manifest["kind"] == "Job":
            pods[name] = manifest["spec"]["template"]
        elif manifest["kind"] == "ScaledJob":
            pods[name] = manifest["spec"]["jobTargetRef"]["template"]
    return pods


def build(directory: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Returns what kustomize makes of a directory, by kind."""
    import yaml

    done = subprocess.run(["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(done.stdout)}


class KubernetesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.manifests = read_manifests()

    def test_manifests_fit_the_schema(self) -> None:
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("kubernetes-validate is not installed; tests/run.sh installs it")
        version = kubernetes_validate.latest_version()
        kinds = set()
        for name, manifest in self.manifests.items():
            if manifest["kind"] in _FOREIGN:
                continue
            kinds.add(manifest["kind"])
            if manifest["kind"] == "ScaledJob":
                manifest = {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": manifest["metadata"],
                    "spec": manifest["spec"]["jobTargetRef"],
                }
            with self.subTest(name):
                kubernetes_validate.validate(manifest, version, strict=True)
        self.assertEqual(kinds, {"StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job", "ScaledJob"})
        print(f"valid for Kubernetes {version}")

    def test_kustomizations_name_existing_files(self) -> None:
        for name, manifest in self.manifests.items():
            if manifest["kind"] == "Kustomization":
                for resource in manifest["resources"]:
                    self.assertTrue((_DIRECTORY / name).parent.joinpath(resource).exists(), f"{name}: {resource}")

    def test_example_builds_with_and_without_its_components(self) -> None:
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is not installed")
        with tempfile.TemporaryDirectory() as temporary:
            copy = pathlib.Path(temporary, "kubernetes")
            # Kustomize does not follow links out of a directory.
            shutil.copytree(_DIRECTORY, copy, copy_function=shutil.copyfile)
            mine = copy / "mine"
            shutil.copytree(copy / "example", mine)
            for secret in ("server/certificates/tls.crt", "server/certificates/tls.key", "server/certificates/ca.crt"):
                (mine / secret).parent.mkdir(exist_ok=True)
                (mine / secret).write_text("secret")
            (mine / "workers/worker.token").write_text("secret")
            server = build(mine / "server")
            self.assertEqual(sorted(server), ["NetworkPolicy", "PodDisruptionBudget", "Secret", "Service", "StatefulSet"])
            workers = mine / "workers/kustomization.yaml"
            text = workers.read_text()
            job = build(workers.parent)["Job"]
            self.assertNotIn("suspend", job["spec"])
            container = job["spec"]["template"]["spec"]["containers"][0]
            self.assertIn("--device=cuda:0", container["args"])
            self.assertIn("nvidia.com/gpu", container["resources"]["limits"])
            self.assertTrue(container["image"].startswith("registry.example.org/lengthwise:"))

            workers.write_text(text.replace("# components:", "components:").replace("#   - ../../", "  - ../../"))
            job = build(workers.parent)["Job"]
            self.assertIs(job["spec"]["suspend"], True)
            self.assertEqual(job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "lengthwise")
            container = job["spec"]["template"]["spec"]["containers"][0]
            self.assertIn("--device=cpu", container["args"])
            self.assertNotIn("nvidia.com/gpu", container["resources"]["limits"])

            workers.write_text(workers.read_text().replace("- ../../workers ", "- ../../autoscaled_workers "))
            container = build(workers.parent)["ScaledJob"]["spec"]["jobTargetRef"]["template"]["spec"]["containers"][0]
            self.assertIn("--device=cpu", container["args"])
            self.assertNotIn("nvidia.com/gpu", container["resources"]["limits"])

    def test_workers_may_drain_before_they_are_killed(self) -> None:
        for name, pod in worker_pods(self.manifests).items():
            arguments = dict(argument.lstrip("-").split("=", 1) for argument in pod["spec"]["containers"][0]["args"])
            self.assertGreater(pod["spec"]["terminationGracePeriodSeconds"], seconds(arguments["drain_timeout"]), name)
            # Kubernetes would restart a worker that ended because the queue was empty.
            self.assertEqual(pod["spec"]["restartPolicy"], "Never", name)

    def test_both_kinds_of_workers_are_the_same(self) -> None:
        pods = worker_pods(self.manifests)
        self.assertEqual(set(pods), {"workers/job.yaml", "autoscaled_workers/scaled_job.yaml"})
        self.assertEqual(pods["workers/job.yaml"], pods["autoscaled_workers/scaled_job.yaml"])

    def test_prometheus_rule_has_the_rules(self) -> None:
        import yaml

        groups = [
            group
            for name in ("recording_rules.yml", "alerts.yml")
            for group in yaml.safe_load(pathlib.Path("deploy/prometheus", name).read_text())["groups"]
        ]
        self.assertEqual(
            self.manifests["monitoring/prometheus_rule.yaml"]["spec"],
            {"groups": groups},
            "run deploy/kubernetes/monitoring/write_rules.sh",
        )

    def test_scraped_job_is_the_one_of_the_rules(self) -> None:
        monitor = self.manifests["monitoring/service_monitor.yaml"]["spec"]
        labels = self.manifests["server/service.yaml"]["metadata"]["labels"]
        self.assertEqual(labels[monitor["jobLabel"]], "lengthwise")
        self.assertLessEqual(monitor["selector"]["matchLabels"].items(), labels.items())

    def test_nothing_scales_a_deployment(self) -> None:
        # Scaling one down kills any pod, including one that trains.
        kinds = {manifest["kind"] for manifest in self.manifests.values()}
        self.assertFalse(kinds & {"Deployment", "HorizontalPodAutoscaler", "ScaledObject"})


if __name__ == "__main__":
    unittest.main()
