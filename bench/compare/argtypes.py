"""Types of options: what has no such value is refused in a line, before anything runs or a file is written."""
import argparse
import os

PLAIN = ["MPI_" + name for name in ("Barrier", "Bcast", "Scatter", "Gather", "Allgather", "Alltoall", "Reduce", "Allreduce",
                                    "Reduce_scatter_block", "Scan", "Exscan")]
ALL = PLAIN + ["MPI_" + name for name in ("Scatterv", "Gatherv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter",
                                          "Neighbor_allgather", "Neighbor_alltoall")]  # as nbcbench has them


def positive(text):
    """A whole number from 1 on."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wants a whole number from 1 on, not '{text}'")
    return int(text)


def positives(text):
    """A list of such, as text."""
    return ",".join(str(positive(word)) for word in text.split(","))


def existing(text):
    """The name of a file."""
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"{text}: no such file")
    return text


def collectives(text):
    """A list of ALL, by their whole names; nbcbench takes them without MPI_ and in small letters, too."""
    known = {short: name for name in ALL for short in (name.lower(), name[4:].lower())}
    words = ALL if text == "all" else [known.get(word.lower(), word) for word in text.split(",")]
    for word in words:
        if word not in ALL:
            raise argparse.ArgumentTypeError(f"no '{word}'; all, {', '.join(ALL)}")
    return ",".join(words)
