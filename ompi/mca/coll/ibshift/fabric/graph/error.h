/* One line for people: what is wrong, where, what to do. Printed by whoever owns the output. */
#ifndef IBSHIFT_FABRIC_GRAPH_ERROR_H
#define IBSHIFT_FABRIC_GRAPH_ERROR_H

struct ibshift_error {
    char text[512];
};

/* Writes the line (err may be NULL) and returns code, so that callers can return it. */
int ibshift_fail(struct ibshift_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Things worth saying that stop nobody. */
#define IBSHIFT_WARNINGS 8

struct ibshift_warnings {
    unsigned count; /* may exceed the room: the rest was dropped */
    char text[IBSHIFT_WARNINGS][320];
};

static inline unsigned ibshift_warnings_kept(const struct ibshift_warnings *warnings)
{
    return warnings->count < IBSHIFT_WARNINGS ? warnings->count : IBSHIFT_WARNINGS;
}

void ibshift_warn(struct ibshift_warnings *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
