# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what data a report's page has, as a browser finds them: JSON in script elements.

usage: page_data.py PAGE [ID[.KEY…] FILE]    ID FILE: compares the element ID, or a part of it, with a JSON file
"""

import functools
import html.parser
import json
import operator
import pathlib
import sys


class Reader(html.parser.HTMLParser):
    """The texts of script elements that have an ID."""

    def __init__(self):
        super().__init__()
        self.texts, self.current = {}, None

    def handle_starttag(self, tag, attributes):
        self.current = dict(attributes).get("id") if tag == "script" else None

    def handle_endtag(self, tag):
        self.current = None

    def handle_data(self, data):
        if self.current:
            self.texts[self.current] = self.texts.get(self.current, "") + data


reader = Reader()
reader.feed(pathlib.Path(sys.argv[1]).read_text())
data = {name: json.loads(text) for name, text in reader.texts.items()}
if sys.argv[2:]:
    name, path = sys.argv[2:]
    expected = json.loads(pathlib.Path(path).read_text())
    name, *keys = name.split(".")
    found = functools.reduce(operator.getitem, keys, data[name])
    assert found == expected, f"'{name}' isn't what {path} has, but {found}"
    sys.exit()
assert set(data) == {"report", "explanation", "measured", "other-plans", "other-ranks"}, f"the page has {set(data)}"
report, explanation, measured = data["report"], data["explanation"], data["measured"]
mesh = ", ".join(f"{axis['name']}={axis['size']}" for axis in report["mesh"]["axes"])
print(f"report of mesh {mesh}, {len(report['collectives'])} collective of '{report['collectives'][0]['fqn']}'")
print(f"explanation: {', '.join(sorted(explanation))}" if explanation else "no explanation")
if measured:
    ranks = json.loads(json.dumps(measured["ranks"]), parse_float=lambda text: float(f"{float(text):.6g}"))
    print(f"measured: run {measured['run']} of {measured['runs']}, {json.dumps(ranks)}")
