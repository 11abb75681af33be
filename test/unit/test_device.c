/* Runtimes of devices are looked for when a library was loaded, not at each call. */
#include <dlfcn.h>

#include "device/device.h"
#include "unit.h"

static int searches;

void *__real_dlopen(const char *library, int flags);
void *__wrap_dlopen(const char *library, int flags);

void *__wrap_dlopen(const char *library, int flags)
{
    searches++;
    return __real_dlopen(library, flags);
}

static void a_library_is_looked_for_once(void **state)
{
    int first;

    ibshift_device_look(NULL);
    first = searches;
    if (ibshift_device != NULL) { /* this program has one */
        skip();
    }
    assert_true(first > 0);
    ibshift_device_look(NULL);
    assert_int_equal(searches, first);
    /* a new one may be what was missed */
    assert_non_null(__real_dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL));
    ibshift_device_look(NULL);
    assert_int_equal(searches, 2 * first);
    ibshift_device_look(NULL);
    assert_int_equal(searches, 2 * first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_library_is_looked_for_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
