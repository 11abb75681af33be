#include "profiler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static volatile sig_atomic_t is_running, signals;

static void note(int number)
{
    (void)number;
    signals++;
}

/* In the place of the C library's: newer kernels go on whatever comes. */
int posix_fallocate(int file, off_t offset, off_t length)
{
    int before = signals;

    if (is_running) {
        kill(getpid(), SIGPROF);
    }
    if (signals != before) {
        return EINTR;
    }
    return fallocate(file, 0, offset, length) == 0 ? 0 : errno;
}

void profiler_start(void)
{
    signals = 0;
    is_running = signal(SIGPROF, note) != SIG_ERR;
}

int profiler_stop(void)
{
    is_running = false;
    return signals;
}
