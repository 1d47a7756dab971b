"""Starts a server that asks for tokens, for floods."""

import contextlib
import dataclasses
import pathlib
import subprocess
import time
from collections.abc import Iterator

KEYS = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa4096": ["rsa:4096"]}
DEADLINE = 60


@dataclasses.dataclass
class Server:
    """A running server."""

    address: str
    pid: int
    token_file: pathlib.Path


@contextlib.contextmanager
def serve(program: str, directory: pathlib.Path, key: str = "", descriptors: int = 0) -> Iterator[Server]:
    """Runs the server, with TLS if `key` is one of KEYS, with at most `descriptors` open files, and stops it."""
    token, ready = directory / "token", directory / "ready"
    data = ["--data_dir", str(directory / "data")]
    subprocess.run([program, *data, "--create_admin_token", str(token)], check=True, capture_output=True)
    arguments = [*data, "--listen", "127.0.0.1:0", "--metrics_listen", "", "--ready_file", str(ready)]
    if key:
        private, certificate = directory / "key.pem", directory / "certificate.pem"
        request = ["openssl", "req", "-x509", "-newkey", *KEYS[key], "-nodes", "-days", "1", "-subj", "/CN=localhost"]
        files = ["-keyout", str(private), "-out", str(certificate)]
        subprocess.run([*request, *files], check=True, capture_output=True)
        private.chmod(0o600)
        arguments += ["--tls_certificate", str(certificate), "--tls_key", str(private)]
    limit = f"ulimit -n {descriptors}; " if descriptors else ""
    command = ["bash", "-c", limit + 'exec "$@"', "bash", program, *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + DEADLINE
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("the server did not start")
                time.sleep(0.01)
            yield Server(ready.read_text(encoding="ascii").splitlines()[0], server.pid, token)
        finally:
            server.terminate()
            try:
                server.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                server.kill()
