"""Floods a build of the server and writes its half of the table of THREAT_MODEL.md, row by row.

    table.py SERVER [--document THREAT_MODEL.md] [--scale 1] [FLOOD ...]

Each flood has a fresh server: `hellos` one with an RSA key of 4096 bits, and the others of TLS one with P-256. The half
"before" stays as it is: the probe does not speak the API of earlier builds.
"""

import argparse
import datetime
import os
import pathlib
import sys
import tempfile

import floods
from flooded_server import serve
from wire import Target

# Columns of a row that stay: the flood and the half "before".
KEPT = 4
CONDITIONS = "  After: "


def measure(program: str, name: str, scale: float) -> dict[str, object]:
    """Returns the cost of a flood."""
    key = "rsa4096" if name == "hellos" else "ec" if name in floods.TLS_FLOODS else ""
    with tempfile.TemporaryDirectory() as directory, serve(program, pathlib.Path(directory), key) as server:
        host, port = server.address.rsplit(":", 1)
        token = server.token_file.read_text(encoding="ascii").strip()
        return floods.run(Target(host, int(port), bool(key), server.pid, token), name, scale)


def cells(result: dict[str, object]) -> list[str]:
    """Returns a result's part of a row."""
    return [
        f"{result['peak_mb']} → {result['after_mb']}" if result["after_mb"] else f"{result['peak_mb']}, the server ended",
        f"{result['heartbeats_p99']}, {result['heartbeats_max']}",
        str(result["points_max"]),
        "fails" if result["failures"] else str(result["clients_max"]),
    ]


def put(document: pathlib.Path, name: str, part: list[str], conditions: str) -> None:
    """Puts a flood's part of its row into the document's table, whose last row it becomes if it has none."""
    lines = document.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| flood |"))
    end = next((number for number in range(first, len(lines)) if not lines[number].startswith("|")), len(lines))
    row = next((number for number in range(first, end) if lines[number].startswith(f"| `{name}`")), end)
    if row == end:
        lines.insert(end, f"| `{name}` |" + " |" * (KEPT - 1))
    lines[row] = "|".join(lines[row].split("|")[: KEPT + 1]) + "| " + " | ".join(part) + " |"
    lines = [conditions if line.startswith(CONDITIONS) else line for line in lines]
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Writes one row for each flood."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="server program")
    parser.add_argument("floods", nargs="*", help="default: all")
    parser.add_argument("--document", type=pathlib.Path, default=pathlib.Path("THREAT_MODEL.md"))
    parser.add_argument("--scale", type=float, default=1.0, help="size of the floods; 1 is the full size")
    arguments = parser.parse_intermixed_args()
    conditions = (
        f"{CONDITIONS}{arguments.scale:g} of the full size, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} "
        f"at the start, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}."
    )
    for name in arguments.floods or floods.FLOODS | floods.TLS_FLOODS:
        result = measure(arguments.server, name, arguments.scale)
        print(result, flush=True)
        for problem in floods.problems(result, max_mb=500, max_seconds=2):
            print(f"{name}: {problem}", file=sys.stderr)
        put(arguments.document, name, cells(result), conditions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
