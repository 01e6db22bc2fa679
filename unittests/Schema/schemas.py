#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the JSON schemas of plans, training files and machines with what the readers accept.

Every file of the tests, the documentation and the examples is read as each kind of file. Then files that a reader accepts are
changed, one place at a time: a value is replaced by values of other types, a key is renamed, removed or added. A schema must
accept what its reader accepts. It must reject what its reader rejects, unless all errors are of rules that a schema can't state.

usage: schemas.py tp-read-files REPOSITORY
"""

import argparse
import collections
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; requirements.txt has it")
    sys.exit(77)

KINDS = ("plan", "training", "machine")

# Errors that compare values of one file with each other, or that are about its text.
BEYOND_SCHEMAS = re.compile("|".join((
    r"comes twice in this",
    r"the mesh has no dimension",
    r"more than the world_size",
    r"the mesh has more than",
    r"devices has \d+ (entries|ranks)|devices has rank \d+ twice|devices must hold the ranks 0 to",
    r"mesh_dim names mesh dimension '.*' twice|mesh_dim must name mesh dimensions in the order",
    r"tp_mesh_dim must be the index of a mesh dimension",
    r"the mesh has \d+ dimensions; say which one",
    r"is in (data_parallel|context_parallel|expert_parallel), so (the plan|context_parallel) can't split over it",
    r"is in data_parallel, so it can't have the stages of a pipeline",
    r"split (must have|has) \d+ modules?|needs split: auto|allows one stage per rank|needs at least 2 stages per rank",
    r"microbatches on \d+ ranks can't run in \d+ rounds of equal size",
    r"and data_parallel over '.*' can't be combined|beside expert_parallel isn't supported",
    r"has the stages of a pipeline, so (the plan|context_parallel) can't split over it",
    r"placements, but the plan is over",
    r"the last link joins all ranks|this link has no 'ranks'|'ranks' must be a multiple",
    r"nesterov needs a momentum",
    r"total_steps must be an integer of at least",
    r"twice: by today's name and a former one",
    r"needs a space after ':'",
    r"values are nested too deeply",
)))
# Anchors, several documents and the like, which readers refuse.
SYNTAX = re.compile(r"malformed YAML|control character|is one document|anchor|alias|tag|UTF-8|tab|a key must be a text|has no place in|indent|nothing stands behind")

# What replaces a value.
VALUES = (None, True, 0, -1, 1, 1.5, "x", "Shard(0)", "Replicate", [], {}, ["x"], [1], ["Shard(0)"], {"x": 1}, {"style": "ColwiseParallel"})


class CoreLoader(yaml.SafeLoader):
    """YAML 1.2's core schema, which editors use, with keys as texts."""

    def construct_mapping(self, node, deep=False):
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise yaml.YAMLError("a key isn't a text")
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?[0-9]+", list("-+0123456789")),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789"))):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
CoreLoader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
CoreLoader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node))


def find_texts(root):
    """The files of the repository that may be of these kinds: whole files, parts of tests, blocks of pages."""
    texts = collections.OrderedDict()
    folders = [root / name for name in ("test", "examples", "docs")]
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(root))
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path.suffix in (".yaml", ".json"):
            texts[name] = text
        elif path.suffix in (".mlir", ".test"):
            for part in re.split(r"^(?://|#|;)?\s*--- ?", text, flags=re.M)[1:]:
                part_name, _, body = part.partition("\n")
                if part_name.strip().endswith((".yaml", ".json")):
                    texts[f"{name}: {part_name.strip()}"] = body
        elif path.suffix in (".md", ".sh"):
            blocks = re.findall(r"^```(?:yaml|json).*\n((?:.*\n)*?)```$|<< *'?END'?\n((?:.*\n)*?)END$", text, flags=re.M)
            for i, block in enumerate(blocks):
                texts[f"{name}: block {i}"] = block[0] or block[1]
    return texts


def list_paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from list_paths(item, (*path, key))


def get(value, path):
    for key in path:
        value = value[key]
    return value


