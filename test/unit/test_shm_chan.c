/* The software HCA's channels and slots after a death: the state that the dead leave is made by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm/chan.h"
#include "shm/shm.h"
#include "unit.h"

enum { SELF = 3, FORMER = 1, NOBODY = SHM_THREADS }; /* NOBODY: a thread's place that nobody has */

uint32_t proc_self = SELF;

static uint32_t chan;
static int fd;

static int set_up(void **state)
{
    int file = memfd_create("shm", MFD_CLOEXEC);
    char dir[] = "/tmp/shm_chan.XXXXXX";

    proc_self = SELF;
    if (file < 0 || !mkdtemp(dir) || shm_map(dir, file, 1, 0) != 0) {
        return -1;
    }
    close(file);
    memcpy(shm.head->dir, dir, sizeof(dir));
    atomic_store(&shm.procs[SELF].pid, getpid());
    return chan_open(&chan, &fd, 0, 0, false);
}

static int tear_down(void **state)
{
    chan_close(chan, fd);
    rmdir(shm.head->dir);
    munmap(shm.base, shm.bytes);
    thread_forget();
    return 0;
}

static bool is_readable(void)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static void die_holding_the_lock(void)
{
    atomic_store(&shm.chans[chan].lock.holder, NOBODY);
}

/* Somebody comes by who has no event to tell. */
static void come_by(void)
{
    chan_lock(&shm.chans[chan]);
    lock_drop(&shm.chans[chan].lock);
}

static void an_event_that_the_dead_counted_is_told(void **state)
{
    uint32_t cq;

    assert_int_equal(shm_slot_get(&shm.head->cqs, &cq), 0);
    shm.cqs[cq].chan = chan;
    shm.cqs[cq].events = 1;
    atomic_store(&shm.cqs[cq].number, 1);
    die_holding_the_lock();
    come_by();
    assert_int_equal(shm.chans[chan].head, cq);
    assert_true(is_readable());
}

static void an_asynchronous_event_of_the_dead_is_told(void **state)
{
    shm.chans[chan].async_tail = 1;
    die_holding_the_lock();
    come_by();
    assert_true(is_readable());
}

static void a_death_without_an_event_wakes_nobody(void **state)
{
    die_holding_the_lock();
    come_by();
    assert_false(is_readable());
}

/* It would be freed as the former's otherwise, while it is being made. */
static void a_slot_is_its_takers_before_it_is_filled(void **state)
{
    uint32_t cq, again;

    proc_self = FORMER;
    assert_int_equal(shm_slot_get(&shm.head->cqs, &cq), 0);
    assert_int_equal(shm_slot_owner(&shm.head->cqs, cq), FORMER);
    shm_slot_put(&shm.head->cqs, cq);
    assert_int_equal(shm_slot_owner(&shm.head->cqs, cq), SHM_NONE);
    proc_self = SELF;
    assert_int_equal(shm_slot_get(&shm.head->cqs, &again), 0);
    assert_int_equal(again, cq);
    assert_int_equal(shm_slot_owner(&shm.head->cqs, again), SELF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_event_that_the_dead_counted_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_asynchronous_event_of_the_dead_is_told, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_death_without_an_event_wakes_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slot_is_its_takers_before_it_is_filled, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
