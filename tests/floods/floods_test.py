"""Short floods without a token: the server's memory stays bounded and a valid client gets answers.

floods.py measures the full cost. This test checks memory bounds and that every valid call is answered, not how fast:
the probe has a long timeout.
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


class FloodsTest(unittest.TestCase):
    """Each test floods its own server."""

    def flood(self, floods: list[str], *, tls: bool = False, scale: float = 0.5, descriptors: int = 0) -> None:
        """Starts a server that requires tokens, floods it, and stops it."""
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
                    result = subprocess.run(
                        [sys.executable, str(FLOODS), "--server", address, "--pid", str(server.pid), "--token_file",
                         str(token), "--scale", str(scale), "--max_mb", "200", "--max_seconds", "9",
                         *(["--tls"] if tls else []), *floods],
                        capture_output=True, text=True, check=False,
                    )  # fmt: skip
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                finally:
                    server.terminate()

    def test_floods_in_plain_text_take_bounded_memory(self) -> None:
        self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"])

    def test_floods_through_tls_take_bounded_memory(self) -> None:
        self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"], tls=True)

    def test_a_server_out_of_descriptors_still_answers(self) -> None:
        self.flood(["descriptors", "descriptors"], scale=0.1, descriptors=64)


if __name__ == "__main__":
    unittest.main()
