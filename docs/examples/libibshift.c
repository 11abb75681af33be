/*
 * Processes without MPI that sum and exchange numbers with libibshift. They meet in a folder that all of
 * them see, as rank RANK of RANKS each, on one host or on several; with a number alone it starts them here.
 *
 *     cc -o example libibshift.c $(pkg-config --cflags --libs libibshift)
 *     ./example 4                          or, on each host: ./example RANK RANKS /shared/empty-folder
 */
#include <ibshift.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct meeting {
    const char *folder;
    int rank, ranks, number; /* of the exchange */
};

/* Writes a file and reads everybody's: whole ones, as a file has its name only when it is complete. */
static int allgather(void *context, const void *mine, void *all, size_t size)
{
    struct meeting *meeting = context;
    char path[512], hidden[520];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%d.%d", meeting->folder, ++meeting->number, meeting->rank);
    snprintf(hidden, sizeof(hidden), "%s.new", path);
    if ((file = fopen(hidden, "w")) == NULL || fwrite(mine, size, 1, file) != 1 ||
        fclose(file) != 0 || rename(hidden, path) != 0) {
        perror(path);
        return -1;
    }
    for (int rank = 0; rank < meeting->ranks; rank++) {
        snprintf(path, sizeof(path), "%s/%d.%d", meeting->folder, meeting->number, rank);
        while ((file = fopen(path, "r")) == NULL) {
            usleep(1000);
        }
        if (fread((char *)all + rank * size, size, 1, file) != 1) {
            return -1;
        }
        fclose(file);
    }
    return 0;
}

static void add(void *context, const void *left, void *right, size_t elements)
{
    (void)context;
    for (size_t i = 0; i < elements; i++) {
        ((double *)right)[i] += ((const double *)left)[i];
    }
}

static int work(struct meeting *meeting)
{
    struct ibs_setup setup = {IBS_API, meeting->rank, meeting->ranks, allgather, meeting, NULL, NULL};
    int ranks = meeting->ranks, rc, *from = calloc(ranks, sizeof(int)), *to = calloc(ranks, sizeof(int));
    struct ibs_job *job;
    struct ibs_group *all;
    struct ibs_request *request;
    double sum = meeting->rank;
    char error[512] = "no memory";

    if (from == NULL || to == NULL || ibs_open(&setup, &job, error, sizeof(error)) != 0 ||
        ibs_group_create(job, 0, NULL, 0, &all) != 0) {
        fprintf(stderr, "rank %d: %s\n", meeting->rank, error);
        return 1;
    }
    for (int rank = 0; rank < ranks; rank++) {
        from[rank] = 100 * meeting->rank + rank;
    }
    rc = ibs_start(all, &(struct ibs_call){.collective = IBS_ALLTOALL, .send = from, .recv = to,
                                           .count = 1, .element = sizeof(int)}, &request);
    while (rc == 0 && (rc = ibs_test(request)) == IBS_RUNNING) {
        rc = 0; /* here the program computes something else */
    }
    rc = rc != 0 ? rc : ibs_run(all, &(struct ibs_call){.collective = IBS_ALLREDUCE, .recv = &sum,
                                                        .count = 1, .element = sizeof(double),
                                                        .reduce = add, .is_commutative = true});
    printf("rank %d: sum %g, from the last rank %d%s\n", meeting->rank, sum, to[ranks - 1],
           rc == 0 ? "" : ibs_group_error(all));
    free(from), free(to);
    return rc == 0 && ibs_group_free(all) == 0 && ibs_close(job) == 0 ? 0 : 1;
}

int main(int count, char **words)
{
    char folder[] = "/tmp/libibshift.XXXXXX";
    struct meeting meeting = {.folder = folder};
    int status, bad = 0;

    if (count == 4) {
        meeting = (struct meeting){words[3], atoi(words[1]), atoi(words[2]), 0};
        return work(&meeting);
    }
    meeting.ranks = count == 2 ? atoi(words[1]) : 2;
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    while (meeting.rank < meeting.ranks && fork() != 0) {
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
