#include "shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic uint16_t owner_t; /* of a slot: its process + 1, 0 = free */

enum { PAGE = 4096, SMALLEST_CLASS = 8, PUNCH_FROM = 1 << 16, EXIT_FULL = 2 };
enum { SPARE = 1 << 20 }; /* for pages that are touched without asking */

struct shm shm;
void (*shm_when_full)(void);

static char folder[128]; /* the file's: the file itself may lack the page that has the name */

static uint64_t bytes_free(void)
{
    struct statvfs vfs;

    return statvfs(folder, &vfs) != 0 ? UINT64_MAX : (uint64_t)vfs.f_bavail * vfs.f_frsize;
}

void shm_say_full(uint64_t wanted)
{
    char line[512];
    int n = snprintf(line, sizeof(line),
                     "softhca: %s has no room for %llu bytes, %llu are free: enlarge it (mount -o "
                     "remount,size=1g /dev/shm; docker run --shm-size=1g) or name a larger folder "
                     "with softhca-run --dir\n",
                     folder, (unsigned long long)wanted, (unsigned long long)bytes_free());

    if (write(STDERR_FILENO, line, (size_t)n) < 0) {
        return; /* nobody to tell */
    }
}

static struct sigaction before;

/* The file is sparse, and a page of it may be touched first anywhere. What is no page of it is the
   affair of whoever was asked before: the access is tried again. */
static void page_is_missing(int sig, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;

    (void)context;
    if (at < shm.base || at >= shm.base + shm.bytes) {
        sigaction(sig, &before, NULL);
        return;
    }
    shm_say_full(PAGE);
    if (shm_when_full) {
        shm_when_full();
    }
    _exit(EXIT_FULL);
}

static void watch_pages(void)
{
    static bool is_watched;
    struct sigaction action = {.sa_sigaction = page_is_missing, .sa_flags = SA_SIGINFO};

    if (!is_watched) {
        is_watched = sigaction(SIGBUS, &action, &before) == 0;
    }
}

static void *part(uint64_t *next, uint64_t count, uint64_t size)
{
    void *p = shm.base + *next;

    *next += (count * size + PAGE - 1) / PAGE * PAGE;
    return p;
}

static void lay_out(void)
{
    uint64_t next = 0;

    shm.head = part(&next, 1, sizeof(*shm.head));
    shm.ports = part(&next, SHM_PORTS, sizeof(*shm.ports));
    shm.procs = part(&next, SHM_PROCS + 1, sizeof(*shm.procs));
    shm.threads = part(&next, SHM_THREADS, sizeof(*shm.threads));
    shm.qps = part(&next, SHM_QPS, sizeof(*shm.qps));
    shm.cqs = part(&next, SHM_CQS, sizeof(*shm.cqs));
    shm.srqs = part(&next, SHM_SRQS, sizeof(*shm.srqs));
    shm.chans = part(&next, SHM_CHANS, sizeof(*shm.chans));
    shm.mrs = part(&next, SHM_MRS, sizeof(*shm.mrs));
    shm.groups = part(&next, SHM_GROUPS, sizeof(*shm.groups));
    shm.faults = part(&next, SHM_FAULTS, sizeof(*shm.faults));
    shm.wire = part(&next, 1, shm.head->wire_bytes);
    shm.maps = next;
    shm.arena =
        next +
        (SHM_QPS + SHM_CQS + SHM_SRQS + SHM_CHANS + SHM_MRS) * sizeof(owner_t) / PAGE * PAGE + PAGE;
}

static void make_tables(void)
{
    struct shm_head *h = shm.head;
    uint64_t map;

    struct {
        struct shm_table *table;
        uint32_t slots;

    } all[] = {{&h->qps, SHM_QPS},
               {&h->cqs, SHM_CQS},
               {&h->srqs, SHM_SRQS},
               {&h->chans, SHM_CHANS},
               {&h->mrs, SHM_MRS}};
    map = shm.maps;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i].table->map = map;
        all[i].table->slots = all[i].slots;
        map += all[i].slots * sizeof(owner_t);
    }
}

