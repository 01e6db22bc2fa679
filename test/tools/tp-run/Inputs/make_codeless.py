"""Makes an artifact whose code nothing can load.

usage: make_codeless.py ARTIFACT OUTPUT
"""

import json
import struct
import sys

from make_toy import container

with open(sys.argv[1], "rb") as file:
    artifact = file.read()
size, = struct.unpack_from("<Q", artifact, 16)
with open(sys.argv[2], "wb") as file:
    file.write(container(json.loads(artifact[40:40 + size]), b"no code"))
