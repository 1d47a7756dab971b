"""Floods two builds of the server and prints the table of THREAT_MODEL.md.

    table.py BEFORE AFTER [--scale 1] [FLOOD ...]

BEFORE and AFTER are server programs. Each flood has a fresh server: `hellos` one with an RSA key of 4096 bits, and the
others of TLS one with P-256.
"""

import argparse
import pathlib
import sys
import tempfile

import floods
from flooded_server import serve


def measure(program: str, name: str, scale: float) -> dict[str, object]:
    """Returns the cost of a flood."""
    key = "rsa4096" if name == "hellos" else "ec" if name in floods.TLS_FLOODS else ""
    with tempfile.TemporaryDirectory() as directory, serve(program, pathlib.Path(directory), key) as server:
        host, port = server.address.rsplit(":", 1)
        token = server.token_file.read_text(encoding="ascii").strip()
        return floods.run(floods.Target(host, int(port), bool(key), server.pid, token), name, scale)


def cells(result: dict[str, object]) -> list[str]:
    """Returns a result's part of a row."""
    failures = result["failures"]
    return [
        f"{result['peak_mb']} → {result['after_mb']}",
        f"{result['heartbeats_p99']}, {result['heartbeats_max']}",
        "fails" if failures else str(result["clients_max"]),
    ]


def main() -> int:
    """Prints one row for each flood."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="server program")
    parser.add_argument("after", help="server program")
    parser.add_argument("floods", nargs="*", help="default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the floods; 1 is the full size")
    arguments = parser.parse_intermixed_args()
    head = ["MB: peak → afterwards", "heartbeats, s: p99, max", "new client, s"]
    print("| flood | " + " | ".join(f"{each}, {time}" for time in ("before", "after") for each in head) + " |")
    print("| --- |" + " ---: |" * 6)
    for name in arguments.floods or floods.FLOODS | floods.TLS_FLOODS:
        results = [measure(program, name, arguments.scale) for program in (arguments.before, arguments.after)]
        print(f"| `{name}` | " + " | ".join(cell for result in results for cell in cells(result)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
