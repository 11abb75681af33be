"""Runs nbcbench for every contender, interleaved, and collects its CSV."""
import csv
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import lru_cache
from statistics import median

from contenders import common, contenders


EXPLAINED = re.compile(r"^ibshift: .*, (\d+) ranks: (\w+)(?: up to (\d+) B[ a-z]*|(, any size))?: (.*?); modelled ([\d.]+) us")
ANY_SIZE = 1 << 62
TRIES = 5
LIKE = 2  # a word takes 25 ns within a core and 150 between cores that share no cache
MOST_LOAD = 4  # per processor: a run that hangs is not waited for longer


class RunFailed(Exception):
    """A contender's run ended badly; the message holds its last lines."""


def command(stage, wire, name, options, ranks, bench, per_host=None):
    """The whole command line of one run. On a modelled wire each rank has a host unless told: within one there is no wire."""
    there = per_host or (1 if wire else None)
    hosts = ["--hosts", str(ranks // there), "--per-host", str(there)] if there else []
    hca = [os.path.join(stage, "bin", "softhca-run"), "--arm-waiting"] + wire + hosts + ["--"]
    return hca + ["mpirun"] + common(ranks, per_host) + options + ["-np", str(ranks), os.path.join(stage, "bin", "nbcbench"),
                                                  "-p", str(ranks), "-l", name] + bench


@lru_cache(maxsize=None)
def limit_here(limit):
    """A quiet machine's limit on this one. The load is read once: later on it is that of the contenders' own ranks."""
    here = round(limit * min(MOST_LOAD, max(1, os.getloadavg()[0] / (os.cpu_count() or 1))))
    print(f"A run may take {here} s.", file=sys.stderr)
    return here


def run_once(line, limit):
    """Runs one command: the rows of its CSV, and what ibshift said of its plans. The limit is a quiet machine's."""
    limit = limit_here(limit)
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile(suffix=".csv") as out:
        try:
            done = subprocess.run(line + ["-o", out.name], env=env, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"no end after {limit} s: {' '.join(line)}") from None
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise RunFailed(f"exit code {done.returncode}: {' '.join(line)}\n{tail}")
        with open(out.name, encoding="ascii") as file:
            return list(csv.DictReader(file)), explained(done.stdout)


class Places:
    """Where a hypervisor has put the processors, by what a word takes from one to another: runs in other places are repeated."""

    def __init__(self):
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self.folder = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.folder.name, "lines")
        self.repeated = self.unlike = 0
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-pthread", "-o", self.program,
                        os.path.join(top, "bench", "lines", "lines.c")], check=True)

    def now(self):
        """ns, or None: there is only one processor."""
        processors = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
        if len(processors) < 2:
            return None
        return float(subprocess.run([self.program, "--one-way"] + processors, stdout=subprocess.PIPE, check=True).stdout)

    def run(self, line, limit, place):
        """As run_once(), in places like that one, or any for None; and the place."""
        for _ in range(TRIES):
            before = self.now()
            done = run_once(line, limit)
            if before is None:
                break
            took = [before, self.now(), place or before]
            if max(took) < LIKE * min(took):
                break
            self.repeated += 1
        else:
            self.unlike += 1
        return done, place or before

    def said(self):
        """A line, or an empty one."""
        return (f"{self.repeated} runs were repeated since the processors were in other places (bench/lines/run); "
                f"{self.unlike} are beside runs in other places all the same.") if self.repeated else ""


def explained(text):
    """{(collective, ranks, size): (plan, modelled us)} from the lines of coll_ibshift_explain."""
    found = (EXPLAINED.match(line) for line in text.splitlines())
    return {("MPI_" + m.group(2).capitalize(), int(m.group(1)), ANY_SIZE if m.group(4) else int(m.group(3) or 0)):
            (m.group(5), float(m.group(6))) for m in found if m}


class Progress:
    """A line that rewrites itself on a terminal, a line a step elsewhere."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()

    def step(self, what):
        """One run is about to start."""
        left = ""
        if self.done:
            seconds = (time.monotonic() - self.start) / self.done * (self.total - self.done)
            left = f", about {seconds:.0f} s left"
        text = f"[{self.done + 1}/{self.total}] {what}{left}"
        if sys.stderr.isatty():
            width = 24
            filled = width * self.done // self.total
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (width - filled)}] {text}\033[K")
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
        self.done += 1

    def close(self):
        """Leaves the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def measure(stage, wire, ranks, tests, bench, rounds, limit, more, per_host=None):
    """{(collective, ranks, size): {contender: {column: median over the rounds}}}, {contender: failure}, plans. tests: of one run each."""
    who = contenders(os.path.join(stage, "lib", "openmpi"), more, per_host is not None)
    samples = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    failures, plans = {}, {}
    progress = Progress(rounds * len(ranks) * len(tests) * len(who))
    places = Places()
    for turn, p, test in itertools.product(range(rounds), ranks, tests):
        place = None
        for name, options in who.items():
            progress.step(f"round {turn + 1}: {name}, {p} ranks, {test}")
            if name in failures:
                continue
            try:
                line = command(stage, wire, name, options, p, ["-t", test] + bench, per_host)
                (rows, said), place = (run_once(line, limit), None) if wire else places.run(line, limit, place)
            except RunFailed as failure:
                failures[name] = str(failure)
                continue
            plans.update(said)
            for row in rows:
                cell = samples[row["collective"], int(row["ranks"]), int(row["size"])][name]
                for column, value in row.items():
                    if column not in ("label", "collective", "ranks", "size"):
                        cell[column].append(float(value))
    progress.close()
    print(places.said(), end="\n" if places.repeated else "", file=sys.stderr)
    table = {key: {name: {column: median(values) for column, values in columns.items()}
                   for name, columns in cell.items()} for key, cell in samples.items()}
    return table, failures, plans
