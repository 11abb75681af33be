/*
 * Checks one rule of the verbs: that by whose name the program is called, or that which is named.
 *   rules --list    lists the names
 */
#include "vt.h"

static const struct vt_rule *const lists[] = {vt_states, vt_memory, vt_messages, vt_queues,
                                              vt_errors};

static const struct vt_rule *find(const char *name)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const struct vt_rule *r = lists[i]; r->name; r++) {
            if (strcmp(r->name, name) == 0) {
                return r;
            }
        }
    }
    return NULL;
}

static void list_all(void)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const struct vt_rule *r = lists[i]; r->name; r++) {
            puts(r->name);
        }
    }
}

static void check(const struct vt_rule *r)
{
    static const enum ibv_qp_type types[] = {
        [VT_RC] = IBV_QPT_RC, [VT_UC] = IBV_QPT_UC, [VT_UD] = IBV_QPT_UD};
    struct vt_pair p;
    struct vt_conf conf;
    if (r->frame == VT_NOTHING || r->frame == VT_DEVICE) {
        r->check(NULL);
        return;
    }
    conf = vt_conf();
    conf.type = types[r->frame];
    vt_connect(&p, &conf);
    r->check(&p);
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    const struct vt_rule *r = find(name);
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        list_all();
        return 0;
    }
    if (!r && argc > 1) {
        r = find(argv[--argc]);
    }
    if (!r) {
        puts("usage: rules --list | [OPTION...] RULE");
        return 77;
    }
    vt_options(argc, argv);
    vt.rule = r->rule;
    if (r->frame != VT_NOTHING) {
        vt_open(r->rule);
    }
    check(r);
    return vt_close();
}
