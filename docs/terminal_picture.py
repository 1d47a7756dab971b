#!/usr/bin/env python3
"""Runs a command in a terminal and draws what is to be seen there, as SVG.

  docs/terminal_picture.py --out docs/watch.svg --until "40 %" -- lengthwise watch quickstart-1

The picture is made when the command has ended, or when the screen shows the text of --until; the command then gets a Ctrl-C.
--show is what stands behind the prompt, where it is not the command itself.
"""

import argparse
import codecs
import fcntl
import html
import itertools
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import termios
import time

CELL_WIDTH, CELL_HEIGHT, MARGIN, FONT_SIZE = 8.4, 18, 16, 14
BACKGROUND, FOREGROUND = "#1d2129", "#d6dae2"
COLOURS = {31: "#f0717b", 32: "#8fcf7d", 33: "#e5c06b", 34: "#74aef2", 35: "#cf8ee0", 36: "#63c5cf"}
SEQUENCE = r"\x1b\[([?0-9;]*)([A-Za-z])"


class Screen:
    """As much of a terminal as the program uses. A cell is (character, style)."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [self.blank() for _ in range(rows)]
        self.row = self.column = 0
        self.style = ()

    def blank(self):
        return [(" ", ())] * self.columns

    def new_line(self):
        self.column = 0
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells = self.cells[1:] + [self.blank()]

    def write(self, text):
        for match in re.finditer(f"{SEQUENCE}|.", text, re.DOTALL):
            parameters, command = match.groups()
            character = match[0]
            if command:
                self.control(parameters, command)
            elif character == "\r":
                self.column = 0
            elif character == "\n":
                self.new_line()
            elif character >= " ":
                if self.column == self.columns:
                    self.new_line()
                self.cells[self.row][self.column] = (character, self.style)
                self.column += 1

    def control(self, parameters, command):
        if command == "A":
            self.row = max(0, self.row - int(parameters or 1))
        elif command in "KJ":
            self.cells[self.row][self.column:] = [(" ", ())] * (self.columns - self.column)
            if command == "J":
                for row in range(self.row + 1, self.rows):
                    self.cells[row] = self.blank()
        elif command == "m":
            self.style = () if parameters in ("", "0") else self.style + (parameters,)

    def text(self):
        return "\n".join("".join(character for character, _ in row).rstrip() for row in self.cells)


def run(command, columns, rows, until, seconds):
    screen = Screen(columns, rows)
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(columns))
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")()
    pending, found, deadline = "", False, time.time() + seconds
    while time.time() < deadline:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not data:
            break
        # A read may split an escape sequence, whose beginning waits for the next one.
        pending += decoder.decode(data)
        begun = pending.rfind("\x1b")
        whole = begun if begun >= 0 and not re.match(SEQUENCE, pending[begun:]) else len(pending)
        screen.write(pending[:whole])
        pending = pending[whole:]
        if until and re.search(until, screen.text()):
            found = True
            break
    if found or time.time() >= deadline:
        os.kill(child, signal.SIGINT)
    if until and not found:
        os.kill(child, signal.SIGKILL)
        sys.exit(f"the screen never showed {until!r}:\n{screen.text()}")
    os.waitpid(child, 0)
    os.close(terminal)
    return screen


def fill(style):
    for code in reversed(style):
        if code.isdigit() and int(code) in COLOURS:
            return COLOURS[int(code)]
    return FOREGROUND


def background(style):
    for code in reversed(style):
        if code.startswith("48;5;"):
            grey = 8 + 10 * (int(code[5:]) - 232)
            return f"#{grey:02x}{grey:02x}{grey:02x}"
    return None


def draw(screen, prompt):
    rows = [[(character, ()) for character in prompt]] if prompt else []
    rows += screen.cells
    while rows and all(character == " " and not background(style) for character, style in rows[-1]):
        rows.pop()
    width = MARGIN * 2 + screen.columns * CELL_WIDTH
    height = MARGIN * 2 + len(rows) * CELL_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-size="{FONT_SIZE}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for index, row in enumerate(rows):
        top = MARGIN + index * CELL_HEIGHT
        start = 0
        for style, run in itertools.groupby(row, key=lambda cell: cell[1]):
            text = "".join(character for character, _ in run)
            x, run_width = MARGIN + start * CELL_WIDTH, len(text) * CELL_WIDTH
            if background(style):
                out.append(
                    f'<rect x="{x:.1f}" y="{top}" width="{run_width:.1f}" height="{CELL_HEIGHT}" fill="{background(style)}"/>'
                )
            weight = ' font-weight="bold"' if "1" in style else ""
            dim = ' opacity="0.6"' if "2" in style else ""
            # One element per word keeps the columns aligned in every font.
            for word in re.finditer(r"[^ ]+", text):
                left, length = x + word.start() * CELL_WIDTH, len(word.group()) * CELL_WIDTH
                out.append(
                    f'<text x="{left:.1f}" y="{top + 13.5}" fill="{fill(style)}" textLength="{length:.1f}" '
                    f'lengthAdjust="spacingAndGlyphs"{weight}{dim}>{html.escape(word.group())}</text>'
                )
            start += len(text)
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--columns", type=int, default=110)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--until", help="a regular expression")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--show")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    screen = run(options.command, options.columns, options.rows, options.until, options.seconds)
    shown = options.show if options.show is not None else shlex.join(options.command)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(draw(screen, f"$ {shown}" if shown else ""))


if __name__ == "__main__":
    main()
