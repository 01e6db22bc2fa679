# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The option `--short` of the scripts in this folder: that a script still works is what the tests run it for, in seconds, not what it
measures. Fewest rounds and smallest sizes; a goal that is missed isn't an error."""

import argparse


class _Short(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        for name, value in self.const.items():
            setattr(namespace, name, value)


def add_option(parser, **least):
    """Add `--short`, which sets `short` and the options in `least`; what is given behind it counts instead."""
    parser.set_defaults(short=False)
    parser.add_argument("--short", nargs=0, action=_Short, const={"short": True, **least}, default=argparse.SUPPRESS,
                        help="fewest rounds and smallest sizes, to see that the script works: goals may be missed")
