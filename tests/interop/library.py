# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""libtaskmq through ctypes, as far as the tests need it: plain structs, no callback, no macro.

Options are made by their initialiser in a buffer and set by string keys, so only what is read or
written member by member is declared here."""

import ctypes as c
import os


class Id(c.Structure):
    _fields_ = [("bytes", c.c_uint8 * 16)]


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("retriable", c.c_bool), ("retry_after_ms", c.c_uint32),
                ("request_id", c.c_uint8 * 16), ("text", c.c_char * 512),
                ("hint", c.c_char * 160)]


class Submit(c.Structure):  # as far as it is used; `size` says so
    _fields_ = [("size", c.c_size_t), ("id", Id), ("request_id", c.c_uint8 * 16),
                ("queue", c.c_char_p), ("payload", c.c_char_p), ("payload_bytes", c.c_size_t),
                ("method", c.c_char_p), ("session", c.c_char_p), ("content_type", c.c_char_p),
                ("dedup_key", c.c_char_p), ("meta", c.c_char_p), ("labels", c.c_void_p),
                ("labels_count", c.c_size_t), ("ttl_ms", c.c_uint64), ("priority", c.c_int),
                ("poll_interval_ms", c.c_uint32), ("max_attempts", c.c_uint32),
                ("backoff_ms", c.c_uint32), ("lease_ms", c.c_uint32), ("ttl_never", c.c_bool)]


class Receipt(c.Structure):
    _fields_ = [("id", Id), ("code", c.c_int), ("existing", c.c_bool), ("status", c.c_int),
                ("text", c.c_char * 256)]


class Completion(c.Structure):
    _fields_ = [("op", c.c_int), ("code", c.c_int), ("user", c.c_void_p),
                ("error", c.POINTER(Error)), ("receipts", c.POINTER(Receipt)),
                ("receipts_count", c.c_size_t), ("task_id", Id), ("status", c.c_int),
                ("task", c.c_void_p), ("list", c.c_void_p), ("events", c.c_void_p),
                ("stats", c.c_void_p), ("count", c.c_uint64), ("link", c.c_int),
                ("text", c.c_void_p)]


class WorkerOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("queues", c.POINTER(c.c_char_p)),
                ("queues_count", c.c_size_t), ("capacity", c.c_uint32), ("notify", c.c_bool),
                ("user", c.c_void_p)]


class Assignment(c.Structure):
    _fields_ = [("task_id", Id), ("attempt", c.c_uint32), ("max_attempts", c.c_uint32),
                ("lease_ms", c.c_uint32), ("queue", c.c_char_p), ("session", c.c_char_p),
                ("method", c.c_char_p), ("content_type", c.c_char_p), ("meta", c.c_char_p),
                ("labels", c.c_void_p), ("labels_count", c.c_size_t), ("priority", c.c_uint8),
                ("created_at", c.c_uint64), ("payload", c.c_void_p), ("payload_bytes", c.c_size_t)]


class Blob(c.Structure):
    _fields_ = [("bytes", c.c_uint64), ("hash", c.c_uint8 * 32)]


class Outcome(c.Structure):
    _fields_ = [("result", c.c_char_p), ("result_bytes", c.c_size_t), ("result_type", c.c_char_p),
                ("error_code", c.c_int32), ("error_message", c.c_char_p),
                ("error_data", c.c_char_p), ("final", c.c_bool), ("release", c.c_void_p),
                ("result_blob", Blob)]


OP_SUBMIT, OP_WAIT, OP_COMPLETE = 1, 11, 16
TIMEOUT = 66
OPTIONS_BYTES = 512  # more than any struct of options has


def load():
    """The library with the signatures that have more than pointers and ints."""
    library = c.CDLL(os.environ["TASKMQ_LIBRARY"])
    for name in ("tmq_submit_start", "tmq_wait_start", "tmq_worker_complete_start"):
        getattr(library, name).restype = c.c_int
    library.tmq_submit_start.argtypes = [c.c_void_p, c.POINTER(Submit), c.c_uint32, c.c_void_p,
                                         c.POINTER(Error)]
    library.tmq_wait_start.argtypes = [c.c_void_p, c.POINTER(Id), c.c_size_t, c.c_uint32,
                                       c.c_void_p, c.POINTER(Error)]
    library.tmq_client_poll.argtypes = [c.POINTER(c.POINTER(Completion)), c.c_size_t,
                                        c.POINTER(c.c_size_t), c.c_void_p, c.c_uint32]
    library.tmq_client_fd.argtypes = [c.c_void_p]
    library.tmq_client_new.argtypes = [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(Error)]
    library.tmq_client_connect.argtypes = [c.c_void_p, c.c_uint32, c.POINTER(Error)]
    library.tmq_worker_new.argtypes = [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(WorkerOptions),
                                       c.POINTER(Error)]
    library.tmq_worker_next.argtypes = [c.POINTER(c.POINTER(Assignment)), c.c_void_p, c.c_uint32,
                                        c.POINTER(Error)]
    library.tmq_worker_started.argtypes = [c.c_void_p, c.POINTER(Assignment), c.POINTER(Error)]
    library.tmq_worker_complete_start.argtypes = [c.c_void_p, c.POINTER(Assignment),
                                                  c.POINTER(Outcome), c.c_uint32, c.c_void_p,
                                                  c.POINTER(Error)]
    library.tmq_result.argtypes = [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(Id), c.c_uint32,
                                   c.POINTER(Error)]
    library.tmq_task_free.argtypes = [c.c_void_p]
    library.tmq_code_name.restype = c.c_char_p
    return library
