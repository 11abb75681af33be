"""OpenSM's own engines on ibsim, and what `ibshift` says of the tables they make."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from glob import glob

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
IBSHIFT = os.path.join(os.environ.get("IBSHIFT_BUILD", os.path.join(TOP, "build")), "stage", "bin", "ibshift")
ENGINES = ["minhop", "updn", "ftree", "dor", "torus-2QoS", "lash", "dfsssp", "nue"]
FOUND = glob("/usr/lib/*/umad2sim/libumad2sim.so") + glob("/usr/lib*/umad2sim/libumad2sim.so")
WAITS_MOST = 600  # seconds of one OpenSM


def missing():
    """Names of tools that are not there."""
    tools = [tool for tool in ("ibsim", "opensm") if shutil.which(tool) is None]
    return tools + ([] if FOUND else ["libumad2sim.so"]) + ([] if os.path.exists(IBSHIFT) else ["./bootstrap first"])


def ours(engine, fabric, *more):
    """(exit code, the proof of our engine's tables or None, the message)."""
    run = subprocess.run([IBSHIFT, "route", engine, fabric, "--json", *more], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    return run.returncode, json.loads(run.stdout) if run.stdout else None, run.stderr.strip()


def netlist(fabric, path):
    """Writes a synthetic fabric as ibsim reads it."""
    with open(path, "w", encoding="ascii") as out:
        subprocess.run([IBSHIFT, "fabric", "export", "--netlist", fabric], stdout=out, check=True)


def stamp(line):
    """Seconds of the day of a line of OpenSM's log."""
    hours, minutes, seconds, micro = re.match(r"^\w{3} \d\d (\d\d):(\d\d):(\d\d) (\d+) ", line).groups()
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds) + 1e-6 * int(micro)


class Subnet:
    """ibsim playing a netlist, in a folder of its own; to be used in a with statement."""

    def __init__(self, fabric):
        self.work = tempfile.mkdtemp(prefix="ibshift-routing-")
        self.net = os.path.join(self.work, "net")
        if os.path.exists(fabric):
            shutil.copy(fabric, self.net)
        else:
            netlist(fabric, self.net)
        self.env = dict(os.environ, IBSIM_SOCKNAME="ibshift-routing-%d" % os.getpid(), LD_PRELOAD=FOUND[0])
        self.sim = None

    def __enter__(self):
        log = os.path.join(self.work, "ibsim.log")
        env = {k: v for k, v in self.env.items() if k != "LD_PRELOAD"}
        with open(log, "w", encoding="ascii") as out:
            self.sim = subprocess.Popen(["ibsim", "-s", "-n", "-N", "50000", "-S", "10000", "-P", "600000", self.net],
                                        stdout=out, stderr=out, cwd=self.work, env=env)
        for _ in range(2400):
            with open(log, encoding="ascii", errors="replace") as text:
                if "Network simulator ready" in text.read():
                    return self
            time.sleep(0.05)
        raise RuntimeError("ibsim did not start: " + log)

    def __exit__(self, *_):
        self.sim.kill()
        self.sim.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    def roots(self):
        """GUIDs of the switches of the highest level, by the generator's names."""
        with open(self.net, encoding="ascii") as text:
            found = re.findall(r'^Switch\s+\d+ "S-([0-9a-f]+)"\s+# "s(\d)-', text.read(), re.M)
        top = max((level for _, level in found), default=None)
        path = os.path.join(self.work, "roots")
        with open(path, "w", encoding="ascii") as out:
            out.writelines("0x%s\n" % guid for guid, level in found if level == top)
        return path if found else None

    def route(self, engine, with_roots=True, more=()):
        """OpenSM sweeps once with the engine; {"routed": engine that it ended with, "seconds": of the routing}."""
        out = os.path.join(self.work, "osm")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        log = os.path.join(out, "osm.log")
        argv = ["timeout", "-k", "2", str(WAITS_MOST), "opensm", "-e", "-f", log, "-o", "-R", engine, "-D", "0x43",
                "--dump_files_dir", out]
        roots = self.roots() if with_roots and engine in ("updn", "ftree") else None
        if roots:
            argv += ["-a", roots]
        if engine in ("torus-2QoS", "nue", "dfsssp", "lash"):
            argv += ["-Q"]
        argv += more
        subprocess.run(argv, cwd=self.work, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(self.env, OSM_TMP_DIR=out, OSM_CACHE_DIR=out))
        with open(log, encoding="ascii", errors="replace") as text:
            done = re.findall(r"osm_ucast_mgr_process: (\S+) tables configured", text.read())
        return {"routed": done[-1] if done else None, "out": out}

    def contention(self, run):
        """(average, worst) of the shift over OpenSM's own order where it has one (ftree), else the better of those
        over the hosts' names and over the order found in the tables; None where hosts cannot reach each other."""
        out, best = run["out"], None
        own = os.path.join(out, "opensm-ftree-ca-order.dump")
        orders = [own] if os.path.exists(own) and run["routed"] == "ftree" else ["rank", "routing"]
        for order in orders:
            found = subprocess.run([IBSHIFT, "fabric", "contend", "--json", "--order", order,
                                    os.path.join(out, "opensm-subnet.lst"), os.path.join(out, "opensm-lfts.dump")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if found.returncode != 0:
                return None
            result = json.loads(found.stdout)
            if best is None or (result["average"], result["worst"]) < best:
                best = (result["average"], result["worst"])
        return best

    def routing_seconds(self, engine):
        """Seconds from OpenSM's last line before its routing to "tables configured", by its log; None: no such."""
        run = self.route(engine)
        with open(os.path.join(run["out"], "osm.log"), encoding="ascii", errors="replace") as text:
            stamps = [(stamp(line), line) for line in text if re.match(r"^\w{3} \d\d \d\d:\d\d:\d\d \d+ ", line)]
        for before, after in zip(stamps, stamps[1:]):
            if "tables configured" in after[1]:
                return after[0] - before[0]
        return None

    def check(self, run):
        """`ibshift fabric check` of OpenSM's tables."""
        found = subprocess.run([IBSHIFT, "fabric", "check", "--json", os.path.join(run["out"], "opensm-subnet.lst"),
                                os.path.join(run["out"], "opensm-lfts.dump")], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False)
        return json.loads(found.stdout) if found.stdout else None
