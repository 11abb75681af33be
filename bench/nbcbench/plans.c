/*
 * Plans that ibshift is told to run, one after the other in one job, by MPI_T: what each of them costs beside what the
 * component chooses by itself (bench/regret). Every rank writes the same.
 */
#include "nbcbench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { NAME = 40, ONE_SEGMENT = 1 << 30 };

struct forced {
    char call[NAME], collective[NAME],
        algorithm[NAME]; /* algorithm: "chosen": the component's choice */
    int radix, segment;  /* bytes; 0: one segment */
};

static struct forced *plans;
static size_t plans_count;
static char label[4 * NAME];

static bool is_chosen(const struct forced *plan)
{
    return strcmp(plan->algorithm, "chosen") == 0;
}

static int add(const struct forced *plan)
{
    struct forced *more = realloc(plans, (plans_count + 1) * sizeof(*plans));

    if (more == NULL) {
        return -ENOMEM;
    }
    plans = more;
    plans[plans_count++] = *plan;
    return 0;
}

int plans_read(const char *path)
{
    FILE *file = fopen(path, "r");
    struct forced plan;
    int fields = 5, line = 0, rc = file != NULL ? 0 : -errno;

    while (rc == 0 && fields == 5) {
        line++;
        fields = fscanf(file, "%39s %39s %39s %d %d", plan.call, plan.collective, plan.algorithm,
                        &plan.radix, &plan.segment);
        rc = fields == 5 ? add(&plan) : fields == EOF ? 0 : -EINVAL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return rc == 0
               ? CLI_OK
               : cli_error(NULL, "%s:%d: %s; a line is MPI_CALL COLLECTIVE ALGORITHM RADIX SEGMENT",
                           path, line, strerror(-rc));
}

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "nbcbench: MPI_T: %s %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* False: the component has no such parameter of the collective. */
static bool open_parameter(const struct forced *plan, const char *of, MPI_T_cvar_handle *handle,
                           MPI_T_enum *names)
{
    char name[3 * NAME];
    int index, count, none = 0, verbosity, bind, scope;
    MPI_Datatype type;

    snprintf(name, sizeof(name), "coll_ibshift_%s_%s", plan->collective, of);
    return MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
           MPI_T_cvar_get_info(index, NULL, &none, &verbosity, &type, names, NULL, &none, &bind,
                               &scope) == MPI_SUCCESS &&
           MPI_T_cvar_handle_alloc(index, NULL, handle, &count) == MPI_SUCCESS;
}

/* The value of an algorithm's name, or, without a name, found[] becomes that of the value. */
static int look_up(MPI_T_enum names, const char *name, int wanted, char found[NAME])
{
    int count = 0, length = NAME, value;

    (void)MPI_T_enum_get_info(names, &count, found, &length);
    for (int i = 0; i < count; i++) {
        length = NAME;
        if (MPI_T_enum_get_item(names, i, &value, found, &length) == MPI_SUCCESS &&
            (name != NULL ? strcmp(found, name) == 0 : value == wanted)) {
            return value;
        }
    }
    strcpy(found, "none");
    if (name != NULL) {
        fail("there is no algorithm", name);
    }
    return 0;
}

/* A collective without trees has no radix, one without pipelines no segment. */
static void write_parameter(const struct forced *plan, const char *of, const void *value)
{
    MPI_T_cvar_handle handle;
    MPI_T_enum names;

    if (open_parameter(plan, of, &handle, &names)) {
        if (MPI_T_cvar_write(handle, value) != MPI_SUCCESS) {
            fail("cannot write", of);
        }
        MPI_T_cvar_handle_free(&handle);
    }
}

static MPI_T_enum names_of(const struct forced *plan)
{
    MPI_T_cvar_handle handle;
    MPI_T_enum names;

    if (!open_parameter(plan, "algorithm", &handle, &names)) {
        fail("there is no algorithm of", plan->collective);
    }
    MPI_T_cvar_handle_free(&handle);
    return names;
}

static void force(const struct forced *plan)
{
    unsigned long long segment = plan->segment > 0 ? (unsigned)plan->segment : ONE_SEGMENT;
    char found[NAME];
    int algorithm = 0;

    if (is_chosen(plan)) {
        segment = 0;
    } else {
        algorithm = look_up(names_of(plan), plan->algorithm, 0, found);
    }
    write_parameter(plan, "algorithm", &algorithm);
    write_parameter(plan, "radix", &plan->radix);
    write_parameter(plan, "segment", &segment);
}

static double read_variable(MPI_T_pvar_session session, const struct forced *plan, const char *of,
                            MPI_Comm comm, int class)
{
    MPI_T_pvar_handle handle;
    char name[3 * NAME];
    int index, count;
    union {
        int number;
        double us;
    } value;

    snprintf(name, sizeof(name), "coll_ibshift_%s_%s", plan->collective, of);
    if (MPI_T_pvar_get_index(name, class, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count) != MPI_SUCCESS ||
        MPI_T_pvar_read(session, handle, &value) != MPI_SUCCESS) {
        fail("cannot read", name);
    }
    MPI_T_pvar_handle_free(session, &handle);
    return strstr(of, "_us") != NULL ? value.us : value.number;
}

/* "chosen ring 0 1 12.345": by whom, algorithm, radix, segments, modelled us. What measures has called collectives too: one more
 * call, and the variables are of that. */
static void describe(struct bench *b, const struct forced *plan)
{
    MPI_T_pvar_session session;
    char name[NAME];
    double of[4];

    bench_next(b);
    b->what->blocking(b);
    (void)MPI_T_pvar_session_create(&session);
    of[0] = read_variable(session, plan, "chosen", b->comm, MPI_T_PVAR_CLASS_STATE);
    of[1] = read_variable(session, plan, "chosen_radix", b->comm, MPI_T_PVAR_CLASS_LEVEL);
    of[2] = read_variable(session, plan, "chosen_segments", b->comm, MPI_T_PVAR_CLASS_LEVEL);
    of[3] = read_variable(session, plan, "chosen_modelled_us", b->comm, MPI_T_PVAR_CLASS_LEVEL);
    (void)MPI_T_pvar_session_free(&session);
    (void)look_up(names_of(plan), NULL, (int)of[0], name);
    snprintf(label, sizeof(label), "%s %s %.0f %.0f %.3f", is_chosen(plan) ? "chosen" : "forced",
             name, of[1], of[2], of[3]);
}

int plans_measure(struct bench *b, struct options *o, struct result *result)
{
    int rc = 0, provided;

    (void)MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (size_t i = 0; rc == 0 && i < plans_count; i++) {
        if (strcmp(plans[i].call, b->what->name) != 0) {
            continue;
        }
        force(&plans[i]);
        *result = (struct result){.is_wrong = result->is_wrong};
        rc = measure(b, result);
        describe(b, &plans[i]);
        o->label = label;
        if (rc == 0 && b->rank == 0) {
            report_row(b, result);
        }
    }
    (void)MPI_T_finalize();
    return rc;
}
