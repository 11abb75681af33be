"""A modelled wire that is slower than it is, so that what processors do is small beside it; and LogGP's view of it."""

# The software HCA's profile hdr between two hosts on one switch (test/softhca/front/profile.c), at scale 1.
LATENCY_US = 2 * 0.270 + 0.130
GAP_US = 0.005
GIGABYTES_A_SECOND = 24.2
# What a processor does for a message is not stretched.
OVERHEAD_US = 1.5
# A handshake costs three latencies of the stretched wire, a copy next to nothing: it pays for few messages only.
EAGER_BYTES = 65536


def options(scale):
    """softhca-run's options."""
    return f"--wire hdr --scale {scale}"


def component(eager):
    """ibshift's options: so long are messages that are sent without a handshake, in memory for many of them."""
    return ["--mca", "coll_ibshift_eager_limit", str(eager), "--mca", "coll_ibshift_memory", str(max(8 << 20, 2048 * eager))]


# Shared memory is not stretched: the component's own typical values (ibshift_model_node, choose/param.c). Without them the
# file's parameters would count inside a host too.
NODE = """[node]
L = 0.1 us
o_s = 0.1 us
o_r = 0.1 us
g = 0.1 us
f = 64
O = 0.034 ns/B
w = 2.2 us
copy = 0.025 ns/B
reduce = 0.02 ns/B
S = 65536 B
R = 6 us
"""


def model(scale, shared=False):
    """The text of a parameter file for coll_ibshift_model."""
    return (f"# The software HCA's profile hdr at scale {scale}, two hosts on one switch: a model, not InfiniBand.\n"
            f"L = {LATENCY_US * scale:g} us\n"
            f"o_s = {OVERHEAD_US} us\no_r = {OVERHEAD_US} us\n"
            f"g = {GAP_US * scale:g} us\n"
            f"G = {GIGABYTES_A_SECOND / scale:g} GB/s\n"
            "copy = 0.1 ns/B\nreduce = 0.3 ns/B\n" + (NODE if shared else ""))