int shm_map(const char *dir, int fd, uint32_t create_gib, uint64_t wire_bytes)
{
    struct stat st;

    if ((create_gib != 0 && ftruncate(fd, (off_t)create_gib << 30) != 0) || fstat(fd, &st) != 0) {
        return -errno;
    }
    shm.bytes = (uint64_t)st.st_size;
    if (shm.bytes < sizeof(*shm.head)) {
        return -EPROTO;
    }
    shm.base = mmap(NULL, shm.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (shm.base == MAP_FAILED) {
        return -errno;
    }
    madvise(shm.base, shm.bytes, MADV_DONTDUMP);
    snprintf(folder, sizeof(folder), "%s", dir);
    watch_pages();
    if (create_gib != 0) {
        ((struct shm_head *)(void *)shm.base)->wire_bytes = wire_bytes;
    }
    lay_out();
    if (create_gib != 0) {
        shm.head->bytes = shm.bytes;
        shm.head->arena.next = shm.arena;
        make_tables();
        shm.head->magic = SHM_MAGIC;
    } else if (shm.bytes < shm.arena || shm.head->magic != SHM_MAGIC) {
        munmap(shm.base, shm.bytes);
        memset(&shm, 0, sizeof(shm));
        return -EPROTO;
    }
    return 0;
}

const char *shm_advice(int err, const char *otherwise)
{
    static char text[128];

    snprintf(text, sizeof(text),
             "%u GiB of address space are needed: raise its limit (ulimit -v), or softhca-run "
             "--memory less",
             (uint32_t)(shm.bytes >> 30));
    return err == -ENOMEM ? text : otherwise;
}

static owner_t *owner_of(const struct shm_table *table, uint32_t index)
{
    return (owner_t *)(void *)(shm.base + table->map) + index;
}

/* What is stored last is what others find the slot by. */
int shm_slot_get(struct shm_table *table, uint32_t *index)
{
    int err = -ENOMEM;

    lock_take(&table->lock);
    for (uint32_t i = table->hint; i < table->slots; i++) {
        owner_t *owner = owner_of(table, i);

        if (*owner == 0) {
            table->hint = i + 1;
            if (table->high <= i) {
                table->high = i + 1;
            }
            *owner = (uint16_t)(proc_self + 1);
            *index = i;
            err = 0;
            break;
        }
    }
    lock_drop(&table->lock);
    return err;
}

void shm_slot_put(struct shm_table *table, uint32_t index)
{
    lock_take(&table->lock);
    if (table->hint > index) {
        table->hint = index;
    }
    *owner_of(table, index) = 0;
    lock_drop(&table->lock);
}

uint32_t shm_slot_owner(const struct shm_table *table, uint32_t index)
{
    return *owner_of(table, index) - 1u;
}

uint64_t shm_random(uint64_t n)
{
    uint64_t z = atomic_fetch_add(&shm.head->random, 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return n ? (z ^ (z >> 31)) % n : 0;
}

uint64_t shm_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint32_t class_of(uint64_t bytes)
{
    uint32_t c = SMALLEST_CLASS;

    while ((1ull << c) < bytes) {
        c++;
    }
    return c;
}

int shm_alloc(uint64_t bytes, uint64_t *offset)
{
    struct shm_arena *a = &shm.head->arena;
    uint32_t c = class_of(bytes);
    uint64_t size = 1ull << c;
    uint64_t at;

    if (bytes_free() <= bytes + SPARE) {
        shm_say_full(bytes + SPARE);
        return -ENOMEM;
    }
    lock_take(&a->lock);
    at = a->free[c];
    if (size >= PAGE) {
        a->next = (a->next + PAGE - 1) / PAGE * PAGE;
    }
    if (at) {
        a->free[c] = *(uint64_t *)(shm.base + at);
    } else if (a->next + size <= shm.head->bytes) {
        at = a->next;
        a->next += size;
    }
    lock_drop(&a->lock);
    if (!at) {
        return -ENOMEM;
    }
    /* A large free block is zero but for the link in its first bytes. */
    memset(shm.base + at, 0, size >= PUNCH_FROM ? PAGE : size);
    *offset = at;
    return 0;
}

void shm_free(uint64_t offset, uint64_t bytes)
{
    struct shm_arena *a = &shm.head->arena;
    uint32_t c = class_of(bytes);

    if (!offset) {
        return;
    }
    if ((1ull << c) >= PUNCH_FROM && madvise(shm.base + offset, 1ull << c, MADV_REMOVE) != 0) {
        memset(shm.base + offset, 0, 1ull << c);
    }
    lock_take(&a->lock);
    *(uint64_t *)(shm.base + offset) = a->free[c];
    a->free[c] = offset;
    lock_drop(&a->lock);
}
