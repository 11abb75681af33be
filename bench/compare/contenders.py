"""Who is measured: each contender is a list of mpirun options, on the same software HCA."""

import functools
import os
import subprocess


HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host")


def common(ranks, per_host=None):
    """Options of all. Ranks are dealt to the processors in turn, or luck would decide who shares one."""
    if per_host:
        hosts = ",".join(f"h{i}:{per_host}" for i in range(ranks // per_host))
        kind, rsh = ("--mca", "rsh") if is_orte() else ("--prtemca", "ssh")
        return ["--host", hosts, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                kind, f"plm_{rsh}_agent", HOST, kind, f"plm_{rsh}_no_tree_spawn", "1"]
    return ["--map-by", "core:OVERSUBSCRIBE", "--bind-to", "core:overload-allowed", "--mca", "mpi_yield_when_idle", "1"]


OPENIB = ["--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1",
          "--mca", "btl_openib_warn_no_device_params_found", "0"]
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
       "-x", "UCX_TLS=rc_verbs,ud_verbs,self", "-x", "UCX_WARN_UNUSED_ENV_VARS=n"]


@functools.lru_cache(None)
def components():
    """What `ompi_info --parsable` lists of the Open MPI at hand."""
    return subprocess.run(["ompi_info", "--parsable"], stdout=subprocess.PIPE, text=True, check=False).stdout


def is_orte():
    """Up to 4.1; PRRTE has other names for the same since."""
    return "ompi:version:full:4." in components()


def component_path(folder):
    """From 5.0 on for the ranks alone: mpirun would hand it to PMIx and PRRTE, where SYS_DEFAULT is no folder."""
    name, value = "mca_base_component_path", f"{folder}:SYS_DEFAULT"
    return ["--mca", name, value] if is_orte() else ["-x", f"OMPI_MCA_{name}={value}"]


def sharing(options):
    """The same, with shared memory between the ranks of a host."""
    # By two rails UCX would send parts of long messages inside a host over the adapter, whose wire may be stretched.
    more = {"openib,self": "openib,vader,self", "tcp,self": "tcp,sm,self", "UCX_TLS=rc_verbs,ud_verbs,self": "UCX_TLS=rc_verbs,ud_verbs,posix,cma,self"}
    rails = ["-x", "UCX_MAX_RNDV_RAILS=1"] if "ucx" in options else []
    return [more.get(option, option) for option in options] + rails


def wires_of(shared):
    """The wires that Open MPI has here: openib up to 4.1, UCX where it was built for it, else the kernel's TCP."""
    known = {"openib": ("btl:openib", OPENIB), "UCX": ("pml:ucx", UCX)}
    wires = {wire: over for wire, (component, over) in known.items() if f"mca:{component}:" in components()} or {"TCP": TCP}
    return {wire: sharing(over) if shared else over for wire, over in wires.items()}


def peers_of(name, options, shared=False):
    """The contenders of that name, over each wire that Open MPI has here."""
    wires = wires_of(shared)
    return {f"{name}/{wire}": options + over for wire, over in wires.items()}


def contenders(component_folder, more=(), shared=False):
    """Name -> mpirun options, ibshift first, with `more`. tuned brings basic and libnbc for what it lacks."""
    # Whatever is not native goes over the same wire, and through shared memory only where all may: else a rank stands for a host.
    ibshift = component_path(component_folder) + ["--mca", "coll", "ibshift,basic", "--mca", "coll_ibshift_node", "1" if shared else "0"]
    ibshift += ["--mca", "coll_ibshift_explain", "1"] + next(iter(wires_of(shared).values())) + list(more)
    found = {"ibshift": ibshift, **peers_of("tuned", ["--mca", "coll", "tuned,libnbc,basic,self"], shared)}
    if shared and not is_orte():  # two levels, which one rank on each host has not
        found.update(peers_of("han", ["--mca", "coll", "^ibshift", "--mca", "coll_han_priority", "100"], shared))
    return found


def pairwise():
    """The peers, told to send one block after another, which tuned does by itself from 64 ranks and 256 KiB on."""
    peers = ["--mca", "coll", "tuned,libnbc,basic,self", "--mca", "coll_tuned_use_dynamic_rules", "1"]
    peers += ["--mca", "coll_tuned_alltoall_algorithm", "2"]
    return peers_of("pairwise", peers)
