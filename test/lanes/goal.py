"""Runs a plan that `ibshift plan print --goal` has written: every message meets its receive, everything ends, nothing waits in a circle.

usage: test/lanes/goal.py < GOAL; prints the ranks, messages and bytes that were sent
"""
import re
import sys

LINE = re.compile(r"(\w+): (?:(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)|calc (\d+))$")


def read(lines):
    """[{label: (kind, bytes, peer, tag)}] and [{label: {labels that it requires}}] by rank."""
    ranks, steps, required = 0, [], []
    for number, line in enumerate(map(str.strip, lines), 1):
        step, needs = LINE.match(line), re.match(r"(\w+) requires (\w+)$", line)
        if line.startswith("num_ranks "):
            ranks = int(line.split()[1])
        elif line == f"rank {len(steps)} {{":
            steps.append({})
            required.append({})
        elif step and step[1] not in steps[-1]:
            steps[-1][step[1]] = (step[2] or "calc", *(int(step[k] or 0) for k in (3, 4, 5)))
            required[-1][step[1]] = set()
        elif needs and needs[1] in steps[-1] and needs[2] in steps[-1]:
            required[-1][needs[1]].add(needs[2])
        elif line not in ("", "}"):
            sys.exit(f"line {number}: {line}")
    if len(steps) != ranks:
        sys.exit(f"{ranks} ranks, and {len(steps)} are there")
    return steps, required


def main():
    steps, required = read(sys.stdin)
    done = [set() for _ in steps]
    sent, messages, volume, moved = {}, 0, 0, True
    while moved:
        moved = False
        for rank, own in enumerate(steps):
            for label in own.keys() - done[rank]:
                kind, size, peer, tag = own[label]
                if not required[rank][label] <= done[rank] or (kind == "recv" and sent.get((peer, rank, tag)) is None):
                    continue
                if kind == "send":
                    if (rank, peer, tag) in sent:
                        sys.exit(f"rank {rank} sends to {peer} twice under tag {tag}")
                    sent[rank, peer, tag] = size
                    messages, volume = messages + 1, volume + size
                elif kind == "recv" and sent.pop((peer, rank, tag)) != size:
                    sys.exit(f"rank {rank} awaits {size} bytes of {peer} under tag {tag}")
                done[rank].add(label)
                moved = True
    if sent or any(len(own) != len(ended) for own, ended in zip(steps, done)):
        sys.exit(f"{len(sent)} messages nobody receives, and {sum(len(o) - len(d) for o, d in zip(steps, done))} steps never run")
    print(f"{len(steps)} ranks, {messages} messages, {volume} bytes")


main()
