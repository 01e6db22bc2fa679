# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the events of the files in a directory, in the order in which TensorBoard reads them, as protobuf's compiler decodes them.

usage: events.py PROTOC MESSAGES DIRECTORY"""

import pathlib
import re
import struct
import subprocess
import sys

PROTO = "tensorboard/compat/proto/event.proto"


def get_masked_crc(data):
    """CRC-32C, bit by bit, as TFRecord has it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(data):
    while data:
        length, length_sum = struct.unpack("<QI", data[:12])
        record, record_sum, data = data[12:12 + length], data[12 + length:16 + length], data[16 + length:]
        assert len(record) == length, "the last record isn't complete"
        assert length_sum == get_masked_crc(struct.pack("<Q", length)), "the sum of a length is wrong"
        assert struct.unpack("<I", record_sum) == (get_masked_crc(record),), "the sum of a record is wrong"
        yield record


protoc, messages, directory = sys.argv[1:]
for file in sorted(pathlib.Path(directory).iterdir()):
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.\d{6}\..+\.\d+", file.name), file.name
    print("file")
    for record in read_records(file.read_bytes()):
        text = subprocess.run([protoc, "-I", messages, "--decode=tensorboard.Event", PROTO], input=record, capture_output=True, check=True, cwd=messages)
        print(" ".join(text.stdout.decode().split()))
