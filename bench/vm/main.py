"""ibshift beside Open MPI's own on the kernel's Soft-RoCE driver, in a virtual machine."""
import argparse
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import tables  # noqa: E402

TESTS = "MPI_Barrier,MPI_Bcast,MPI_Gather,MPI_Scatter,MPI_Allgather,MPI_Alltoall,MPI_Allreduce"


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench/vm/run", description="ibshift beside tuned over openib (rebuilt with "
                                     "rdmacm) and tuned over UCX on one Soft-RoCE device of a virtual machine, in one "
                                     "boot, interleaved. One or two processors do the work of all ranks and of the "
                                     "driver: times are work, not a network's.")
    parser.add_argument("--engine", choices=("uml", "tcg"), default="uml", help="uml: this machine's time (default); "
                        "tcg: counted time, one instruction is 1 ns")
    parser.add_argument("--boots", type=int, help="machines one after the other (default: uml 1, tcg 3)")
    parser.add_argument("--add", action="store_true", help="keep the boots that the folder has and add to them; "
                        "with --boots 0 only the tables are written")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks (default 2,4)")
    parser.add_argument("--sizes", default="8,64,512,4096,32768,262144", help="bytes of a block (default "
                        "8,64,512,4096,32768,262144)")
    parser.add_argument("--tests", default=TESTS, help="collectives as nbcbench names them (default: seven)")
    parser.add_argument("--repetitions", type=int, help="samples a cell and round (default: uml 20, tcg 7)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds in each boot (default: uml 3, tcg 1)")
    parser.add_argument("--time-limit", type=int, help="seconds a boot may take (default: uml 600, tcg 3600)")
    parser.add_argument("--out", default=os.path.join("bench", "out", "vm"), help="folder of the results")
    parser.add_argument("--publish", action="store_true", help="write the tables and pictures into docs/figures/ "
                        "instead: soft-roce-ENGINE.md, soft-roce-ENGINE-ratio.svg")
    args = parser.parse_args()
    for name, uml, tcg in (("boots", 1, 3), ("repetitions", 20, 7), ("rounds", 3, 1), ("time_limit", 600, 3600)):
        if getattr(args, name) is None:
            setattr(args, name, uml if args.engine == "uml" else tcg)
    return args


def boot(args, stage, openib, out):
    """One machine. Returns its exit code; what it measured is in out."""
    inside = ["python3", os.path.join(HERE, "inside.py"), "--stage", stage, "--openib", openib, "--out", out,
              "--floor", os.path.join(os.path.dirname(stage), "bench", "vm", "floor"), "--limit", str(args.time_limit)]
    for name in ("ranks", "sizes", "tests", "repetitions", "rounds"):
        inside += ["--" + name, str(getattr(args, name))]
    line = [os.path.join(TOP, "test", "vm", "vm-run"), "--engine", args.engine, "--share", out, "--time-limit",
            str(args.time_limit), "--"] + inside
    return subprocess.run(line, stdin=subprocess.DEVNULL, check=False).returncode


def main():
    """Returns the exit code: 1 when a contender or a boot failed."""
    args = arguments()
    os.chdir(TOP)
    stage = os.path.join(os.environ.get("IBSHIFT_BUILD", os.path.join(TOP, "build")), "stage")
    built = subprocess.run([os.path.join(HERE, "openib")], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        return built.returncode
    folders = sorted(glob.glob(os.path.join(args.out, args.engine + "-*")))
    if not args.add:
        for folder in folders:
            shutil.rmtree(folder)
        folders = []
    failed = 0
    for number in range(args.boots):
        folder = os.path.join(args.out, f"{args.engine}-{len(folders) + 1}")
        os.makedirs(folder)
        sys.stderr.write(f"bench/vm: boot {number + 1} of {args.boots}\n")
        failed |= boot(args, stage, built.stdout.strip(), os.path.abspath(folder)) != 0
        folders.append(folder)
    boots = [tables.read_boot(folder) for folder in folders]
    ends = tables.read_ends(folders)
    if not any(table for table, _ in boots):
        sys.stderr.write(f"bench/vm: nothing was measured; see {args.out}\n")
        return 1
    if args.publish:
        tables.write(args.engine, boots, ends, os.path.join("docs", "figures"), "soft-roce-" + args.engine)
    else:
        tables.write(args.engine, boots, ends, args.out, args.engine)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
