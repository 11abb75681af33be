/*
 * MPI_T's events of ibshift, where the MPI library has some:
 *     events         a choice is heard of once for its size, with what the variables have; a fallback; functions that
 *                    are skipped
 *     events lost    the last rank dies, and the others hear of it
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#if MPI_VERSION >= 4
enum { ELEMENTS = 5 };

/* What was heard of last, of one kind of event. */
struct heard {
    int times;
    unsigned group;
    int collective, value, detail;
    unsigned long long bytes;
};

static void hear(MPI_T_event_instance instance, MPI_T_event_registration registration,
                 MPI_T_cb_safety safety, void *user)
{
    struct heard *heard = user;
    void *const into[ELEMENTS] = {&heard->group, &heard->collective, &heard->value, &heard->detail,
                                  &heard->bytes};

    (void)registration, (void)safety;
    for (int i = 0; i < ELEMENTS; i++) {
        CHECK(MPI_T_event_read(instance, i, into[i]) == MPI_SUCCESS, "element %d is missing", i);
    }
    heard->times++;
}

static void listen_to(const char *wanted, struct heard *heard)
{
    MPI_T_event_registration registration;
    int count, found = -1;

    MPI_T_event_get_num(&count);
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        int length = sizeof(name), verbosity, elements = 0, bind;

        if (MPI_T_event_get_info(i, name, &length, &verbosity, NULL, NULL, &elements, NULL, NULL,
                                 NULL, NULL, &bind) == MPI_SUCCESS &&
            strcmp(name, wanted) == 0 && elements == ELEMENTS) {
            found = i;
        }
    }
    CHECK(found >= 0, "there is no event %s", wanted);
    CHECK(MPI_T_event_handle_alloc(found, NULL, MPI_INFO_NULL, &registration) == MPI_SUCCESS &&
              MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                            heard, hear) == MPI_SUCCESS,
          "%s cannot be heard", wanted);
}

/* What the variable of MPI_COMM_WORLD has. */
static int variable_of_world(const char *name, int class)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index, count, value = -1;

    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "no session of variables");
    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS, "there is no %s", name);
    CHECK(MPI_T_pvar_handle_alloc(session, index, bound_to(MPI_COMM_WORLD), &handle, &count) ==
              MPI_SUCCESS,
          "%s cannot be bound", name);
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS, "%s cannot be read", name);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

static void choice(void)
{
    long long sent[3] = {1, 2, 3}, got[3];
    static struct heard heard; /* it is listened to until the end */
    int algorithm, radix, before;

    listen_to("ompi.coll_ibshift_choice", &heard);
    MPI_Allreduce(sent, got, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    algorithm = variable_of_world("coll_ibshift_allreduce_chosen", MPI_T_PVAR_CLASS_STATE);
    radix = variable_of_world("coll_ibshift_allreduce_chosen_radix", MPI_T_PVAR_CLASS_LEVEL);
    CHECK(heard.times > 0 && heard.value == algorithm && heard.detail == radix &&
              heard.bytes == sizeof(sent),
          "heard %d times of %d, radix %d, for %llu bytes; %d, radix %d, ran for %zu", heard.times,
          heard.value, heard.detail, heard.bytes, algorithm, radix, sizeof(sent));
    before = heard.times;
    MPI_Allreduce(sent, got, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(heard.times == before, "the same choice is heard of again");
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i <= *count; i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

/* What has elements that overlap runs beneath. */
static void fallback(void)
{
    int sent[2] = {1, 2}, got[2];
    MPI_Datatype pair, overlapping;
    static struct heard heard; /* it is listened to until the end */
    MPI_Op op;

    listen_to("ompi.coll_ibshift_fallback", &heard);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(int), &overlapping);
    MPI_Type_commit(&overlapping);
    MPI_Op_create(add, 1, &op);
    MPI_Reduce(sent, got, 1, overlapping, op, 0, MPI_COMM_WORLD);
    CHECK(heard.times == 1, "heard of %d fallbacks", heard.times);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(heard.times == 1, "a fallback is heard of without one");
    MPI_Op_free(&op);
    MPI_Type_free(&overlapping);
    MPI_Type_free(&pair);
}

/* A communicator without what is beneath: functions that we could not leave to it are left alone, and Open MPI has none for some. */
static void skipped(void)
{
    static struct heard heard; /* it is listened to until the end */
    MPI_Comm comm;
    MPI_Info info;

    listen_to("ompi.coll_ibshift_skipped", &heard);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    CHECK(heard.times == 0, "heard that functions are skipped where basic is beneath them");
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", "^basic");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm) != MPI_SUCCESS && heard.times == 1 &&
              heard.value > 0 && heard.collective == -1,
          "heard %d times of %d functions without basic", heard.times, heard.value);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

static void lost(void)
{
    int rank, size, rc = MPI_SUCCESS;
    static struct heard heard; /* it is listened to until the end */

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    listen_to("ompi.coll_ibshift_peer_lost", &heard);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(heard.times == 0, "heard of a loss before there is one");
    if (rank == size - 1) {
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; i < 100 && rc == MPI_SUCCESS; i++) {
        rc = MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(rc != MPI_SUCCESS && heard.times == 1 && heard.value == size - 1 && heard.detail > 0,
          "the barrier came back with %d, heard %d times of rank %d, error %d", rc, heard.times,
          heard.value, heard.detail);
    printf("events: heard of rank %d\n", heard.value);
    fflush(stdout);
    _exit(0); /* MPI_Finalize would wait for the dead */
}
#endif

int main(int argc, char **argv)
{
    int provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
#if MPI_VERSION >= 4
    if (argc == 2 && strcmp(argv[1], "lost") == 0) {
        lost();
    }
    choice();
    fallback();
    skipped();
#else
    (void)argv;
#endif
    MPI_T_finalize();
    MPI_Finalize();
    return MPI_VERSION >= 4 ? 0 : 77;
}
