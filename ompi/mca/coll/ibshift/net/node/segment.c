#include "net/node/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { RING_MIN = 8 * 1024, RING_MAX = 256 * 1024, BOXES_MAX = 4096 };

static const char prefix[] = "ibshift-";

/* Which process made a segment: the kernel does not show a process its own locks. */
static uint64_t this_process;
static pid_t made_by;

static int refuse(char *why, size_t size, const char *folder, const char *what, int error)
{
    snprintf(why, size, "shared memory in %s: %s: %s", folder, what, strerror(error));
    return -error;
}

/* A lock of the whole file, as its owner holds it; fcntl() fills it with what is there. */
static struct flock whole(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static bool is_alive(int file, const struct ibshift_node_head *head)
{
    struct flock lock = whole();

    return fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK ||
           head->process == this_process;
}

bool ibshift_node_segment_is_alive(const struct ibshift_node_segment *segment)
{
    return is_alive(segment->file, segment->base);
}

/* Removes a segment of this user whose owner is dead. Bytes that it holds if it is of a living process of this job. */
static uint64_t look_at(int folder, const char *name, const struct ibshift_node_wish *wish)
{
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct ibshift_node_head head = {0};
    uint64_t bytes = 0;
    struct stat st;

    if (file < 0) {
        return 0;
    }
    if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        pread(file, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
        head.magic == IBSHIFT_NODE_MAGIC) {
        if (!is_alive(file, &head)) {
            (void)unlinkat(folder, name, 0);
        } else if (head.job == wish->job && head.boxes == wish->boxes) {
            bytes = (uint64_t)st.st_blocks * 512; /* the unit of st_blocks, whatever the system */
        }
    }
    close(file);
    return bytes;
}

/* Removes what dead processes of this user have left; bytes that the segments of this job hold. */
static uint64_t sweep(int folder, const struct ibshift_node_wish *wish)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    uint64_t bytes = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) == 0) {
            bytes += look_at(folder, entry->d_name, wish);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    } else if (copy >= 0) {
        close(copy);
    }
    return bytes;
}

/*
 * Bytes of a segment at the most; 0 where there is not enough for all. What the others of the job
 * have taken already counts as free, so whoever comes when, all find the same. Free space is read
 * first: what is taken in between is then counted twice, and not left out.
 */
