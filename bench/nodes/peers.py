"""Who is measured beside ibshift on one host: how each is started, and what it needs on this machine."""

import glob
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench", "compare"))
from contenders import common, component_path  # noqa: E402

NBCBENCH = os.path.join(TOP, "bench", "nbcbench")
TOOL = os.path.join(TOP, "ompi", "tools", "ibshift")
CORE = os.path.join(TOP, "ompi", "mca", "coll", "ibshift")
# What nbcbench has of the tool, which knows no MPI, as built.
BORROWED = [("ompi/tools/ibshift", "libcli"), ("ompi/tools/ibshift", "libproof"), ("ompi/mca/coll/ibshift", "libibshift_core")]
MPICH_PACKAGES = ["mpich", "libmpich-dev"]
# Without an adapter, and nothing else than shared memory: what UCX finds by itself may be a network's loopback.
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
       "-x", "UCX_TLS=posix,cma,self", "-x", "UCX_WARN_UNUSED_ENV_VARS=n"]


class Missing(Exception):
    """A peer cannot run on this machine; the message says what it lacks and how to get it."""


def high(component):
    """The options by which a component of the framework coll comes before all others."""
    return ["--mca", f"coll_{component}_priority", "100"]


def compiled(compiler, name, build):
    """nbcbench as that compiler of MPI programs makes it: its own binary, made again when a source is newer."""
    program = os.path.join(build, "nodes", "nbcbench-" + name)
    libraries = [os.path.join(build, folder, ".libs", library + ".a") for folder, library in BORROWED]
    inputs = glob.glob(os.path.join(NBCBENCH, "*.[ch]")) + libraries
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, inputs)):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        subprocess.run([compiler, "-std=gnu11", "-O2", "-D_GNU_SOURCE", '-DPACKAGE_VERSION="beside ibshift"', "-I", TOOL, "-I", CORE,
                        "-o", program] + sorted(glob.glob(os.path.join(NBCBENCH, "*.c"))) + libraries
                       + ["-lhwloc", "-libverbs", "-lpthread", "-ldl", "-lm"], check=True)
    return program


class OpenMpi:
    """An Open MPI: Debian's, or the one of that installation folder."""

    def __init__(self, options=(), prefix=None):
        self.options, self.prefix = list(options), prefix

    def command(self, stage, build):
        """A function of the number of ranks: the command line up to nbcbench's own options."""
        mpirun, program = "mpirun", os.path.join(stage, "bin", "nbcbench")
        if self.prefix is not None:
            found = self.prefix()
            mpirun = os.path.join(found, "bin", "mpirun")
            program = compiled(os.path.join(found, "bin", "mpicc"), os.path.basename(os.path.dirname(found)), build)
        return lambda ranks: [mpirun] + common(ranks) + self.options + ["-np", str(ranks), program]


class Mpich:
    """Debian's MPICH, installed when it is not there and we are root."""

    def command(self, _stage, build):
        """As above. MPICH does not yield, so ranks that share a processor wait for each other's turns."""
        if shutil.which("mpicc.mpich") is None and os.geteuid() == 0:
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends"] + MPICH_PACKAGES,
                           stdout=subprocess.DEVNULL, check=False)
        if shutil.which("mpicc.mpich") is None or shutil.which("mpirun.mpich") is None:
            raise Missing("as root, run: apt-get install --no-install-recommends " + " ".join(MPICH_PACKAGES))
        program = compiled("mpicc.mpich", "mpich", build)
        return lambda ranks: ["mpirun.mpich", "-bind-to", "core", "-np", str(ranks), program]


def cached(version):
    """The folder where lanes intree50 and intree60 keep their installations."""
    cache = os.environ.get("IBSHIFT_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ibshift")
    found = sorted(glob.glob(os.path.join(cache, f"openmpi-{version}-*", "install", "bin", "mpirun")))
    if not found:
        raise Missing(f"build it first: ./test/run intree{version[0]}0 keeps an installation of Open MPI {version}")
    return os.path.dirname(os.path.dirname(found[-1]))


def open_mpi_5():
    return cached("5.0.7")


def open_mpi_6():
    """An installation that IBSHIFT_OMPI60 names comes first."""
    given = os.environ.get("IBSHIFT_OMPI60", "")
    return given if os.path.exists(os.path.join(given, "bin", "mpirun")) else cached("6.0")


# ibshift's own component has a high priority in the cached ones, so it is left out by name there.
WITHOUT_IBSHIFT = ["--mca", "coll", "^ibshift"]

PEERS = {
    "as it comes": OpenMpi(),
    "coll/sm": OpenMpi(high("sm")),
    "han": OpenMpi(high("han")),
    "ucx": OpenMpi(UCX),
    "mpich": Mpich(),
    "5.0.7": OpenMpi(WITHOUT_IBSHIFT, open_mpi_5),
    "5.0.7 han": OpenMpi(WITHOUT_IBSHIFT + high("han"), open_mpi_5),
    "5.0.7 acoll": OpenMpi(WITHOUT_IBSHIFT + high("acoll"), open_mpi_5),
    "5.0.7 xhc": OpenMpi(WITHOUT_IBSHIFT + high("xhc"), open_mpi_5),
    "6.0": OpenMpi(WITHOUT_IBSHIFT, open_mpi_6),
    "6.0 han": OpenMpi(WITHOUT_IBSHIFT + high("han"), open_mpi_6),
    "6.0 acoll": OpenMpi(WITHOUT_IBSHIFT + high("acoll"), open_mpi_6),
    "6.0 xhc": OpenMpi(WITHOUT_IBSHIFT + high("xhc"), open_mpi_6),
}

TITLES = {
    "as it comes": "Open MPI 4.1.4 as it comes (tuned over vader)",
    "coll/sm": "the same with coll/sm at a high priority",
    "han": "the same with han at a high priority",
    "ucx": "Open MPI 4.1.4 over UCX's shared memory",
    "mpich": "MPICH 4.0.2",
    "5.0.7": "Open MPI 5.0.7 as it comes",
    "5.0.7 han": "5.0.7 with han",
    "5.0.7 acoll": "5.0.7 with acoll",
    "5.0.7 xhc": "5.0.7 with xhc",
    "6.0": "Open MPI 6.0.0a1 as it comes",
    "6.0 han": "6.0.0a1 with han",
    "6.0 acoll": "6.0.0a1 with acoll",
    "6.0 xhc": "6.0.0a1 with xhc",
}


def ours(stage):
    """ibshift, without an adapter."""
    return OpenMpi(component_path(os.path.join(stage, "lib", "openmpi")) + ["--mca", "coll", "ibshift,basic"])


def commands(names, stage, build):
    """{name: command of the number of ranks} with ibshift first, and {name: why it cannot run here}."""
    found, missing = {"ibshift": ours(stage).command(stage, build)}, {}
    for name in names:
        try:
            found[name] = PEERS[name].command(stage, build)
        except (Missing, subprocess.CalledProcessError) as why:
            missing[name] = str(why)
    return found, missing
