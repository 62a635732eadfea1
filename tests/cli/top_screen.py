#!/usr/bin/python3
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""taskctl top on a pseudo-terminal: what a person sees, keys, a change of the size, a broker that
goes away and comes back. Started by top.sh, which has a broker, a worker and tasks ready.

A small emulator keeps the screen: cursor movements, erasing, and text; other sequences are passed
over. TERM=vt100 needs no more. Commands are read from stdin, a line each; each is answered "ok", or the
screen is shown and it ends with 1:

    see RE | lacks RE   some line of the screen matches, or none does, within a minute
    key TEXT            pressed
    size LINES COLUMNS  of the terminal, from now on
    ended CODE          it has ended with this code, and so does this
"""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE_S = 60
SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[=>78HMDEc]|\x1b#8")


class Screen:
    def __init__(self, lines, columns):
        self.resize(lines, columns)
        self.rest = b""

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.line = self.column = 0
        self.region = (0, lines - 1)

    def move(self, line, column):
        self.line = max(0, min(line, self.lines - 1))
        self.column = max(0, min(column, self.columns - 1))

    def down(self):
        first, last = self.region
        if self.line == last:
            del self.cells[first]
            self.cells.insert(last, [" "] * self.columns)
        else:
            self.move(self.line + 1, self.column)

    def up(self):
        first, last = self.region
        if self.line == first:
            del self.cells[last]
            self.cells.insert(first, [" "] * self.columns)
        else:
            self.move(self.line - 1, self.column)

    def sequence(self, numbers, letter):
        values = [int(part) if part.isdigit() else 0 for part in numbers.split(";")]
        first = values[0]
        if letter in "Hf":
            self.move((first or 1) - 1, ((values + [0])[1] or 1) - 1)
        elif letter == "J":
            begin = 0 if first == 2 else self.line
            if first != 2:
                self.cells[self.line][self.column:] = [" "] * (self.columns - self.column)
                begin += 1
            for line in range(begin, self.lines):
                self.cells[line] = [" "] * self.columns
        elif letter == "K":
            begin, end = (0, self.column + 1) if first == 1 else (self.column, self.columns)
            self.cells[self.line][begin:end] = [" "] * (end - begin)
        elif letter == "r":
            self.region = (((first or 1) - 1), ((values + [0])[1] or self.lines) - 1)
            self.move(0, 0)
        elif letter in "ABCD":
            step = first or 1
            down, right = {"A": (-step, 0), "B": (step, 0), "C": (0, step), "D": (0, -step)}[letter]
            self.move(self.line + down, self.column + right)

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        at = 0
        while at < len(data):
            byte = data[at:at + 1]
            if byte == b"\x1b":
                found = SEQUENCE.match(data, at)
                if not found:
                    self.rest = data[at:]
                    return
                if found.group(2):
                    self.sequence(found.group(1).decode().lstrip("?"), found.group(2).decode())
                elif found.group(0) == b"\x1bM":
                    self.up()
                elif found.group(0) == b"\x1bD":
                    self.down()
                at = found.end()
                continue
            at += 1
            if byte == b"\r":
                self.column = 0
            elif byte == b"\n":
                self.down()
            elif byte == b"\t":
                self.move(self.line, self.column // 8 * 8 + 8)
            elif byte == b"\b":
                self.move(self.line, self.column - 1)
            elif byte >= b" ":
                self.cells[self.line][self.column] = byte.decode("latin-1")
                self.column = min(self.column + 1, self.columns - 1)

    def text(self):
        return ["".join(line).rstrip() for line in self.cells]


class Top:
    def __init__(self, lines, columns, command):
        self.screen = Screen(lines, columns)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.environ["TERM"] = "vt100"
            os.execvp(command[0], command)

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.screen.feed(data)
        return bool(data)

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.screen.text()):
            if time.monotonic() > deadline or not self.read(0.2):
                return condition(self.screen.text())
        return True

    def see(self, pattern):
        return self.until(lambda lines: any(re.search(pattern, line) for line in lines))

    def lacks(self, pattern):
        return self.until(lambda lines: not any(re.search(pattern, line) for line in lines))

    def key(self, text):
        os.write(self.fd, text.encode())
        return True

    def size(self, text):
        lines, columns = map(int, text.split())
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        return True

    def ended(self, code):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.read(0.2):
            pass
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status) == int(code)


def main():
    top = Top(24, 80, sys.argv[1:])
    for line in sys.stdin:
        verb, _, rest = line.rstrip("\n").partition(" ")
        if not getattr(top, verb)(rest):
            print(f"failed: {line.rstrip()}", *top.screen.text(), sep="\n")
            return 1
        print("ok", flush=True)
        if verb == "ended":
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
