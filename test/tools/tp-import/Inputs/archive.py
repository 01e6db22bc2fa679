"""Copies of archives of torch.export with some records replaced."""

import json
import zipfile


def rewrite(source, target, change):
    """`change` gets the records, by their names in the archive's folder, and may change them."""
    with zipfile.ZipFile(source) as archive:
        records = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    change(records)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"{target.stem}/{name}", data)


def rewrite_program(source, target, change):
    """`change` gets the program's JSON."""

    def change_records(records):
        program = json.loads(records["models/model.json"])
        change(program)
        records["models/model.json"] = json.dumps(program).encode()

    rewrite(source, target, change_records)
