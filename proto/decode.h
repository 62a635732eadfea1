/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The decoder behind codec.h: bytes that nobody has checked yet become a message of protobuf-c's
 * generated types, in one pass and in an arena. Beside codec.c it serves the store, which packs
 * some of its columns. */
#ifndef TASKMQ_PROTO_DECODE_H
#define TASKMQ_PROTO_DECODE_H

#include "codec.h"

/* NULL if report->code is not TMQ_OK. Unknown fields are skipped and not kept. Texts that are not
 * UTF-8 without NUL are decoded and listed in report->flaws. */
ProtobufCMessage *decode_message (codec_report_t *report, arena_t *arena,
                                  const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                  size_t length);

#endif
