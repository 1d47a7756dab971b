"""Shows a file in what the user looks at such files with."""
from __future__ import annotations

import os
import shutil
import subprocess

from lengthwise.errors import refused


def open_in_browser(path: str) -> None:
    """Starts $BROWSER, or xdg-open where there is a display, and does not wait for it. FAILED_PRECONDITION if there is
    neither says what to do.
    """
    # It may name several, the first one that is there.
    browsers = [browser for browser in os.environ.get("BROWSER", "").split(":") if browser]
    if not browsers and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise refused(f"there is no display to show {path} on; copy it to a machine that has one, or set $BROWSER")
    program = next(filter(None, map(shutil.which, browsers or ["xdg-open"])), None)
    if program is None and browsers:
        raise refused(
            f"$BROWSER names {browsers[0]}, which is not there; set it to another program, or open {path} yourself"
        )
    if program is None:
        raise refused(
            f"xdg-open is not installed, which would show {path}; `apt-get install xdg-utils`, or set $BROWSER"
        )
    # Absolute, because a path such as "-mine.html" looks like an option.
    command, nothing = [program, os.path.abspath(path)], subprocess.DEVNULL
    try:
        # In a new session, so that Ctrl-C does not end the browser.
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    except OSError as error:
        raise refused(f"cannot start {program}: {error.strerror}; open {path} yourself") from None
