/*
 * What is done to the ranks beside their deaths: each has a clock of its own, the kernel copies between them in pieces,
 * their folder of shared memory has files of others, and a hostile one has garbage in all that others see of it.
 */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "causes.h"
#include "net/node/layout.h"
#include "story.h"

static const uint64_t long_stop = 11 * 1000 * 1000000ull; /* after which others may lose patience */

enum { MAPS = 64, STALE = 3, TRIES = 64, FLIPS = 4 };
enum { CARDS = 4 }; /* one of so many hostile ones has garbage on its card, too */

static struct map {
    uint8_t *at;
    size_t size;
    int rank, owner;
    ino_t file;
} maps[MAPS]; /* shared memory that a rank sees */

static struct {
    const struct program *program;
    const char *folder;
    uint64_t random;
    uint64_t cases[PROGRAM_RANKS][5]; /* from FAULT_NO_MEMORY on */
    bool is_acted[PROGRAM_FAULTS];
    uint64_t ahead[PROGRAM_RANKS], faster[PROGRAM_RANKS]; /* clocks: ns, parts of a million */
    uint64_t rarely; /* of a hostile one: one time of so many */
} f;

static uint64_t below(uint64_t bound)
{
    return program_random(&f.random) % bound;
}

/* As a process would leave it that was killed, cut off in the middle, or somebody else. */
static void leave_file(int i)
{
    struct ibshift_node_head head = {.magic = IBSHIFT_NODE_MAGIC,
                                     .version = IBSHIFT_NODE_VERSION,
                                     .job = (uint32_t)(7000 + below(2)),
                                     .boxes = (uint32_t)below(6),
                                     .process = program_random(&f.random)};
    char path[256];
    FILE *file;

    story_count(COUNT_FILES, 1);
    snprintf(path, sizeof(path), "%s/host0/ibshift-stale%d", f.folder, i);
    file = fopen(path, "wb");
    if (i == 1) {
        head.magic = (uint32_t)program_random(&f.random);
    }
    if (file == NULL || fwrite(&head, i == 2 ? sizeof(head) / 2 : sizeof(head), 1, file) != 1 ||
        fclose(file) != 0) {
        replay_fail("%s: %s", path, strerror(errno));
    }
}

void faults_begin(const struct program *program, const char *folder)
{
    f.program = program;
    f.folder = folder;
    f.random = program->seed ^ 0x2545f4914f6cdd1d;
    for (int i = 0; i < PROGRAM_RANKS; i++) {
        f.ahead[i] = below(1ull << below(50));
        f.faster[i] = below(200);
    }
    f.rarely = 1;
    for (int i = 0; i < program->acts; i++) {
        f.rarely = program->act[i].fault == FAULT_HOSTILE ? program->act[i].count + 1 : f.rarely;
    }
    for (int i = 0; i < program->hosts; i++) {
        char path[256];

        snprintf(path, sizeof(path), "%s/host%d", folder, i);
        (void)mkdir(path, 0700);
    }
    for (int i = 0; i < STALE && program->has_stale; i++) {
        leave_file(i);
    }
}

static bool is_clean(const struct program *program)
{
    for (int i = 0; i < program->ranks; i++) {
        if (replay_is_dead(i)) {
            return false;
        }
    }
    return true;
}

