/* MPI_T's events of ibshift, where the MPI library has some: a choice is made once for its size, and names
 * collective, algorithm and bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4
enum { ELEMENTS = 5 };

static struct {
    int choices, wrong;
    int collective, value;
    unsigned long long bytes;
} seen;

static void hear(MPI_T_event_instance instance, MPI_T_event_registration registration,
                 MPI_T_cb_safety safety, void *user)
{
    unsigned group;
    int collective, value, detail;
    unsigned long long bytes;

    if (MPI_T_event_read(instance, 0, &group) != MPI_SUCCESS ||
        MPI_T_event_read(instance, 1, &collective) != MPI_SUCCESS ||
        MPI_T_event_read(instance, 2, &value) != MPI_SUCCESS ||
        MPI_T_event_read(instance, 3, &detail) != MPI_SUCCESS ||
        MPI_T_event_read(instance, 4, &bytes) != MPI_SUCCESS) {
        seen.wrong++;
        return;
    }
    seen.choices++;
    seen.collective = collective;
    seen.value = value;
    seen.bytes = bytes;
}

/* The index of the event of that name; -1: there is none. */
static int find(const char *wanted)
{
    int count, last = -1;

    MPI_T_event_get_num(&count);
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        int length = sizeof(name), verbosity, elements = 0, bind;

        if (MPI_T_event_get_info(i, name, &length, &verbosity, NULL, NULL, &elements, NULL, NULL,
                                 NULL, NULL, &bind) == MPI_SUCCESS &&
            strstr(name, wanted) != NULL && elements == ELEMENTS) {
            last = i;
        }
    }
    return last;
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %d choices, %d unreadable, collective %d, value %d, %llu bytes\n", what,
            seen.choices, seen.wrong, seen.collective, seen.value, seen.bytes);
    return 1;
}

static int run(void)
{
    static const char *const names[] = {"ibshift_choice", "ibshift_peer_lost", "ibshift_fallback",
                                        "ibshift_skipped"};
    MPI_T_event_registration registration;
    long long sent[3] = {1, 2, 3}, got[3];
    int before;

    for (int i = 0; i < 4; i++) {
        if (find(names[i]) < 0) {
            return fail(names[i]);
        }
    }
    if (MPI_T_event_handle_alloc(find(names[0]), NULL, MPI_INFO_NULL, &registration) !=
            MPI_SUCCESS ||
        MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL,
                                      hear) != MPI_SUCCESS) {
        return fail("no registration");
    }
    MPI_Allreduce(sent, got, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (seen.choices < 1 || seen.wrong > 0 || seen.bytes != sizeof(sent) || seen.value < 1) {
        return fail("an allreduce of a new size");
    }
    before = seen.choices;
    MPI_Allreduce(sent, got, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return seen.choices != before ? fail("the same again") : 0;
}
#endif

int main(int argc, char **argv)
{
    int bad = 77, provided, rank;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if MPI_VERSION >= 4
    bad = run();
#else
    if (rank == 0) {
        printf("this MPI has no events\n");
    }
#endif
    MPI_Finalize();
    MPI_T_finalize();
    return bad;
}
