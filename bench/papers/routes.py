"""Forwarding tables for the simulations: compiled fabrics in a folder, made once each."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "routing"))
sys.dont_write_bytecode = True
import opensm  # noqa: E402

IBSHIFT = os.environ.get("IBSHIFT", opensm.IBSHIFT)


def path_of(folder, fabric, engine):
    """A file's name for the tables."""
    words = "".join(c if c.isalnum() else "-" for c in fabric + " " + engine)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, words + ".fabric")


def compiled(path, net, lfts):
    """The two files as one."""
    subprocess.run([IBSHIFT, "fabric", "publish", "--output", path, net, lfts], stdout=subprocess.DEVNULL, check=True)
    return path


def by_opensm(folder, fabric, engine, *more):
    """OpenSM's own routing on ibsim."""
    path = path_of(folder, fabric, " ".join(["opensm", engine, *more]))
    if not os.path.exists(path):
        with opensm.Subnet(fabric) as subnet:
            run = subnet.route(engine, more=more)
            if run["routed"] != engine:
                sys.exit("bench/papers: OpenSM's %s does not route %s" % (engine, fabric))
            compiled(path, *(os.path.join(run["out"], name) for name in ("opensm-subnet.lst", "opensm-lfts.dump")))
    return path


def by_ibshift(folder, fabric, engine):
    """Tables of `ibshift route`."""
    path = path_of(folder, fabric, engine)
    if not os.path.exists(path):
        net, lfts = path + ".net", path + ".lfts"
        opensm.netlist(fabric, net)
        subprocess.run([IBSHIFT, "route", "--no-verify", "-o", lfts, engine, net], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        compiled(path, net, lfts)
        os.remove(net)
        os.remove(lfts)
    return path
