"""Simulations that were run are kept, one a line, so that a long series can be stopped and gone on with."""
import json
import os
import subprocess
import sys

import routes


class Cells:
    """A file of results by what was asked."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if os.path.exists(path):
            with open(path, encoding="ascii") as lines:
                self.known = {cell["asked"]: cell["result"] for cell in map(json.loads, lines)}

    def simulate(self, fabric, words):
        """The result object of `ibshift sim`; a deadlock is one too. fabric: a name or a compiled file."""
        asked = " ".join([os.path.basename(fabric), *words])
        if asked not in self.known:
            done = subprocess.run([routes.IBSHIFT, "sim", "--json", "--quiet", fabric, *words], capture_output=True,
                                  text=True, check=False)
            if done.returncode not in (0, 1):
                sys.exit("ibshift sim %s\n%s" % (asked, done.stderr.strip()))
            self.known[asked] = json.loads(done.stdout)
            with open(self.path, "a", encoding="ascii") as out:
                out.write(json.dumps({"asked": asked, "result": self.known[asked]}) + "\n")
        return self.known[asked]
