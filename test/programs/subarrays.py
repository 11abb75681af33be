#!/usr/bin/env python3
"""mpi4py's Alltoallw and Ialltoallw on subarrays: a matrix cut by rows becomes one cut by columns, and back.

    subarrays.py ROWS COLUMNS DEPTH

Prints a digest of all bytes that any rank got, and fails when one is wrong.
"""
import hashlib
import sys

import numpy
from mpi4py import MPI


def cut(length, parts):
    return [length * part // parts for part in range(parts + 1)]


def pieces(shape, axis, parts):
    """A datatype and a count for each rank's piece of a local array, cut along the axis."""
    bounds = cut(shape[axis], parts)
    types, counts = [], []
    for first, end in zip(bounds, bounds[1:]):
        sizes, starts = list(shape), [0] * len(shape)
        sizes[axis], starts[axis] = end - first, first
        empty = 0 in sizes
        types.append(MPI.INT64_T.Dup() if empty else MPI.INT64_T.Create_subarray(shape, sizes, starts).Commit())
        counts.append(0 if empty else 1)
    return types, counts


def main():
    rows, columns, depth = map(int, sys.argv[1:4])
    comm = MPI.COMM_WORLD
    rank, ranks = comm.rank, comm.size
    whole = numpy.arange(rows * columns * depth, dtype=numpy.int64).reshape(rows, columns, depth)
    row, column = cut(rows, ranks), cut(columns, ranks)
    by_rows = numpy.ascontiguousarray(whole[row[rank]:row[rank + 1]])
    by_columns = whole[:, column[rank]:column[rank + 1]]
    from_types, from_counts = pieces(by_rows.shape, 1, ranks)
    to_types, to_counts = pieces(by_columns.shape, 0, ranks)
    none = [0] * ranks
    digest = hashlib.sha256()
    for call in (comm.Alltoallw, lambda *sides: comm.Ialltoallw(*sides).Wait()):
        for turn in range(3):
            got = numpy.full(by_columns.shape, -1, dtype=numpy.int64)
            back = numpy.full(by_rows.shape, -1, dtype=numpy.int64)
            call([by_rows + turn, (from_counts, none), from_types], [got, (to_counts, none), to_types])
            if not numpy.array_equal(got, by_columns + turn):
                sys.exit(f"rank {rank}, turn {turn}: the columns are wrong")
            call([got, (to_counts, none), to_types], [back, (from_counts, none), from_types])
            if not numpy.array_equal(back, by_rows + turn):
                sys.exit(f"rank {rank}, turn {turn}: the rows are wrong")
            digest.update(got.tobytes())
    for datatype in from_types + to_types:
        datatype.Free()
    digests = comm.gather(digest.hexdigest(), 0)
    if rank == 0:
        print("digest", hashlib.sha256("".join(digests).encode()).hexdigest())


main()
