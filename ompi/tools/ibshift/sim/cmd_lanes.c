/* The VLs that packets take: two that keep a torus free of deadlock, or those of service levels. */
#include "sim/cmd.h"

#include "fabric/shape/shape.h"

static const uint16_t *place_of(const struct ibshift_shape *shape, uint32_t sw)
{
    return &shape->digits[(size_t)sw * (IBSHIFT_LEVELS_MAX + 1)];
}

/* Of the cable from one switch to the other, for a destination at a third. */
static uint8_t lane_of(const struct ibshift_shape *shape, uint32_t from, uint32_t to, uint32_t last)
{
    const uint16_t *own = place_of(shape, from), *next = place_of(shape, to);

    for (unsigned d = 0; d < shape->dims; d++) {
        if (own[d] != next[d]) {
            return place_of(shape, last)[d] > own[d];
        }
    }
    return 0;
}

static void fill_column(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                        unsigned lid, uint32_t last, uint8_t *table)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned port = ibshift_lft_get(f, s, lid);
        uint32_t next = IBSHIFT_NO_SWITCH;

        if (port != 0) {
            next = ibshift_switch_behind(f, ibshift_node_port(f, f->switches[s], port));
        }
        if (next != IBSHIFT_NO_SWITCH) {
            table[(size_t)s * f->lft_stride + lid] = lane_of(shape, s, next, last);
        }
    }
}

/*
 * Two VLs by Dally and Seitz (J. C. Sancho et al., "Routing in InfiniBand torus network
 * topologies", section 2): in each dimension VL 1 where the destination's coordinate is above the
 * switch's own, VL 0 elsewhere, so that the VLs of a ring do not close a circle.
 */
static void fill_table(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                       uint8_t *table)
{
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t last = ibshift_switch_behind(f, f->hosts[h]);

        for (unsigned i = 0; i < ibshift_host_lid_count(f, h) && last != IBSHIFT_NO_SWITCH; i++) {
            fill_column(f, shape, ibshift_host_lid(f, h) + i, last, table);
        }
    }
}

static int take_torus(struct sim_command *c)
{
    const struct ibshift_fabric *f = c->job.fabric;
    struct ibshift_shape shape;
    struct ibshift_error err;
    bool is_torus;

    if (ibshift_shape_find(f, &shape, &err) != 0) {
        return fabric_args_fail(&c->args, &err);
    }
    is_torus = shape.kind == IBSHIFT_SHAPE_TORUS;
    if (is_torus) {
        c->lane_table = sim_zeroed(f->switch_count, f->lft_stride);
        fill_table(f, &shape, c->lane_table);
        c->fabric.lane_table = c->lane_table;
        c->fabric.lanes = c->fabric.lanes < 2 ? 2 : c->fabric.lanes;
    }
    ibshift_shape_free(&shape);
    return is_torus ? CLI_OK
                    : cli_error(c->args.command, "--torus-lanes: the fabric is not a torus");
}

static int take_tables(struct sim_command *c, unsigned *lanes)
{
    const struct ibshift_fabric *f = c->job.fabric;
    struct ibshift_error err;

    if (c->sl2vl != NULL) {
        return fabric_sl2vl_load(c->sl2vl, f, &c->sl2vl_tables, lanes, &err) == 0
                   ? CLI_OK
                   : fabric_args_fail(&c->args, &err);
    }
    for (unsigned used = fabric_sls_used(f); used >> *lanes != 0;) {
        (*lanes)++;
    }
    return *lanes <= SIM_LANES_MAX
               ? CLI_OK
               : cli_error(c->args.command,
                           "service level %u has no virtual lane: %d are simulated, and --sl2vl "
                           "says which one a level takes",
                           *lanes - 1, SIM_LANES_MAX);
}

static int take_service_levels(struct sim_command *c)
{
    struct ibshift_fabric *f = c->job.fabric;
    struct ibshift_error err;
    unsigned lanes = 0;
    int status;

    if (c->sl != NULL && f->image != NULL) {
        return cli_error(c->args.command, "--sl: FABRIC is compiled: compile it with --sl");
    }
    if (c->sl != NULL && ibshift_sl_load(c->sl, f, &err) != 0) {
        return fabric_args_fail(&c->args, &err);
    }
    if (f->sl == NULL) {
        return c->sl2vl == NULL
                   ? CLI_OK
                   : cli_error(c->args.command,
                               "--sl2vl: no service levels are known: --sl has a file of them");
    }
    if (c->torus_lanes) {
        return cli_error(c->args.command, "--torus-lanes and service levels: one or the other");
    }
    status = take_tables(c, &lanes);
    c->fabric.lanes = c->fabric.lanes < lanes ? lanes : c->fabric.lanes;
    c->fabric.sl2vl = c->sl2vl_tables.vl != NULL ? &c->sl2vl_tables : NULL;
    return status;
}

int sim_lanes_take(struct sim_command *c)
{
    int status = take_service_levels(c);

    return status == CLI_OK && c->torus_lanes ? take_torus(c) : status;
}