/* What dead processes have left is removed by whoever makes a segment; whose owner is not known stays. */
static void look_into(const struct program *program, int host)
{
    bool is_shared = program->has_node && program->acts == 0 && program->odd_rank < 0 &&
                     program->ranks > 1 &&
                     program_host_of(program, 0) == program_host_of(program, 1);
    const struct dirent *entry;
    char path[256];
    DIR *dir;

    snprintf(path, sizeof(path), "%s/host%d", f.folder, host);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        bool is_others = strcmp(entry->d_name, "ibshift-stale1") == 0 ||
                         strcmp(entry->d_name, "ibshift-stale2") == 0;
        bool is_stale = strcmp(entry->d_name, "ibshift-stale0") == 0;

        if (strncmp(entry->d_name, "ibshift-", 8) == 0 && !is_others &&
            (is_stale ? is_shared : is_clean(program))) {
            replay_fail("shared memory is left on host %d: %s", host, entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

void faults_end(const struct program *program)
{
    for (int i = 0; i < program->hosts; i++) {
        look_into(program, i);
    }
}

int replay_clock(clockid_t clock, struct timespec *t)
{
    uint64_t now = replay_now();
    int self = replay_self();

    (void)clock;
    if (self >= 0) {
        now += f.ahead[self] + now / 1000000 * f.faster[self];
    }
    *t = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
    return 0;
}

/* Only the connection manager's answers are waited for, and they are there at once or never come. */
int replay_poll(struct pollfd *all, nfds_t count, int ms)
{
    int n = poll(all, count, 0);

    if (n == 0) {
        replay_sleep((uint64_t)ms * 1000000);
        n = poll(all, count, 0);
    }
    return n;
}

/* Who maps it first has made it. */
static int owner_of(ino_t file)
{
    for (int i = 0; i < MAPS; i++) {
        if (maps[i].file == file) {
            return maps[i].owner;
        }
    }
    return replay_self();
}

void *replay_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *map;
    struct stat st;

    if (fd >= 0 && replay_strikes(FAULT_NO_FILE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    map = mmap(at, size, protection, flags, fd, offset);

    for (int i = 0; i < MAPS && map != MAP_FAILED && (flags & MAP_SHARED) != 0; i++) {
        if (maps[i].at == NULL && fstat(fd, &st) == 0) {
            maps[i] = (struct map){map, size, replay_self(), owner_of(st.st_ino), st.st_ino};
            break;
        }
    }
    return map;
}

int replay_openat(int at, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) == 0 ? 0 : va_arg(args, mode_t);
    va_end(args);
    if (replay_strikes(FAULT_NO_FILE)) {
        errno = EMFILE;
        return -1;
    }
    return openat(at, path, flags, mode);
}

int replay_munmap(void *at, size_t size)
{
    for (int i = 0; i < MAPS; i++) {
        if (maps[i].at == at && maps[i].rank == replay_self()) {
            maps[i].at = NULL;
        }
    }
    return munmap(at, size);
}

static void flip(uint8_t *at, size_t size)
{
    story_count(COUNT_GARBAGE, 1);
    for (uint64_t i = 1 + below(FLIPS); i > 0; i--) {
        at[below(size)] ^= (uint8_t)(below(2) == 0 ? 1u << below(8) : program_random(&f.random));
    }
}

void replay_spoil_card(struct replay_card *card)
{
    for (int i = 0; i < f.program->acts; i++) {
        const struct program_act *act = &f.program->act[i];

        if (act->fault == FAULT_HOSTILE && !act->is_dropped && act->rank == replay_self() &&
            act->at % CARDS == 0 && card->size > 0) {
            replay_say("has a card of garbage");
            causes_happened(act->rank, CAUSE_HOSTILE, replay_now());
            flip(card->bytes, card->size);
        }
    }
}

/* Somewhere in what it shares with others, and where something stands. */
static void scribble(int rank)
{
    const struct map *map = &maps[below(MAPS)];

    if (!causes_has(rank, CAUSE_HOSTILE) || map->at == NULL || map->rank != rank ||
        below(f.rarely) != 0) {
        return;
    }
    if (!causes_has(map->owner, CAUSE_SPOILT)) {
        replay_say("writes garbage into shared memory of rank %d", map->owner);
        causes_happened(map->owner, CAUSE_SPOILT, replay_now());
    }
    for (int i = 0; i < TRIES; i++) {
        uint8_t *word = map->at + below(map->size / sizeof(uint64_t)) * sizeof(uint64_t);

        if (i + 1 == TRIES || *(uint64_t *)(void *)word != 0) {
            flip(word, sizeof(uint64_t));
            return;
        }
    }
}

static bool is_at_branch(const struct program_act *act)
{
    return act->fault == FAULT_RANK_DIES || act->fault == FAULT_RANK_STOPS ||
           act->fault == FAULT_CLOCK_JUMPS || act->fault == FAULT_HOSTILE;
}

static void stop(const struct program_act *act)
{
    story_count(COUNT_STOPS, 1);
    replay_say("stopped for %.3f ms", (double)act->time / 1e6);
    if (act->time > long_stop) {
        causes_happened(act->rank, CAUSE_LATE, replay_now());
    }
    replay_sleep(act->time);
}

/* At this branch of the rank that runs. */
void faults_at_branch(int rank, uint64_t branches)
{
    for (int i = 0; i < f.program->acts; i++) {
        const struct program_act *act = &f.program->act[i];

        if (act->is_dropped || act->rank != rank || f.is_acted[i] || act->at > branches ||
            !is_at_branch(act)) {
            continue;
        }
        f.is_acted[i] = true;
        switch (act->fault) {
        case FAULT_RANK_DIES:
            replay_kill(rank);
            break;
        case FAULT_RANK_STOPS:
            stop(act);
            break;
        case FAULT_HOSTILE:
            replay_say("is hostile");
            causes_happened(rank, CAUSE_HOSTILE, replay_now());
            break;
        default:
            replay_say("its clock jumps by %.3f ms", (double)act->time / 1e6);
            story_count(COUNT_JUMPS, 1);
            f.ahead[rank] += act->time;
        }
    }
    scribble(rank);
}

/* Branches until something happens to the rank. */
uint64_t faults_left(int rank, uint64_t branches)
{
    uint64_t left = UINT64_MAX;

    for (int i = 0; i < f.program->acts; i++) {
        const struct program_act *act = &f.program->act[i];

        if (act->rank == rank && !act->is_dropped && is_at_branch(act) && act->at > branches &&
            act->at - branches < left) {
            left = act->at - branches;
        }
    }
    return left;
}

bool replay_strikes(enum program_fault fault)
{
    static const char *const names[] = {"no memory", "no room", "no copy", "no file", "no verb"};
    int self = replay_self(), which = (int)fault - FAULT_NO_MEMORY;
    uint64_t count = self < 0 ? 0 : ++f.cases[self][which];

    for (int i = 0; i < f.program->acts && self >= 0; i++) {
        const struct program_act *act = &f.program->act[i];

        if (!act->is_dropped && act->fault == fault && act->rank == self && count >= act->at &&
            count < act->at + act->count) {
            story_count(COUNT_NO_MEMORY + (unsigned)which, 1);
            replay_say("%s", names[which]);
            if (fault != FAULT_NO_ROOM && fault != FAULT_NO_COPY) {
                causes_happened(self, CAUSE_MEMORY, replay_now());
            }
            return true;
        }
    }
    return false;
}

void faults_spoil(int sender, const struct iovec *to, unsigned long n, ssize_t bytes)
{
    const struct iovec *piece = &to[below(n)];

    if (sender >= 0 && causes_has(sender, CAUSE_HOSTILE) && bytes > 0 && piece->iov_len > 0 &&
        below(f.rarely) == 0) {
        flip(piece->iov_base, piece->iov_len);
    }
}

bool faults_may_touch(pid_t pid)
{
    bool is_rank = pid >= REPLAY_FIRST_PID && pid < REPLAY_FIRST_PID + PROGRAM_RANKS;

    if (!is_rank || replay_is_dead(pid - REPLAY_FIRST_PID)) {
        errno = ESRCH;
        return false;
    }
    return true;
}
