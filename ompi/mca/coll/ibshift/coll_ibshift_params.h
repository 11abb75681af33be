#ifndef IBSHIFT_COLL_PARAMS_H
#define IBSHIFT_COLL_PARAMS_H

#include "job/params.h"

/* Registers all parameters. A value out of bounds is reported and replaced by the default. */
void ibshift_params_register(void);

/* Says what does not go together or has no effect, once a job. */
void ibshift_params_check(void);

#endif
