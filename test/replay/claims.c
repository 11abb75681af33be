/* What test/unit/work.c asks of cmocka and of the unit tests' world. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../unit/world.h"
#include "scheduler.h"

/* What work.c claims. A job whose memory ends there is aborted, as MPI does it by itself. */
static void claim(bool is_so, const char *file, int line)
{
    if (!is_so) {
        replay_give_up(file, line);
    }
}

void _assert_true(LargestIntegralType result, const char *expression, const char *file, int line)
{
    (void)expression;
    claim(result != 0, file, line);
}

void _assert_int_equal(LargestIntegralType a, LargestIntegralType b, const char *file, int line)
{
    claim(a == b, file, line);
}

/* Of test/unit/world.h. */
uint64_t world_random(uint64_t *state)
{
    return program_random(state);
}

uint32_t world_random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(world_random(state) % bound);
}
