"""Short floods without a token: the server's memory stays bounded and every valid call succeeds.

floods.py measures the full cost and fails when a valid call takes more than the 2 s of GUARANTEES.md. Here a call may
take PATIENCE, because a busy machine can stop both processes for seconds.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SERVER = os.environ.get("SERVER", "server/lengthwise_server")
FLOODS = pathlib.Path(__file__).parent / "floods.py"
CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
DEADLINE = 60
PATIENCE = 9


class FloodsTest(unittest.TestCase):
    """Each test floods its own server."""

    def flood(
        self, floods: list[str], *, tls: bool = False, scale: float = 0.5, descriptors: int = 0, has_token: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Starts a server that requires tokens, floods it, and stops it. The probe has a token if `has_token`."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
            path = pathlib.Path(directory)
            token, ready = path / "token", path / "ready"
            data = ["--data_dir", str(path / "data")]
            subprocess.run([SERVER, *data, "--create_admin_token", str(token)], check=True, capture_output=True)
            arguments = [*data, "--listen", "127.0.0.1:0", "--metrics_listen", "", "--ready_file", str(ready)]
            if tls:
                key, certificate = path / "key.pem", path / "certificate.pem"
                subprocess.run(
                    [*CERTIFICATE, "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)],
                    check=True,
                    capture_output=True,
                )
                key.chmod(0o600)
                arguments += ["--tls_certificate", str(certificate), "--tls_key", str(key)]
            limit = f"ulimit -n {descriptors}; " if descriptors else ""
            command = ["bash", "-c", limit + 'exec "$@"', "bash", SERVER, *arguments]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
                try:
                    end = time.monotonic() + DEADLINE
                    while not ready.exists():
                        self.assertIsNone(server.poll(), "the server did not start")
                        self.assertLess(time.monotonic(), end)
                        time.sleep(0.01)
                    address = ready.read_text(encoding="ascii").splitlines()[0]
                    return subprocess.run(
                        [sys.executable, str(FLOODS), "--server", address, "--pid", str(server.pid),
                         *(["--token_file", str(token)] if has_token else []), "--scale", str(scale),
                         "--max_mb", "200", "--max_seconds", str(PATIENCE),
                         *(["--tls"] if tls else []), *floods],
                        capture_output=True, text=True, check=False,
                    )  # fmt: skip
                finally:
                    server.terminate()

    def check(self, result: subprocess.CompletedProcess[str]) -> None:
        """Checks that every flood was one, stayed within the limits, and let every valid call succeed."""
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_floods_in_plain_text_take_bounded_memory(self) -> None:
        self.check(self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"]))

    def test_floods_through_tls_take_bounded_memory(self) -> None:
        self.check(self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"], tls=True))

    def test_a_server_out_of_descriptors_still_answers(self) -> None:
        self.check(self.flood(["descriptors", "descriptors"], scale=0.1, descriptors=64))

    def test_the_probe_reports_a_call_that_fails(self) -> None:
        result = self.flood(["large"], scale=0.01, has_token=False)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("'grpc-status': '16'", result.stderr)  # UNAUTHENTICATED


if __name__ == "__main__":
    unittest.main()
