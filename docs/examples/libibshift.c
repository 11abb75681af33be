/*
 * Sums and exchanges numbers without MPI. Processes meet in a folder that all of them see:
 *     cc -o example libibshift.c $(pkg-config --cflags --libs libibshift)
 *     ./example 4            or, on each host: ./example RANK RANKS /shared/empty-folder
 */
#include <ibshift.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct meeting {
    const char *folder;
    int rank, ranks, number; /* of the exchange */
};

/* A file has its name only when it is complete, so what can be opened can be read. */
static int allgather(void *context, const void *mine, void *all, size_t size)
{
    struct meeting *meeting = context;
    char path[512], hidden[520];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%d.%d", meeting->folder, ++meeting->number, meeting->rank);
    snprintf(hidden, sizeof(hidden), "%s.new", path);
    if ((file = fopen(hidden, "w")) == NULL || fwrite(mine, size, 1, file) != 1 ||
        fclose(file) != 0 || rename(hidden, path) != 0) {
        return -1;
    }
    for (int rank = 0; rank < meeting->ranks; rank++) {
        snprintf(path, sizeof(path), "%s/%d.%d", meeting->folder, meeting->number, rank);
        while ((file = fopen(path, "r")) == NULL) {
            usleep(1000);
        }
        if (fread((char *)all + rank * size, size, 1, file) != 1 || fclose(file) != 0) {
            return -1;
        }
    }
    return 0;
}

static void add(void *context, const void *left, void *right, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        ((double *)right)[i] += ((const double *)left)[i];
    }
}

static int work(struct meeting *meeting)
{
    struct ibs_setup setup = {IBS_API, meeting->rank, meeting->ranks, allgather, meeting};
    int from[64] = {meeting->rank}, to[64] = {0}, rc;
    struct ibs_call exchange = {IBS_ALLTOALL, .send = from, .recv = to, .count = 1, .element = 4};
    double total = meeting->rank; /* in place */
    struct ibs_call sum = {IBS_ALLREDUCE, .recv = &total, .count = 1, .element = 8, .reduce = add};
    struct ibs_job *job;
    struct ibs_group *all;
    struct ibs_request *request;
    char error[512] = "";

    if (ibs_open(&setup, &job, error, sizeof(error)) != 0 ||
        ibs_group_create(job, 0, NULL, 0, &all) != 0) {
        fprintf(stderr, "rank %d: %s\n", meeting->rank, error);
        return 1;
    }
    for (int rank = 0; rank < meeting->ranks; rank++) {
        from[rank] = 100 * meeting->rank + rank;
    }
    rc = ibs_start(all, &exchange, &request);
    while (rc == 0 && (rc = ibs_test(request)) == IBS_RUNNING) {
        rc = 0; /* here the program computes something else */
    }
    rc = rc == 0 ? ibs_run(all, &sum) : rc;
    printf("rank %d: sum %g, from the last rank %d%s\n", meeting->rank, total,
           to[meeting->ranks - 1], rc == 0 ? "" : ibs_group_error(all));
    return rc == 0 && ibs_group_free(all) == 0 && ibs_close(job) == 0 ? 0 : 1;
}

int main(int count, char **words)
{
    char folder[] = "/tmp/libibshift.XXXXXX";
    struct meeting meeting = {.folder = count == 4 ? words[3] : folder};
    int status, bad = 0;

    meeting.rank = count == 4 ? atoi(words[1]) : 0;
    meeting.ranks = count > 1 ? atoi(words[count / 2]) : 2;
    if (meeting.ranks > 64 || (count != 4 && mkdtemp(folder) == NULL)) {
        return 1;
    }
    while (count != 4 && meeting.rank < meeting.ranks && fork() != 0) {
        meeting.rank++;
    }
    if (meeting.rank < meeting.ranks) {
        return work(&meeting);
    }
    while (wait(&status) > 0) {
        bad |= status != 0;
    }
    return bad;
}
