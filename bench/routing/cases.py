"""The fabrics that are measured, as `ibshift fabric` names them."""

# Table I of "Optimized InfiniBand fat-tree routing": description, how it is built here, our engine,
# printed worst and average of fat-tree, of MinHop. R: the same with nodes and ports in another order.
SEEDS_000 = [
    ("12 nodes, 4 leaves bipartite", "pgft:2;3,4;1,4;1,1", 1, 1, 2, 1.4),
    ("16 nodes, 2-ary-4-tree", "kary:2,4", 1, 1, 4, 2.4),
    ("16 nodes, 4-ary-2-tree", "kary:4,2", 1, 1, 1, 1),
    ("16 nodes, 4-ary-2-tree, reordered", "R kary:4,2", 1, 1, 1, 1),
    ("16 nodes, 4-ary-2-tree, roots merged by two", "pgft:2;4,4;1,2;1,2", 1, 1, 2, 1.4),
    ("16 nodes, 2-ary-4-tree, roots merged by two", "pgft:4;2,2,2,2;1,2,2,1;1,1,1,2", 1, 1, 4, 2.4),
    ("16 nodes, 4-ary-2-tree, roots merged to one", "pgft:2;4,4;1,1;1,4", 1, 1, 1, 1),
    ("the same, reordered", "R pgft:2;4,4;1,1;1,4", 1, 1, 1, 1),
    ("32 nodes, half a 4-ary-3-tree, roots merged", "pgft:3;4,4,2;1,4,2;1,1,2", 1, 1, 2, 1.7),
    ("32 nodes in 8 leaves, half bisection, 1st stage", "pgft:3;4,4,2;1,2,4;1,1,1", 2, 1.9, 4, 3.2),
    ("32 nodes in 8 leaves, half bisection, 2nd stage", "pgft:3;4,4,2;1,4,2;1,1,1", 2, 1.7, 2, 1.7),
    ("32 nodes, half a 4-ary-3-tree", "pgft:3;4,4,2;1,4,4;1,1,1", 1, 1, 4, 2.5),
    ("48 nodes, 3/4 of a 4-ary-3-tree", "pgft:3;4,4,3;1,4,4;1,1,1", 1, 1, 4, 3),
    ("64 nodes, 4-ary-3-tree", "kary:4,3", 1, 1, 4, 3.2),
    ("64 nodes, roots merged by two", "pgft:3;4,4,4;1,4,2;1,1,2", 1, 1, 4, 3.2),
    ("64 nodes, roots merged by four", "pgft:3;4,4,4;1,4,1;1,1,4", 1, 1, 4, 3.2),
    ("144 nodes, 12-ary-2-tree", "kary:12,2", 1, 1, 1, 1),
    ("144 nodes, roots merged by two", "pgft:2;12,12;1,6;1,2", 1, 1, 2, 1.6),
    ("256 nodes, 4-ary-4-tree", "kary:4,4", 1, 1, 16, 12),
    ("1728 nodes, 12-ary-3-tree", "kary:12,3", 1, 1, 12, 11),
    ("1728 nodes, roots merged by two", "pgft:3;12,12,12;1,12,6;1,1,2", 1, 1, 12, 11),
]

# Table I of "Quasi fat trees": engine, fabric, printed seconds of ftree and of the closed form.
SEEDS_001 = [
    ("pgft", "pgft:3;18,9,36;1,9,18;1,2,1", 4, 1, 0.2),
    ("qft", "qft:3;18,9,36;1,9,18;1,2,1", None, 1, 0.2),
    ("pgft", "pgft:4;18,3,18,36;1,3,18,18;1,6,1,1", 478, 18, 4),
    ("qft", "qft:4;18,3,18,36;1,3,18,18;1,6,1,1", None, 17, 4),
]

QFTS = [
    "qft:3;4,2,4;1,2,4;1,2,1", "qft:3;4,2,8;1,2,4;1,2,1", "qft:3;6,2,12;1,2,6;1,3,1", "qft:3;6,3,12;1,3,6;1,2,1",
    "qft:3;8,2,16;1,2,8;1,4,1", "qft:3;8,4,16;1,4,8;1,2,1", "qft:3;9,3,18;1,3,9;1,3,1", "qft:3;12,4,24;1,4,12;1,3,1",
    "qft:3;12,6,24;1,6,12;1,2,1", "qft:3;18,3,36;1,3,18;1,6,1", "qft:3;18,9,18;1,9,18;1,2,1",
    "qft:3;18,6,36;1,6,18;1,3,1", "qft:3;16,8,32;1,8,16;1,2,1", "qft:3;18,9,28;1,9,18;1,2,1",
    "qft:4;4,2,4,4;1,2,4,4;1,2,1,1", "qft:4;4,2,4,8;1,2,4,4;1,2,1,1", "qft:4;6,3,6,12;1,3,6,6;1,2,1,1",
    "qft:4;6,2,6,12;1,2,6,6;1,3,1,1", "qft:4;8,4,8,8;1,4,8,8;1,2,1,1", "qft:4;18,9,18,4;1,9,18,18;1,2,1,1",
]

# Side by side: fabric, our engines; tori take part where an engine for them is built in.
SIDE = [
    ("4-ary-3-tree", "kary:4,3"),
    ("the same, 5 cables cut", "kary:4,3/cut=5:1"),
    ("QFT, 256 hosts", "qft:3;4,4,16;1,2,8;1,4,1"),
    ("the same, 5 cables cut", "qft:3;4,4,16;1,2,8;1,4,1/cut=5:1"),
    ("PGFT, 648 hosts", "pgft:2;18,36;1,18;1,1"),
    ("half bisection, 512 hosts", "pgft:2;16,32;1,8;1,1"),
    ("1728 hosts", "kary:12,3"),
    ("torus 4x4, 2 hosts", "torus:4x4,2"),
    ("torus 8x8, 1 host", "torus:8x8,1"),
    ("torus 4x4x4, 1 host", "torus:4x4x4,1"),
]

# Damage: our engine, fabric, {level: its switches}.
FAULTS = [
    ("pgft", "kary:4,3", {1: 16, 2: 16, 3: 16}),
    ("pgft", "kary:6,3", {1: 36, 2: 36, 3: 36}),
    ("pgft", "pgft:2;12,12;1,6;1,2", {1: 12, 2: 6}),
    ("qft", "qft:3;4,4,16;1,2,8;1,4,1", {1: 64, 2: 32, 3: 16}),
]
DAMAGE = ["1 link", "5 links", "20 links", "1 switch", "2 switches", "3 switches"]
