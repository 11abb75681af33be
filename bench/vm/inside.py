"""Runs in the machine: all contenders, interleaved, on one Soft-RoCE device; then the device's own floor."""
import argparse
import csv
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compare"))
from runner import Progress  # noqa: E402

COMMON = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
# The receive queues are smaller than the default, which Soft-RoCE has no room for.
OPENIB = ["--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1",
          "--mca", "btl_openib_cpc_include", "rdmacm", "--mca", "btl_openib_warn_no_device_params_found", "0",
          "--mca", "btl_openib_receive_queues", "P,128,256,192,128:P,65536,64,32,32"]
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
       "-x", "UCX_TLS=rc_verbs,ud_verbs,self", "-x", "UCX_IB_GID_INDEX=0", "-x", "UCX_WARN_UNUSED_ENV_VARS=n"]
PEERS = ["--mca", "coll", "tuned,libnbc,basic,self"]


def contenders(stage, openib, device):
    """Name -> mpirun options. What ibshift does not carry itself goes over openib, on the same device."""
    with_openib = ["--mca", "mca_base_component_path", openib + ":SYS_DEFAULT"] + OPENIB
    # Its connection thread outlives the component, which must not be unloaded under it.
    with_openib += ["--mca", "mca_base_component_disable_dlclose", "1"]
    ours = ["--mca", "mca_base_component_path", f"{stage}/lib/openmpi:{openib}:SYS_DEFAULT"] + OPENIB
    return {"ibshift": ours + ["--mca", "coll", "ibshift,basic", "--mca", "coll_ibshift_node", "0", "--mca", "coll_ibshift_device", device],
            "tuned/openib": PEERS + with_openib,
            "tuned/UCX": PEERS + UCX + ["-x", f"UCX_NET_DEVICES={device}:1"]}


def arguments():
    """The command line; main.py writes it."""
    parser = argparse.ArgumentParser()
    for name in ("stage", "openib", "floor", "out", "ranks", "sizes", "tests"):
        parser.add_argument("--" + name, required=True)
    for name in ("repetitions", "rounds", "limit"):
        parser.add_argument("--" + name, type=int, required=True)
    return parser.parse_args()


def run_once(line, limit):
    """(rows, exit code). What was measured before a contender ended badly is valid, and kept."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as out:
        try:
            done = subprocess.run(line + ["-o", out.name], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=limit, check=False)
            code, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as stopped:
            code, said = f"none after {limit} s", (stopped.stdout or b"").decode()
        with open(out.name, encoding="ascii") as file:
            rows = list(csv.DictReader(file))
    if code:
        tail = "\n".join(said.splitlines()[-8:])
        sys.stderr.write(f"bench/vm: exit code {code}, {len(rows)} cells: {' '.join(line)}\n{tail}\n")
    return rows, code


def tell_end(out, name, ranks, code, cells):
    """For the page: who ended badly, in OUT/ends.csv."""
    with open(os.path.join(out, "ends.csv"), "a", encoding="ascii", newline="") as file:
        csv.writer(file).writerow([name, ranks, code, cells])


def run_contenders(args, device, counter):
    """Appends to OUT/rows.csv what is measured, at once: a machine that is ended leaves what it had."""
    bench = [os.path.join(args.stage, "bin", "nbcbench"), "-s", args.sizes, "-t", args.tests,
             "-r", str(args.repetitions), "-w", "3", "-k", counter]
    who = contenders(args.stage, args.openib, device)
    ranks = args.ranks.split(",")
    progress = Progress(args.rounds * len(ranks) * len(who))
    failed = 0
    with open(os.path.join(args.out, "rows.csv"), "w", encoding="ascii", newline="") as file:
        writer = None
        for turn in range(args.rounds):
            for p in ranks:
                for name, options in who.items():
                    progress.step(f"round {turn + 1}: {name}, {p} ranks")
                    line = ["mpirun"] + COMMON + options + ["-np", p] + bench + ["-p", p, "-l", name]
                    rows, code = run_once(line, args.limit)
                    if code:
                        failed = 1
                        tell_end(args.out, name, p, code, len(rows))
                    if not rows:
                        continue
                    if writer is None:
                        writer = csv.DictWriter(file, list(rows[0]))
                        writer.writeheader()
                    writer.writerows(rows)
                    file.flush()
    progress.close()
    return failed


def run_floor(args, device):
    """Half round trips of plain verbs: OUT/floor.csv."""
    line = [args.floor, device, "1", str(5 * args.repetitions)] + args.sizes.split(",")
    with open(os.path.join(args.out, "floor.csv"), "w", encoding="ascii") as file:
        try:
            return subprocess.run(line, stdout=file, check=False, timeout=args.limit / 4).returncode
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"bench/vm: no end of {' '.join(line)}\n")
            return 1


def main():
    """Returns the exit code."""
    args = arguments()
    device = os.environ.get("VM_DEVICE", "rxe1")
    counter = f"/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts"
    # The kernel shows counters that are up to so many milliseconds old.
    with open(os.path.join(os.path.dirname(counter), "lifespan"), "w", encoding="ascii") as file:
        file.write("0")
    failed = run_floor(args, device)
    return run_contenders(args, device, counter) or failed


if __name__ == "__main__":
    sys.exit(main())
