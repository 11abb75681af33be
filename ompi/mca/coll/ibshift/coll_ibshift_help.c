#include "coll_ibshift.h"

#include "opal/util/show_help.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "choose/digest.h"

enum { SAID_MAX = 8 }; /* texts of which a process is the sayer */

/* The sayer of a text on this host holds a name that the kernel gives to one process alone, and
 * takes back at its end. */
static bool take_name(uint64_t text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX}; /* the path's first byte is 0: no file */
    int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ibshift %x %016llx",
                          OMPI_PROC_MY_NAME->jobid, (unsigned long long)text);
    int holder = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (holder < 0 || 0 == bind(holder, (struct sockaddr *)&name,
                                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length))) {
        return true; /* it stays open */
    }
    length = errno;
    close(holder);
    return EADDRINUSE != length;
}

static bool is_sayer(const char *text)
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
    if (!is_ours && take_name(digest)) {
        is_ours = true;
        if (count < SAID_MAX) {
            said[count++] = digest;
        }
    }
    pthread_mutex_unlock(&lock);
    return is_ours;
}

static void print(const char *topic, bool once_a_host, va_list arguments)
{
    char *text = opal_show_help_vstring("help-mca-coll-ibshift.txt", topic, true, arguments);

    if (NULL != text && (!once_a_host || is_sayer(text))) {
        fputs(text, stderr);
    }
    free(text);
}

void ibshift_help(const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    print(topic, false, arguments);
    va_end(arguments);
}

void ibshift_help_once_a_host(const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    print(topic, true, arguments);
    va_end(arguments);
}

void ibshift_help_once_a_job(const char *topic, ...)
{
    va_list arguments;

    if (0 != OMPI_PROC_MY_NAME->vpid) {
        return;
    }
    va_start(arguments, topic);
    print(topic, false, arguments);
    va_end(arguments);
}

void ibshift_make_plain(char *text)
{
    for (; '\0' != *text; text++) {
        if (iscntrl((unsigned char)*text)) {
            *text = '?';
        }
    }
}
