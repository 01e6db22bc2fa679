"""Prints how a training stands by its page, and which curves the page has.

usage: page_state.py PAGE
"""

import json
import re
import sys

with open(sys.argv[1]) as file:
    data = json.loads(re.search(r'<script type="application/json" id="training">(.*?)</script>', file.read())[1])
steps, *curves = data["points"].pop("step"), *sorted(data["points"])
assert all(len(data["points"][curve]) == len(steps) for curve in curves)
print(f"{data['state']}, steps {steps[0]} to {steps[-1]} of {data['steps']}: {' '.join(curves)}")
print(data.get("problem", ""))
