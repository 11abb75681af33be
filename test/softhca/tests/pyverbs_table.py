#!/usr/bin/env python3
"""Runs rdma-core's own Python tests and prints a table of what passed and why the rest was skipped.

usage: softhca-run [OPTION...] -- python3 pyverbs_table.py FOLDER LEAST
FOLDER holds rdma-core's tests, packed or not (Debian: /usr/share/doc/rdma-core/tests). Exit code 1 when
a test failed, or fewer than LEAST passed: all tests are skipped where there is no device.
"""
import collections
import gzip
import os
import re
import shutil
import sys
import tempfile
import unittest


class Counts(unittest.TextTestResult):
    """Per module: how many passed, and each reason to skip."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = collections.Counter()
        self.reasons = collections.defaultdict(collections.Counter)

    @staticmethod
    def module(test):
        return re.sub(r".*tests\.", "", type(test).__module__)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed[self.module(test)] += 1

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons[self.module(test)][" ".join(reason.split())] += 1


def unpack(source, target):
    """A copy in which nothing is packed."""
    shutil.copytree(source, target)
    for name in os.listdir(target):
        path = os.path.join(target, name)
        if name.endswith(".gz"):
            with gzip.open(path) as packed, open(path[:-3], "wb") as plain:
                shutil.copyfileobj(packed, plain)


def print_table(result):
    print("| module | passed | skipped | why |")
    print("|---|---|---|---|")
    for module in sorted(set(result.passed) | set(result.reasons)):
        reasons = result.reasons[module]
        why = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        print(f"| {module} | {result.passed[module]} | {sum(reasons.values())} | {why} |")


def run(folder, least):
    with tempfile.TemporaryDirectory() as base:
        target = os.path.join(base, "tests")
        unpack(folder, target)
        sys.path[:0] = [base, target]
        sys.argv[1:] = []
        os.chdir(base)
        from args_parser import parser  # the tests' own
        parser.parse_args()
        suite = unittest.defaultTestLoader.loadTestsFromName("tests")
        result = unittest.TextTestRunner(verbosity=2, resultclass=Counts).run(suite)
    passed = sum(result.passed.values())
    print_table(result)
    print(f"{passed} passed, {len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped")
    if passed < least:
        print(f"expected at least {least} to pass")
    return 0 if result.wasSuccessful() and passed >= least else 1


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit() or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    sys.exit(run(sys.argv[1], int(sys.argv[2])))
