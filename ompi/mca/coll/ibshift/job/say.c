#include "job/say.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "choose/digest.h"

static struct ibshift_teller teller = {.folders = {"."}, .host = ""};

void ibshift_teller_set(const struct ibshift_teller *set)
{
    teller = *set;
}

const char *ibshift_teller_host(void)
{
    return teller.host;
}

enum { SAID_MAX = 8 /* texts of which a process is the sayer */, MOST_REPORTS = 32 };

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

static bool is_once_a_host(uint32_t job, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the next two */
    static uint64_t said[SAID_MAX];
    static unsigned count;
    uint64_t digest = IBSHIFT_DIGEST;
    bool is_ours = false;

    for (; *text != '\0'; text++) {
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

bool ibshift_is_news(uint32_t peer, int status)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers told and count */
    static struct {
        uint32_t peer;
        int status;
    } told[MOST_REPORTS];
    static int count;
    bool is_known = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        is_known |= told[i].peer == peer && told[i].status == status;
    }
    is_known |= count == MOST_REPORTS;
    if (!is_known) {
        told[count].peer = peer;
        told[count++].status = status;
    }
    pthread_mutex_unlock(&lock);
    return !is_known;
}

const char *ibshift_cause_text(int status)
{
    switch (status) {
    case -ETIME:
        return "no message moved within the seconds of coll_ibshift_deadline: it is late, stopped, "
               "has died before it was connected, called something else, or has no data for this "
               "rank, which awaits some";
    case -ETIMEDOUT:
        return "it does not answer: it has died, is stopped, or a link on the way is down";
    case -EHOSTUNREACH:
        return "it cannot be reached";
    case -ECONNRESET:
        return "the connection to it broke";
    case -ECONNABORTED:
        return "it has given this collective up; its own message says why";
    case -EBADMSG:
        return "it called another collective";
    case -ENOMEM:
        return "memory could not be allocated or registered";
    default:
        return strerror(-status);
    }
}

void ibshift_make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        if (iscntrl((unsigned char)*text)) {
            *text = '?';
        }
    }
}

static FILE *open_help(void)
{
    char path[4096];
    FILE *file = NULL;

    for (int i = 0; i < 2 && file == NULL && teller.folders[i] != NULL; i++) {
        snprintf(path, sizeof(path), "%s/help-mca-coll-ibshift.txt", teller.folders[i]);
        file = fopen(path, "re");
    }
    return file;
}

/* What it says, as a format. */
static char *read_topic(FILE *file, const char *topic)
{
    size_t size = 0, length = 0, name = strlen(topic);
    char *line = NULL, *text = NULL;
    FILE *out = open_memstream(&text, &length);
    bool is_inside = false;

    while (out != NULL && getline(&line, &size, file) > 0) {
        if (line[0] == '[') {
            is_inside = strncmp(line + 1, topic, name) == 0 && line[1 + name] == ']';
        } else if (is_inside && line[0] != '#') {
            fputs(line, out);
        }
    }
    free(line);
    if (out != NULL) {
        fclose(out);
    }
    return text;
}

/* For free(). */
static char *topic_text(const char *topic, va_list arguments)
{
    static const char dashes[] =
        "--------------------------------------------------------------------------\n";
    FILE *file = open_help(), *out;
    char *format = file != NULL ? read_topic(file, topic) : NULL, *text = NULL;
    size_t length;

    if (file != NULL) {
        fclose(file);
    }
    out = open_memstream(&text, &length);
    if (out != NULL) {
        fputs(dashes, out);
        if (format != NULL && format[0] != '\0') {
            vfprintf(out, format, arguments);
        } else {
            fprintf(out, "ibshift: %s, which help-mca-coll-ibshift.txt in %s would explain\n",
                    topic, teller.folders[0]);
        }
        fputs(dashes, out);
        fclose(out);
    }
    free(format);
    return text;
}

static void put(const char *text)
{
    if (teller.put != NULL) {
        teller.put(teller.context, text);
    } else {
        fputs(text, stderr);
    }
}

static void tell(const char *topic, bool once_a_host, va_list arguments)
{
    char *text = topic_text(topic, arguments);

    if (text != NULL && (!once_a_host || is_once_a_host(teller.job, text))) {
        put(text);
    }
    free(text);
}

void ibshift_help(const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    tell(topic, false, arguments);
    va_end(arguments);
}

void ibshift_help_once_a_host(const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    tell(topic, true, arguments);
    va_end(arguments);
}

void ibshift_help_once_a_job(const char *topic, ...)
{
    va_list arguments;

    if (teller.self != 0) {
        return;
    }
    va_start(arguments, topic);
    tell(topic, false, arguments);
    va_end(arguments);
}

void ibshift_say(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        put(text);
        free(text);
    }
    va_end(arguments);
}

void ibshift_raise(enum ibshift_event_kind kind, struct ibshift_event event)
{
    if (teller.event != NULL) {
        teller.event(kind, &event);
    }
}
