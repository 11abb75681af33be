/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"

#include "opal/mca/installdirs/installdirs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const char *topic, bool once_a_host, va_list arguments)
{
    const char *const folders[] = {IBSHIFT_HELP_DIR, opal_install_dirs.opaldatadir};
    char *text = ibshift_topic_text(folders, topic, arguments);

    if (NULL != text && (!once_a_host || ibshift_once_a_host(OMPI_PROC_MY_NAME->jobid, text))) {
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