def mutate(document):
    """Copies of a document that differ from it in one place."""
    for path in list_paths(document):
        def change(edit):
            changed = copy.deepcopy([document])
            edit(get(changed, (0, *path[:-1])) if path else changed, path[-1] if path else 0)
            return changed[0]

        def set_to(value):
            def edit(holder, key):
                holder[key] = value
            return edit

        here = get(document, path)
        for value in VALUES:
            if value != here or type(value) is not type(here):
                yield change(set_to(value))
        if path and isinstance(get(document, path[:-1]), dict):
            yield change(lambda holder, key: holder.pop(key))

            def rename(holder, key):
                holder[f"{key}x"] = holder.pop(key)
            yield change(rename)
        if isinstance(here, dict):
            yield change(set_to({**here, "unknown": 1}))
        if isinstance(here, (int, float)) and not isinstance(here, bool):
            yield change(set_to(str(here)))
            yield change(set_to(-here))


def read_all(tool, files):
    """The errors of each file, given by kind and path."""
    lines = "".join(f"{kind} {path}\n" for kind, path in files)
    done = subprocess.run([tool], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Comparison:
    def __init__(self, tool, schemas, folder):
        self.tool, self.folder = tool, folder
        self.validators = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in schemas.items()}
        self.counts = collections.Counter()
        self.problems = []

    def compare(self, cases):
        """`cases` are names, kinds, texts, and the values of the texts. Returns which of them the readers accept."""
        files = []
        for i, (_, kind, text, _) in enumerate(cases):
            path = self.folder / f"{i}.yaml"
            path.write_text(text)
            files.append((kind, path))
        accepted = []
        for (name, kind, text, value), errors in zip(cases, read_all(self.tool, files), strict=True):
            rejection = next(self.validators[kind].iter_errors(value), None)
            accepted.append(not errors)
            if not errors:
                self.counts[kind, "accepted"] += 1
                if rejection:
                    where = "/".join(map(str, rejection.absolute_path))
                    self.problems.append(f"{name}: the reader accepts this {kind}, the schema doesn't, at '{where}': {rejection.message[:200]}\n{text[:600]}")
            elif not all(BEYOND_SCHEMAS.search(error) or SYNTAX.search(error) for error in errors):
                self.counts[kind, "rejected"] += 1
                if not rejection:
                    self.problems.append(f"{name}: the schema accepts this {kind}, the reader doesn't: {errors}\n{text[:600]}")
            else:
                self.counts[kind, "beyond schemas"] += 1
        return accepted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("root", type=pathlib.Path)
    options = parser.parse_args()
    schemas = {kind: json.loads((options.root / f"share/tp-mlir/schemas/{kind}.schema.json").read_text()) for kind in KINDS}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft7Validator.check_schema(schema)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options.tool, schemas, pathlib.Path(folder))
        cases = []
        for name, text in find_texts(options.root).items():
            try:
                value = yaml.load(text, CoreLoader)
            except (yaml.YAMLError, ValueError):
                continue  # an editor says that it isn't YAML
            cases += [(name, kind, text, value) for kind in KINDS]
        accepted = comparison.compare(cases)

        mutants, seen = [], set()
        for (name, kind, _, value), is_accepted in zip(cases, accepted, strict=True):
            if is_accepted:
                for changed in mutate(value):
                    text = json.dumps(changed)
                    if (kind, text) not in seen:
                        seen.add((kind, text))
                        mutants.append((f"{name}, changed", kind, text, changed))
        # The number grows with the repository; an equal part of each file's will do.
        limit = 8000
        step = -(-len(mutants) // limit)
        comparison.compare(mutants[::step])
    for kind in KINDS:
        counts = {what: comparison.counts[kind, what] for what in ("accepted", "rejected", "beyond schemas")}
        print(f"{kind}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        if min(counts["accepted"], counts["rejected"]) < 20:
            comparison.problems.append(f"too few files of the kind '{kind}': {counts}")
    for problem in comparison.problems[:20]:
        print(problem)
    if comparison.problems:
        sys.exit(f"{len(comparison.problems)} problems")


if __name__ == "__main__":
    main()