static uint64_t share_of(int folder, const struct ibshift_node_wish *wish)
{
    struct statvfs fs;
    uint64_t share;

    if (fstatvfs(folder, &fs) != 0 || fs.f_blocks == 0) { /* without a limit */
        return wish->memory;
    }
    share = ((uint64_t)fs.f_bavail * fs.f_frsize + sweep(folder, wish)) / wish->boxes;
    if (share < ibshift_node_segment_size(wish->boxes, RING_MIN)) {
        return 0;
    }
    return share / 2 < wish->memory ? share / 2 : wish->memory;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* This boot of this machine, this folder (another container mounts another one), this user. */
static int identify(int folder, uint64_t *host)
{
    char boot[64] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (file < 0 || read(file, boot, sizeof(boot) - 1) <= 0 || fstat(folder, &st) != 0) {
        if (file >= 0) {
            close(file);
        }
        return -ENOENT;
    }
    close(file);
    *host = 0;
    for (const char *p = boot; *p != '\0'; p++) {
        *host = mix(*host, (unsigned char)*p);
    }
    *host = mix(mix(mix(*host, st.st_dev), st.st_ino), geteuid());
    return 0;
}

int ibshift_node_host(const char *folder, uint64_t *host)
{
    int dir = open(folder == NULL ? "/dev/shm" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = dir < 0 ? -errno : identify(dir, host);

    if (dir >= 0) {
        close(dir);
    }
    return rc;
}

/* Undisturbed: at a signal the kernel gives back what it has taken, and a profiler's come too often for
 * a second try. */
static int take_memory(int file, size_t size)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = posix_fallocate(file, 0, (off_t)size);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* The memory is taken now: where there is none, touching it later would be SIGBUS. */
static uint32_t reserve(int file, uint32_t boxes, uint64_t most)
{
    uint32_t ring = RING_MAX;

    while (ring > RING_MIN && ibshift_node_segment_size(boxes, ring) > most) {
        ring /= 2;
    }
    while (ring >= RING_MIN) {
        if (take_memory(file, ibshift_node_segment_size(boxes, ring)) == 0) {
            return ring;
        }
        if (ftruncate(file, sizeof(struct ibshift_node_head)) != 0) {
            return 0;
        }
        ring /= 2;
    }
    return 0;
}

/* Takes the memory of a file that is there for others to count, and maps it. */
static int fill(int file, uint64_t most, struct ibshift_node_head head,
                struct ibshift_node_segment *segment)
{
    head.ring = most == 0 ? 0 : reserve(file, head.boxes, most);
    if (head.ring == 0) {
        return -ENOSPC;
    }
    segment->size = ibshift_node_segment_size(head.boxes, head.ring);
    segment->base = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (segment->base == MAP_FAILED) {
        segment->base = NULL;
        return -errno;
    }
    segment->file = file;
    *(struct ibshift_node_head *)segment->base = head;
    return 0;
}

/* A file with the head alone, locked, and only then with its name; or a negative errno. */
static int make_file(int folder, const char *name, const struct ibshift_node_head *head)
{
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct flock lock = whole();
    char path[64];
    int rc = 0;

    if (file < 0) {
        return -errno;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (pwrite(file, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) ||
        fcntl(file, F_SETLK, &lock) != 0 ||
        linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) != 0) {
        rc = -errno;
        close(file);
    }
    return rc != 0 ? rc : file;
}

static int make_in(int folder, const struct ibshift_node_wish *wish,
                   struct ibshift_node_segment *segment, struct ibshift_node_card *card)
{
    struct ibshift_node_head head = {.magic = IBSHIFT_NODE_MAGIC,
                                     .version = IBSHIFT_NODE_VERSION,
                                     .boxes = wish->boxes,
                                     .job = wish->job};
    uint64_t most;
    int file, rc;

    if (wish->boxes == 0 || wish->boxes > BOXES_MAX) {
        return -EINVAL;
    }
    if (getrandom(&card->secret, sizeof(card->secret), 0) != (ssize_t)sizeof(card->secret)) {
        return -EIO;
    }
    if (made_by != getpid()) { /* also after a fork */
        made_by = getpid();
        this_process = ~card->secret;
    }
    rc = identify(folder, &card->host);
    if (rc != 0) {
        return rc;
    }
    snprintf(card->name, sizeof(card->name), "%s%016llx", prefix, (unsigned long long)card->secret);
    head.secret = card->secret;
    head.process = this_process;
    most = share_of(folder, wish); /* before its file: who closes it again loses the lock */
    file = make_file(folder, card->name, &head);
    if (file < 0) {
        return file;
    }
    rc = fill(file, most, head, segment);
    if (rc != 0) {
        (void)unlinkat(folder, card->name, 0);
        close(file);
        return rc;
    }
    card->ring = ((struct ibshift_node_head *)segment->base)->ring;
    return 0;
}

int ibshift_node_segment_make(const char *folder, const struct ibshift_node_wish *wish,
                              struct ibshift_node_segment *segment, struct ibshift_node_card *card,
                              char *why, size_t size)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned long long bytes_free;
    struct statvfs fs;
    int rc;

    *card = (struct ibshift_node_card){.magic = IBSHIFT_NODE_MAGIC,
                                       .version = IBSHIFT_NODE_VERSION,
                                       .pid = (uint32_t)getpid(),
                                       .boxes = wish->boxes};
    if (dir < 0) {
        return refuse(why, size, folder, "the folder cannot be opened", errno);
    }
    (void)sweep(dir, wish);
    rc = make_in(dir, wish, segment, card);
    bytes_free = 0 == fstatvfs(dir, &fs) ? (unsigned long long)fs.f_bavail * fs.f_frsize : 0;
    close(dir);
    if (rc == -ENOSPC) {
        size_t wanted = wish->boxes * ibshift_node_segment_size(wish->boxes, RING_MIN);

        snprintf(why, size,
                 "shared memory in %s: %u ranks need %zu bytes, %llu are free: remove files there, "
                 "or enlarge it (mount -o remount,size=%zum %s; docker run --shm-size=%zum)",
                 folder, wish->boxes, wanted, bytes_free, 64 + (wanted >> 19), folder,
                 64 + (wanted >> 19));
        return rc;
    }
    if (rc != 0) {
        return refuse(why, size, folder, "a segment cannot be made", -rc);
    }
    segment->secret = card->secret;
    card->secret_at = (uint64_t)(uintptr_t)&segment->secret;
    return 0;
}

static bool fits(const struct ibshift_node_head *head, const struct ibshift_node_card *card)
{
    return head->magic == IBSHIFT_NODE_MAGIC && head->version == IBSHIFT_NODE_VERSION &&
           head->secret == card->secret && head->boxes == card->boxes && head->ring == card->ring;
}

int ibshift_node_segment_open(const char *folder, const struct ibshift_node_card *card,
                              struct ibshift_node_segment *segment, char *why, size_t size)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t wanted = ibshift_node_segment_size(card->boxes, card->ring);
    struct stat st;
    void *base = MAP_FAILED;
    int file, error;

    file = dir < 0 ? -1 : openat(dir, card->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    error = errno;
    if (dir >= 0) {
        close(dir);
    }
    if (file < 0) {
        return refuse(why, size, folder, card->name, error);
    }
    if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (size_t)st.st_size == wanted) {
        base = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (base == MAP_FAILED || !fits(base, card)) {
        if (base != MAP_FAILED) {
            munmap(base, wanted);
        }
        close(file);
        return refuse(why, size, folder, "not the segment that the process announced", EPROTO);
    }
    *segment = (struct ibshift_node_segment){.base = base, .size = wanted, .file = file};
    return 0;
}

void ibshift_node_segment_close(const char *folder, struct ibshift_node_segment *segment,
                                const char *name)
{
    int dir;

    if (segment->base == NULL) {
        return;
    }
    if (name != NULL && (dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        (void)unlinkat(dir, name, 0);
        close(dir);
    }
    munmap(segment->base, segment->size);
    close(segment->file);
    segment->base = NULL;
}

void ibshift_node_map_ring(uint8_t *ring, uint32_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)ring & ~(page - 1);

    /* Linux before 5.14 does not know it: then the faults come one by one. */
    (void)madvise((void *)start, (uintptr_t)ring + size - start, MADV_POPULATE_WRITE);
}

bool ibshift_node_is_near(const struct ibshift_node_card *a, const struct ibshift_node_card *b)
{
    return a->host == b->host && a->boxes == b->boxes && a->place != b->place;
}

int ibshift_node_card_decode(const void *wire, size_t size, struct ibshift_node_card *card)
{
    if (size < sizeof(*card)) {
        return -EPROTO;
    }
    memcpy(card, wire, sizeof(*card));
    if (card->magic != IBSHIFT_NODE_MAGIC || card->version != IBSHIFT_NODE_VERSION) {
        return -EPROTO;
    }
    if (card->boxes == 0 || card->boxes > BOXES_MAX || card->place >= card->boxes ||
        card->ring < RING_MIN || card->ring > RING_MAX || (card->ring & (card->ring - 1)) != 0 ||
        memchr(card->name, '\0', sizeof(card->name)) == NULL || strchr(card->name, '/') != NULL) {
        return -EINVAL;
    }
    return 0;
}
