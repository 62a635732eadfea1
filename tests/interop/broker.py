# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""A broker of our own for a test: started in a fresh directory, killed, started again."""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time


PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_the_test():
    """In a new process, before it begins: a test that is killed leaves nothing behind."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def eventually(what, condition, patience_s=60):
    """Waits for a condition; the value that made it true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in {patience_s} s: {what}")


class Broker:
    def __init__(self, *options):
        self.options = options  # {home} stands for the broker's directory
        self.home = tempfile.mkdtemp(prefix="taskmq-interop-")
        self.data = os.path.join(self.home, ".taskmq")
        self.log = open(os.path.join(self.home, "log"), "ab")
        self.process = None
        self.files = None  # its limit of open files

    def prepare(self):
        """In the new process, before it begins."""
        die_with_the_test()
        if self.files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))

    def start(self):
        program = os.path.join(os.environ["TASKMQ_BIN"], "taskmqd")
        ready = os.path.join(self.data, "endpoint")
        if os.path.exists(ready):
            os.remove(ready)
        options = [option.format(home=self.home) for option in self.options]
        self.process = subprocess.Popen([program, "--data", self.data, *options],
                                        stderr=self.log, stdout=self.log,
                                        preexec_fn=self.prepare)
        eventually("the broker says where it listens",
                   lambda: os.path.exists(ready) and os.path.getsize(ready) > 0)

    @property
    def endpoints(self):
        with open(os.path.join(self.data, "endpoint"), encoding="utf-8") as file:
            return file.read().split()

    @property
    def endpoint(self):
        return self.endpoints[0]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
        self.log.close()
        if kind is None:
            shutil.rmtree(self.home)
        else:
            print(f"the broker's directory is left in {self.home}")
