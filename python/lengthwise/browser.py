"""Shows a file in what the user looks at such files with."""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from lengthwise.errors import refused


def open_in_browser(path: str, environment: Mapping[str, str] | None = None) -> None:
    """Starts $BROWSER, or xdg-open where there is a display, and does not wait for it. FAILED_PRECONDITION if there is
    neither says what to do. `environment` is by default this process's.
    """
    variables = os.environ if environment is None else environment
    program = _find_program(path, variables)
    try:
        # In a new session, so that Ctrl-C does not end the browser.
        subprocess.Popen(
            # Absolute, because a path such as "-mine.html" looks like an option.
            [program, os.path.abspath(path)],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise refused(f"cannot start {program}: {error.strerror}; open {path} yourself") from None


def _find_program(path: str, variables: Mapping[str, str]) -> str:
    directories = variables.get("PATH", "")
    # It may name several, the first one that is there.
    browsers = [browser for browser in variables.get("BROWSER", "").split(":") if browser]
    for browser in browsers:
        if program := shutil.which(browser, path=directories):
            return program
    if browsers:
        raise refused(
            f"$BROWSER names {browsers[0]}, which is not there; set it to another program, or open {path} yourself"
        )
    if not variables.get("DISPLAY") and not variables.get("WAYLAND_DISPLAY"):
        raise refused(f"there is no display to show {path} on; copy it to a machine that has one, or set $BROWSER")
    if program := shutil.which("xdg-open", path=directories):
        return program
    raise refused(
        f"xdg-open is not installed, which would show {path}; `apt-get install xdg-utils`, or set $BROWSER"
    )
