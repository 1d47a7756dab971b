"""How the server is reached: arguments, the environment and the configuration file, as the command line has it.

The file is ~/.config/lengthwise/config.yaml ($XDG_CONFIG_HOME/lengthwise/config.yaml; another one where
$LENGTHWISE_CONFIG names it; none where that is empty). What it says beside `server` is for that server: where another one
is named, the file's token is not shown to it.
"""
from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from lengthwise.errors import LengthwiseError


@dataclass(frozen=True)
class Settings:
    """Paths and names as in the configuration file; empty: not set."""

    server: str = "127.0.0.1:7070"
    token_file: str = ""
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_server_name: str = ""


NAMES = tuple(field.name for field in fields(Settings))
_PATHS = {"token_file", "tls_ca", "tls_certificate", "tls_key"}


def settings_file(environment: Mapping[str, str]) -> Path | None:
    """Where the configuration file is looked for."""
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
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if environment.get("LENGTHWISE_CONFIG"):
            raise LengthwiseError(f"there is no {path}, which LENGTHWISE_CONFIG names") from None
        return {}
    except (OSError, yaml.YAMLError) as error:
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
        in_file = {}
    host, _, port = server.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise LengthwiseError(f'the server "{server}" is not HOST:PORT, such as 127.0.0.1:7070')
    return Settings(**{**in_file, **given, "server": server})


def is_loopback(server: str) -> bool:
    """Whether HOST:PORT names this machine alone."""
    host = server.rpartition(":")[0]
    if host in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def read_token(path: str) -> str:
    """The token in a file that only its owner may read."""
    try:
        status = os.stat(path)
        if status.st_mode & 0o077:
            raise LengthwiseError(f"other users may read the token file {path}; run `chmod 600 {path}`")
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise LengthwiseError(f"cannot read the token file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        text = ""
    if not text.startswith("lw_") or len(text.split()) != 1:
        raise LengthwiseError(f"the token file {path} holds no token such as lw_...; ask an administrator for one")
    return text
