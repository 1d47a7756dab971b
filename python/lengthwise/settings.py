"""Server address and credentials from arguments, the environment and the configuration file, as on the command line.

The file is ~/.config/lengthwise/config.yaml ($XDG_CONFIG_HOME/lengthwise/config.yaml; another one where
$LENGTHWISE_CONFIG names it; none where that is empty). Its credentials are for its `server`: where another one is named,
the file's token is not shown to it.
"""
from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from lengthwise.errors import LengthwiseError
from lengthwise.user_file import read_user_file


@dataclass(frozen=True)
class Settings:
    """Paths and names as in the configuration file; empty: not set."""

    server: str = "127.0.0.1:7070"
    token_file: str = ""
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_server_name: str = ""
    runs_dir: str = ""


NAMES = tuple(field.name for field in fields(Settings))
_PATHS = {"token_file", "tls_ca", "tls_certificate", "tls_key", "runs_dir"}


def settings_file(environment: Mapping[str, str]) -> Path | None:
    """Path of the configuration file, whether it exists or not. None if $LENGTHWISE_CONFIG is empty."""
    if "LENGTHWISE_CONFIG" in environment:
        named = environment["LENGTHWISE_CONFIG"]
        return Path(named) if named else None
    home = environment.get("XDG_CONFIG_HOME", "")
    if home.startswith("/"):
        return Path(home) / "lengthwise" / "config.yaml"
    home = environment.get("HOME", "")
    return Path(home) / ".config" / "lengthwise" / "config.yaml" if home else None


def _read(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    try:
        content = yaml.safe_load(read_user_file(path).decode())
    except FileNotFoundError:
        if environment.get("LENGTHWISE_CONFIG"):
            raise LengthwiseError(f"there is no {path}, which LENGTHWISE_CONFIG names") from None
        return {}
    except OSError as error:
        raise LengthwiseError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise LengthwiseError(f"cannot read {path}: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise LengthwiseError(f'{path} is not a list of settings such as "server: HOST:PORT"')
    values: dict[str, str] = {}
    for name, value in content.items():
        if name not in NAMES:
            raise LengthwiseError(f'{path}: unknown setting "{name}"; there are {", ".join(NAMES)}')
        if isinstance(value, (dict, list)) or value is None:
            raise LengthwiseError(f"{path}: {name} is not one value")
        text = str(value)
        if name in _PATHS and text and text != "system" and not text.startswith("/"):
            home = environment.get("HOME", "")
            text = home + text[1:] if text.startswith("~/") and home else str(path.parent / text)
        values[name] = text
    return values


def resolve(arguments: Mapping[str, str | None], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings; `arguments` that are None or empty are not given."""
    environment = os.environ if environment is None else environment
    path = settings_file(environment)
    in_file = {} if path is None else _read(path, environment)
    given: dict[str, str] = {}
    for name in NAMES:
        value = arguments.get(name) or environment.get(f"LENGTHWISE_{name.upper()}", "")
        if value:
            given[name] = str(value)
    server = given.get("server") or in_file.get("server") or Settings.server
    if "server" in in_file and in_file["server"] != server:
        in_file = {name: value for name, value in in_file.items() if name == "runs_dir"}
    is_url = "http://" in server or "https://" in server
    if is_url or not addresses_of(server):
        raise LengthwiseError(
            f'the server "{server}" is not HOST:PORT, such as 127.0.0.1:7070, or a comma-separated list of them'
            + ("; leave out http:// or https://" if is_url else "")
        )
    runs = given.get("runs_dir") or in_file.get("runs_dir") or _default_runs(environment)
    return Settings(**{**in_file, **given, "server": server, "runs_dir": os.path.abspath(runs)})


def _default_runs(environment: Mapping[str, str]) -> str:
    """The directory of `lengthwise run`: $XDG_DATA_HOME/lengthwise/runs or ~/.local/share/lengthwise/runs."""
    data, home = environment.get("XDG_DATA_HOME", ""), environment.get("HOME", "")
    if data.startswith("/"):
        return f"{data}/lengthwise/runs"
    return f"{home}/.local/share/lengthwise/runs" if home else "lengthwise-runs"


def addresses_of(server: str) -> list[tuple[str, str]]:
    """Host and port of each HOST:PORT of a list; empty if one of them has another form."""
    addresses = []
    for address in server.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            return []
        addresses.append((host, port))
    return addresses


def _is_loopback_host(host: str) -> bool:
    if host in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def is_loopback(server: str) -> bool:
    """True if every HOST:PORT of the list names this machine."""
    addresses = addresses_of(server)
    return bool(addresses) and all(_is_loopback_host(host) for host, _ in addresses)


def target_of(server: str, warn: Callable[[str], None] | None = None) -> str:
    """gRPC target: a single HOST:PORT unchanged; for several, the IP addresses of the hosts known now.

    gRPC looks a single host name up at each connection, and has no list of names. `warn` is called for each address
    whose host is unknown.
    """
    addresses = addresses_of(server)
    if len(addresses) == 1:
        return server.strip()
    numbers: dict[socket.AddressFamily, list[str]] = {socket.AF_INET: [], socket.AF_INET6: []}
    unknown = []
    for host, port in addresses:
        for family in numbers:
            try:
                found = socket.getaddrinfo(host.strip("[]"), None, family, socket.SOCK_STREAM)
            except OSError:
                continue
            bracketed = "[{}]" if family == socket.AF_INET6 else "{}"
            numbers[family] += [f"{bracketed.format(one[4][0])}:{port}" for one in found]
            break
        else:
            unknown.append(f"{host}:{port}")
    # Resolvers repeat an address that stands in several lines of /etc/hosts.
    ipv4, ipv6 = (list(dict.fromkeys(known)) for known in numbers.values())
    if not ipv4 and not ipv6:
        raise LengthwiseError(f"none of the hosts of {server} is known; check the names, or give IP addresses")
    if ipv4 and ipv6:
        raise LengthwiseError(
            f"{server} has IPv4 addresses ({', '.join(ipv4)}) and IPv6 addresses ({', '.join(ipv6)}); give addresses "
            "of one kind"
        )
    if warn is not None:
        for address in unknown:
            warn(
                f"the server address {address} is left out until the next start, because its host is unknown; check "
                "the name, or give an IP address"
            )
    return "ipv4:" + ",".join(ipv4) if ipv4 else "ipv6:" + ",".join(ipv6)


def read_token(path: str) -> str:
    """The token in a file that only its owner may read."""
    try:
        content = read_user_file(path)
        if os.stat(path).st_mode & 0o077:
            raise LengthwiseError(f"other users may read the token file {path}; run `chmod 600 {path}`")
        text = content.decode("ascii").strip()
    except OSError as error:
        raise LengthwiseError(f"cannot read the token file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        text = ""
    if not text.startswith("lw_") or len(text.split()) != 1:
        raise LengthwiseError(f"the token file {path} holds no token such as lw_...; ask an administrator for one")
    return text
