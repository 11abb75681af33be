#include "job/once.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "choose/digest.h"

enum { SAID_MAX = 8 }; /* texts of which a process is the sayer */

/* The sayer of a text on this host holds a name that the kernel gives to one process alone, and
 * takes back at its end. */
static bool take_name(uint32_t job, uint64_t text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX}; /* the path's first byte is 0: no file */
    int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ibshift %x %016llx", job,
                          (unsigned long long)text);
    int holder = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (holder < 0 || 0 == bind(holder, (struct sockaddr *)&name,
                                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length))) {
        return true; /* it stays open */
    }
    length = errno;
    close(holder);
    return EADDRINUSE != length;
}

bool ibshift_once_a_host(uint32_t job, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the next two */
    static uint64_t said[SAID_MAX];
    static unsigned count;
    uint64_t digest = IBSHIFT_DIGEST;
    bool is_ours = false;

    for (; '\0' != *text; text++) {
        digest = isdigit((unsigned char)*text) ? digest : ibshift_digest(digest, text, 1);
    }
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        is_ours |= said[i] == digest;
    }
    if (!is_ours && take_name(job, digest)) {
        is_ours = true;
        if (count < SAID_MAX) {
            said[count++] = digest;
        }
    }
    pthread_mutex_unlock(&lock);
    return is_ours;
}
