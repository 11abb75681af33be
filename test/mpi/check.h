#ifndef IBSHIFT_TEST_MPI_CHECK_H
#define IBSHIFT_TEST_MPI_CHECK_H

/* What the MPI test programs share: a failed check says one sentence and ends the job. */

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdbool.h>

void check_failed(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            check_failed(__FILE__, __LINE__, __VA_ARGS__);                                         \
        }                                                                                          \
    } while (0)

/* One of ibshift's parameters, on this rank; MPI_T is initialised. */
void parameter_set(const char *name, int number);

/*
 * What a handle of MPI_T is bound to, until the next call. Open MPI 6.0.0a1 looks for the communicator's flags behind the
 * handle's address instead of behind the handle, so zeros follow.
 */
MPI_Comm *bound_to(MPI_Comm comm);

/* One of MPI_T's counters, from here on. */
struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};
struct counter counter_begin(const char *name);
unsigned long long counter_read(const struct counter *counter);
unsigned long long counter_end(struct counter *counter);

/* Before Open MPI 5 the persistent collectives carry the prefix of an extension. */
#if OMPI_MAJOR_VERSION < 5
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORM_COUNT };
extern const char *const form_names[FORM_COUNT];

/*
 * One collective in one of its forms:
 *     struct run run = run_begin(form);
 *     while (run_next(&run)) { fill; RUN(&run, Bcast, bcast, arguments); compare; }
 * A persistent collective is started several times.
 */
struct run {
    enum form form;
    int round;
    MPI_Request request;
};

struct run run_begin(enum form form);
bool run_next(struct run *run);
void run_wait(struct run *run);

#define RUN(run, Name, name, ...)                                                                  \
    do {                                                                                           \
        if ((run)->form == FORM_BLOCKING) {                                                        \
            MPI_##Name(__VA_ARGS__);                                                               \
        } else if ((run)->form == FORM_NONBLOCKING) {                                              \
            MPI_I##name(__VA_ARGS__, &(run)->request);                                             \
        } else if ((run)->round == 1) {                                                            \
            PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &(run)->request);                         \
        }                                                                                          \
        run_wait(run);                                                                             \
    } while (0)

#endif
