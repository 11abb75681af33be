"""ibshift for Spack: copy this folder to var/spack/repos/builtin/packages/ibshift of a repository of yours, then
`spack install ibshift` for the tools. The component wants an Open MPI with its internal headers, which Spack's own recipe of openmpi does not install:
name one that was configured --with-devel-headers as an external package, or add that argument to a copy of the recipe; then
`spack install ibshift+component ^openmpi@4.1.6`. It is for the Open MPI that it is built with, so each has its own installation."""
from spack.package import *

try:  # Spack 1.0 and later: no longer among spack.package's names
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass


class Ibshift(AutotoolsPackage):
    """Open MPI collectives that follow an InfiniBand fabric's routes, and the tool that shows them."""

    # Nothing answers at .invalid: put there the address or the folder of your clone.
    homepage = "https://ibshift.invalid/"
    git = "https://ibshift.invalid/ibshift.git"
    license("BSD-3-Clause")

    version("main", branch="main")

    variant("component", default=False, description="the component too, for an openmpi that was configured --with-devel-headers")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("rdma-core")
    depends_on("hwloc")
    # A component fits one release exactly. The headers of 5.0 are not whole (docs/install.md).
    depends_on("openmpi@4.1", when="+component")

    def configure_args(self):
        """The component goes below the prefix of its own; the environment names it to Open MPI."""
        if "+component" not in self.spec:
            return ["--without-ompi"]
        return [f"--with-ompi={self.spec['openmpi'].prefix}", f"--with-component-dir={self.prefix.lib.openmpi}"]

    def setup_run_environment(self, env):
        """Open MPI's own components stay, and the user's."""
        if "+component" in self.spec:
            env.set("OMPI_MCA_mca_base_component_path", f"{self.prefix.lib.openmpi}:SYS_DEFAULT:USER_DEFAULT")
