"""Adds a record that unpacks to 300 MiB to a copy of a TorchScript archive.

usage: bomb.py ARCHIVE OUTPUT
"""

import shutil
import sys
import zipfile

source, output = sys.argv[1:]
shutil.copy(source, output)
with zipfile.ZipFile(output, "a", zipfile.ZIP_DEFLATED) as archive:
    folder = archive.namelist()[0].split("/")[0]
    archive.writestr(f"{folder}/extra/zeros", bytes(300 << 20))
