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
    vt_check(r);
    return vt_close();
}
