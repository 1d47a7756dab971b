"""Short floods without a token: the server's memory stays bounded and every valid call succeeds.

floods.py measures the full cost and fails when a valid call takes more than the 2 s of GUARANTEES.md. Here a call may
take PATIENCE, because a busy machine can stop both processes for seconds.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from flooded_server import serve

SERVER = os.environ.get("SERVER", "server/lengthwise_server")
FLOODS = pathlib.Path(__file__).parent / "floods.py"
PATIENCE = 9


class FloodsTest(unittest.TestCase):
    """Each test floods its own server."""

    def flood(
        self,
        floods: list[str],
        *,
        key: str = "",
        scale: float = 0.5,
        descriptors: int = 0,
        has_token: bool = True,
        max_mb: int = 200,
    ) -> subprocess.CompletedProcess[str]:
        """Floods a server that requires tokens. The probe has a token if `has_token`."""
        with (
            tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory,
            serve(SERVER, pathlib.Path(directory), key, descriptors) as server,
        ):
            return subprocess.run(
                [sys.executable, str(FLOODS), "--server", server.address, "--pid", str(server.pid),
                 *(["--token_file", str(server.token_file)] if has_token else []), "--scale", str(scale),
                 "--max_mb", str(max_mb), "--max_seconds", str(PATIENCE), *(["--tls"] if key else []), *floods],
                capture_output=True, text=True, check=False,
            )  # fmt: skip

    def check(self, result: subprocess.CompletedProcess[str]) -> None:
        """Checks that every flood was one, stayed within the limits, and let every valid call succeed."""
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_floods_in_plain_text_take_bounded_memory(self) -> None:
        self.check(self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"]))

    def test_floods_through_tls_take_bounded_memory(self) -> None:
        self.check(self.flood(["gzip", "large", "resets", "continuation", "halves", "streams"], key="ec"))

    def test_streams_that_nobody_reads_take_bounded_memory(self) -> None:
        self.check(self.flood(["reflection", "health_watch", "health_check", "tiny"], scale=0.15))

    def test_neighbours_with_a_token_delay_nobody_for_long(self) -> None:
        self.check(self.flood(["neighbours_resolves", "neighbours_specifications"], scale=0.2, max_mb=500))
        self.check(self.flood(["neighbours_halves"], scale=0.3, max_mb=500))
        self.check(self.flood(["submitters_grids"], scale=0.1, max_mb=500))

    def test_control_frames_cost_little_with_and_without_a_token(self) -> None:
        self.check(self.flood(["control", "neighbours_control", "neighbours_pings", "neighbours_windows"], scale=0.1))
        self.check(self.flood(["neighbours_held"], scale=0.2, max_mb=500))

    def test_connections_that_begin_slowly_keep_nobody_out(self) -> None:
        self.check(self.flood(["slow"], scale=0.2))
        self.check(self.flood(["slow"], key="ec", scale=0.2))

    def test_connections_of_one_user_leave_room_for_others(self) -> None:
        # For 32 connections.
        self.check(self.flood(["neighbours_connections"], scale=0.2, descriptors=256))

    def test_neighbours_who_read_nothing_take_bounded_memory(self) -> None:
        for name in ("neighbours_tiny", "neighbours_requests", "neighbours_fields", "neighbours_reflection"):
            self.check(self.flood([name], scale=0.1, max_mb=500))
        # A server without limits needs more time for answers until it has too many.
        for name in ("neighbours_small_answers", "neighbours_catalogue", "neighbours_descriptors", "neighbours_long_answers",
                     "neighbours_watchers", "neighbours_metadata", "neighbours_resets"):  # fmt: skip
            self.check(self.flood([name], scale=0.2, max_mb=500))
        self.check(self.flood(["neighbours_pages"], scale=0.2, max_mb=300))

    def test_workers_take_bounded_memory(self) -> None:
        for name in ("workers_calls", "workers_events", "workers_uploads"):
            self.check(self.flood([name], scale=0.1, max_mb=500))
        for name in ("workers_leases", "workers_resets"):
            self.check(self.flood([name], scale=0.2, max_mb=500))

    def test_key_updates_delay_nobody_for_long(self) -> None:
        self.check(self.flood(["key_updates"], key="ec", scale=0.3))

    def test_handshakes_delay_nobody_for_long(self) -> None:
        self.check(self.flood(["hellos"], key="rsa4096", scale=0.15))

    def test_a_server_out_of_descriptors_still_answers(self) -> None:
        # For 256 connections: with fewer, strangers of 64 addresses leave newcomers none.
        self.check(self.flood(["descriptors", "descriptors"], scale=0.2, descriptors=1024))

    def test_the_table_of_the_threat_model_gets_the_row_of_a_flood(self) -> None:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
            document = pathlib.Path(directory) / "document.md"
            document.write_text("  After: old.\n\n| flood |\n| --- |\n| `tiny` | 1 | 2 | 3 | 4 |\n\nText.\n")
            for name in ("health_watch", "tiny"):
                subprocess.run(
                    [sys.executable, str(FLOODS.with_name("table.py")), SERVER, "--document", str(document), "--scale",
                     "0.05", name], check=True, capture_output=True,
                )  # fmt: skip
            number = r"\d+(\.\d+)?"
            after = rf" \d+ → \d+ \| {number}, {number} \| {number} \| {number} \|"
            self.assertRegex(
                document.read_text(encoding="utf-8"),
                rf"^  After: 0.05 of .*\n\n\| flood \|\n\| --- \|\n\| `tiny` \| 1 \| 2 \| 3 \|{after}\n"
                rf"\| `health_watch` \| \| \| \|{after}\n\nText.\n$",
            )

    def test_the_probe_reports_a_call_that_fails(self) -> None:
        result = self.flood(["large"], scale=0.01, has_token=False)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("'grpc-status': '16'", result.stderr)  # UNAUTHENTICATED


if __name__ == "__main__":
    unittest.main()
