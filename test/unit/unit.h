/* cmocka, and what its header needs before it. */
#ifndef TEST_UNIT_UNIT_H
#define TEST_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
